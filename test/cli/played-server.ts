import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { unpackResults, valueAt } from "../../src/core/columns.ts";
import { FRACTION } from "../../src/core/resources.ts";
import { writeEndpoint } from "../../src/protocol/publish-endpoint.ts";
import type { AgentMessage, GroupTemplate, Results, ServerMessage } from "../../src/protocol/messages.ts";
import { loadKeys } from "../../src/home/index.ts";
import { until } from "../until.ts";
import { type Peer, pretendServer } from "./protocol-peer.ts";
import { ROOT } from "./slipway-process.ts";

/** A real agent, with a test as its server: what it says, when, and in which order. */

export type AgentPeer = Peer<AgentMessage, ServerMessage>;

export interface PlayedServer {
  readonly home: string;
  /** Starts an agent with these settings instead of the usual ones. */
  start(change?: object, args?: readonly string[], env?: Readonly<Record<string, string>>): ChildProcess;
  /** Every connection of an agent, in order. */
  readonly peers: AgentPeer[];
  /** The nth connection of an agent, counted from 0. */
  peer(nth: number): Promise<AgentPeer>;
  /** What an agent wrote into the home. */
  wrote(name: string): Promise<string>;
  /** No connection is taken from now on. */
  close(): void;
  cleanup(): Promise<void>;
}

const endOf = (agent: ChildProcess): Promise<unknown> =>
  new Promise((resolve) => {
    if (agent.exitCode !== null || agent.signalCode !== null) resolve(undefined);
    else agent.once("exit", resolve);
  });

export const playServer = async (): Promise<PlayedServer> => {
  const home = await mkdtemp(join(tmpdir(), "slw-"));
  for (const part of ["keys", "output", "spool", "tmp"]) await mkdir(join(home, part), { mode: 0o700 });
  const keys = await loadKeys(home);
  const peers: AgentPeer[] = [];
  const agents: ChildProcess[] = [];
  const server = await pretendServer(home, (one) => peers.push(one));
  await writeEndpoint(home, {
    pid: process.pid,
    host: hostname(),
    addresses: ["127.0.0.1"],
    port: server.port,
    socket: "",
    keyPin: keys.pin,
    epoch: 1,
    started: "",
    version: "test",
  });
  return {
    home,
    peers,
    start: (change = {}, args = [], env = {}) => {
      const settings = {
        home,
        pilot: 0,
        scratch: join(home, "tmp"),
        declared: { cpus: 4 * FRACTION },
        graceMs: 300,
        pin: false,
        patienceMs: 60_000,
        spawner: "auto",
        cgroup: "off",
        executor: "process",
        ...change,
      };
      const agent = spawn(
        process.execPath,
        [join(ROOT, "dist", "agent-quick.cjs"), "--settings", JSON.stringify(settings), ...args],
        { stdio: "ignore", env: { ...process.env, ...env } },
      );
      agents.push(agent);
      return agent;
    },
    peer: (nth) => until(`connection ${nth + 1} of the agent`, () => peers[nth]),
    wrote: (name) => until(name, () => readFile(join(home, name), "utf8").catch(() => undefined)),
    close: () => server.close(),
    cleanup: async () => {
      for (const agent of agents) {
        agent.kill("SIGKILL");
        await endOf(agent);
      }
      for (const one of peers) one.channel.close();
      server.close();
      await rm(home, { recursive: true, force: true });
    },
  };
};

export const welcome = (to: AgentPeer, change: Partial<Extract<ServerMessage, { t: "welcome" }>> = {}): void =>
  to.channel.send({ t: "welcome", agent: 1, epoch: 1, acked: 0, drop: [], heartbeatMs: 5000, ...change });

/** Tasks of one group whose items are shell scripts. */
export const define = (to: AgentPeer, cwd: string, change: Partial<GroupTemplate> = {}): void =>
  to.channel.send({
    t: "define",
    run: 1,
    runName: "test",
    cwd,
    env: { PATH: process.env["PATH"] ?? "" },
    numbering: { start: 0, step: 1 },
    groups: [
      {
        index: 0,
        name: "test",
        first: 0,
        command: ["sh", "-c", "{item}"],
        env: {},
        cwd: undefined,
        stdout: undefined,
        stderr: undefined,
        timeLimit: undefined,
        executor: "process",
        pin: undefined,
        priority: 0,
        resources: { cpus: FRACTION },
        range: undefined,
        json: false,
        ...change,
      },
    ],
  });

export const assign = (to: AgentPeer, row: number, attempt: number, script: string): void =>
  to.channel.send({ t: "assign", run: 1, group: 0, ranges: [row, 1], attempts: attempt, items: [script] });

export const results = (of: AgentPeer): Results[] => of.received.filter((message) => message.t === "results");

export const resultOf = (of: AgentPeer, row: number): Promise<{ attempt: number; code: number; ending: number }> =>
  until(`the result of row ${row}`, () => {
    for (const { parts } of results(of))
      for (const part of parts.map(unpackResults)) {
        const i = part.rows.indexOf(row);
        const of = (column: Parameters<typeof valueAt>[0]): number => valueAt(column, i);
        if (i >= 0) return { attempt: of(part.attempt), code: of(part.code), ending: of(part.ending) };
      }
    return undefined;
  });
