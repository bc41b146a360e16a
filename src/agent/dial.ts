import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import type { Endpoint } from "../protocol/endpoint.ts";
import { pinOf } from "../protocol/pin.ts";
import { AGENT_PROTOCOL } from "../protocol/version.ts";

/**
 * Finds the address of a server that answers. It tries all of them in turn, the next one while the last is still
 * silent, and takes the first that shows the right key. It pins the server's key, not its name (rule 16), and sends
 * nothing before it has seen the key.
 */

/** A silent address delays the next one by no more than this. */
const NEXT_ADDRESS_MS = 300;

/** A connection that showed the right key, or what is wrong with this address. */
const dialOne = (
  host: string,
  port: number,
  pin: string,
  signal: AbortSignal,
  patienceMs: number,
): Promise<TLSSocket | string> =>
  new Promise((settle) => {
    const socket = connect({
      host,
      port,
      ALPNProtocols: [AGENT_PROTOCOL],
      rejectUnauthorized: false,
      // its key is pinned: reading the system's authorities would only cost time
      ca: [],
      minVersion: "TLSv1.3",
    });
    let taken = false;
    const refuse = (reason: string): void => {
      if (taken) return;
      clearTimeout(limit);
      socket.destroy();
      settle(reason);
    };
    const limit = setTimeout(() => refuse(`no answer within ${patienceMs / 1000} s`), patienceMs);
    socket.on("error", (error: NodeJS.ErrnoException) => refuse(error.code ?? error.message));
    signal.addEventListener("abort", () => refuse("another address was taken"), { once: true });
    socket.once("secureConnect", () => {
      clearTimeout(limit);
      if (pinOf(socket) !== pin) return refuse("the server there does not have this home's key");
      taken = true;
      settle(socket);
    });
  });

/** The first connection that showed the right key, or each address with its error. */
export const dial = async (
  endpoint: Endpoint,
  isStopped: () => boolean,
  patienceMs: number,
): Promise<TLSSocket | readonly string[]> => {
  const problems: string[] = [];
  const losers = new AbortController();
  let winner: TLSSocket | undefined;
  const tries = new Set<Promise<void>>();
  for (const host of new Set(endpoint.addresses)) {
    const attempt = dialOne(host, endpoint.port, endpoint.keyPin, losers.signal, patienceMs).then((got) => {
      tries.delete(attempt);
      if (typeof got === "string") problems.push(`${host}:${endpoint.port} (${got})`);
      else if (winner === undefined) winner = got;
      else got.destroy();
    });
    tries.add(attempt);
    await Promise.race([attempt, sleep(NEXT_ADDRESS_MS)]);
    if (winner !== undefined || isStopped()) break;
  }
  while (winner === undefined && tries.size > 0) await Promise.race(tries);
  losers.abort();
  return winner ?? problems;
};
