import { type Socket, connect as connectPlain } from "node:net";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { type Endpoint, isHere } from "../protocol/endpoint.ts";
import { dialOwnSocket } from "../protocol/own-socket.ts";
import { pinOf } from "../protocol/pin.ts";
import { AGENT_PROTOCOL } from "../protocol/version.ts";

/**
 * Finds a server that answers. On the server's machine the agent uses its socket, if nobody else can have made it (0051).
 * Elsewhere, or if the socket does not answer, it uses the addresses. It tries all of them in turn, the next one while the last is still silent, and
 * takes the first that shows the right key. It pins the server's key, not its name (rule 16), and sends nothing before
 * it has seen the key.
 */

/** A silent address delays the next one by no more than this; one that took the connection is heard first. */
const NEXT_ADDRESS_MS = 300;

/** How long to wait for an address. */
export interface Patience {
  /** Until it takes the connection. */
  readonly connectMs: number;
  /** From then on until it shows its key: a server to which thousands come back answers each in its turn. */
  readonly answerMs: number;
}

let context: SecureContext | undefined;
/** Made once: it costs half as much as a handshake, and its authorities are none, since the server's key is pinned. */
const secureContext = (): SecureContext => (context ??= createSecureContext({ ca: [], minVersion: "TLSv1.3" }));

interface Attempt {
  /** A connection that showed the right key, or what is wrong with this address. */
  readonly settled: Promise<TLSSocket | string>;
  /** Resolves when it took the connection, or is settled. */
  readonly answered: Promise<unknown>;
  giveUp(reason: string): void;
}

/** There is no TLS before the address answers: while a server is away, all its agents try again and again. */
const dialOne = (host: string, port: number, pin: string, { connectMs, answerMs }: Patience): Attempt => {
  const plain = connectPlain({ host, port });
  let socket: TLSSocket | undefined;
  let isOver = false;
  let settle: (got: TLSSocket | string) => void;
  const settled = new Promise<TLSSocket | string>((resolve) => {
    settle = resolve;
  });
  const giveUp = (reason: string): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(limit);
    socket?.destroy();
    plain.destroy();
    settle(reason);
  };
  const failed = (error: NodeJS.ErrnoException): void => giveUp(error.code ?? error.message);
  const within = (ms: number): NodeJS.Timeout => setTimeout(() => giveUp(`no answer within ${ms / 1000} s`), ms);
  let limit = within(connectMs);
  plain.on("error", failed);
  const taken = new Promise((resolve) => void plain.once("connect", resolve));
  plain.once("connect", () => {
    if (isOver) return;
    clearTimeout(limit);
    limit = within(answerMs);
    const secured = connect({
      socket: plain,
      secureContext: secureContext(),
      ALPNProtocols: [AGENT_PROTOCOL],
      rejectUnauthorized: false,
    });
    socket = secured;
    secured.on("error", failed);
    secured.once("close", () => giveUp("it closed the connection"));
    secured.once("secureConnect", () => {
      if (isOver) return;
      if (pinOf(secured) !== pin) return giveUp("the server there does not have this home's key");
      isOver = true;
      clearTimeout(limit);
      settle(secured);
    });
  });
  return { settled, answered: Promise.race([settled, taken]), giveUp };
};

/** Whether it has not answered in time; as soon as that is known. */
const isSilent = ({ answered }: Attempt): Promise<boolean> =>
  new Promise((resolve) => {
    const limit = setTimeout(resolve, NEXT_ADDRESS_MS, true);
    void answered.then(() => {
      clearTimeout(limit);
      resolve(false);
    });
  });

/** Connects through the server's socket on this machine. Returns the reason if that fails, and no reason if there is no such socket. */
const dialHere = async (endpoint: Endpoint): Promise<Socket | readonly string[]> => {
  const { agentSocket } = endpoint;
  if (agentSocket === undefined || !isHere(endpoint)) return [];
  const found = await dialOwnSocket(agentSocket);
  return typeof found === "string" ? [`${agentSocket} (${found})`] : found;
};

/** The first connection that showed the right key, or each address with its error. */
export const dial = async (
  endpoint: Endpoint,
  isStopped: () => boolean,
  patience: Patience,
): Promise<Socket | readonly string[]> => {
  const here = await dialHere(endpoint);
  if ("destroy" in here) return here;
  const problems = [...here];
  const attempts: Attempt[] = [];
  let winner: TLSSocket | undefined;
  const tries = new Set<Promise<void>>();
  const hosts = [...new Set(endpoint.addresses)];
  for (const [nth, host] of hosts.entries()) {
    const attempt = dialOne(host, endpoint.port, endpoint.keyPin, patience);
    attempts.push(attempt);
    const over = attempt.settled.then((got) => {
      tries.delete(over);
      if (typeof got === "string") problems.push(`${host}:${endpoint.port} (${got})`);
      else if (winner === undefined) winner = got;
      else got.destroy();
    });
    tries.add(over);
    // no address comes after the last one
    if (nth === hosts.length - 1) break;
    if (!(await isSilent(attempt))) await over;
    if (winner !== undefined || isStopped()) break;
  }
  while (winner === undefined && tries.size > 0) await Promise.race(tries);
  for (const attempt of attempts) attempt.giveUp("another address was taken");
  return winner ?? problems;
};
