import { randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createReplay } from "../../../src/core/snapshot.ts";
import { type State, createState } from "../../../src/core/state.ts";
import type { Channel } from "../../../src/protocol/frames.ts";
import type { AgentMessage, Hello, ServerMessage } from "../../../src/protocol/messages.ts";
import { createScheduler } from "../../../src/scheduler/scheduler.ts";
import { type Agents, createAgents } from "../../../src/agent-links/agents.ts";
import { createClock } from "../../../src/server/clock.ts";
import { createEngine } from "../../../src/server/engine.ts";
import { type Journal, openJournal } from "../../../src/journal/index.ts";
import { createPeer, helloOf } from "../../cli/protocol-peer.ts";
import { group, noRefusals, spec } from "../core/model.ts";
import { change, mutated } from "../core/mutated.ts";
import { type FakeDisk, fakeDisk } from "../journal/disk.ts";

const DIR = "/j";
const TOKEN = "token";

interface Server {
  readonly state: State;
  readonly journal: Journal;
  readonly agents: Agents;
  readonly lines: string[];
}

const plainPages = { pack: (bytes: Uint8Array) => bytes, unpack: (bytes: Uint8Array) => bytes };

/**
 * The part of a server that agents talk to, on a disk in memory. Fails as `up` would when the journal cannot be
 * applied.
 */
const startServer = async (disk: FakeDisk, epoch: number): Promise<Server> => {
  const state = createState();
  const replay = createReplay(state, plainPages, {
    restore: () => {
      throw new Error("nothing is archived here");
    },
  });
  const journal = await openJournal({ dir: DIR, epoch, io: disk.io }, replay);
  const scheduler = createScheduler();
  const engine = createEngine(state, scheduler, journal, createClock());
  const lines: string[] = [];
  const agents = createAgents({
    engine,
    token: TOKEN,
    limits: { outputPerTask: 2 ** 30, outputPerRun: 2 ** 30 },
    clusterOf: () => ({ cluster: "local", queue: "default", endsAt: Infinity }),
    log: (text) => void lines.push(text),
  });
  agents.adopt();
  engine.listeners.assigned = (agent, parts) => agents.assign(agent, parts);
  if (epoch === 1) {
    engine.commit({ type: "run.opened", at: 1, run: 1, uuid: "u", spec: spec([group("a", 6, { retries: 1 })]) });
    engine.commit({ type: "run.committed", at: 1, run: 1 });
  } else engine.rebuildQueues();
  return { state, journal, agents, lines };
};

const hello = (uuid: string): Hello =>
  helloOf({
    token: TOKEN,
    uuid,
    output: "/o",
    taskJob: { id: 1, element: 2 },
    held: [{ run: 1, rows: [0, 1], attempts: [1, 1] }],
  });

const messages: readonly AgentMessage[] = [
  {
    t: "results",
    seq: 1,
    parts: [
      {
        run: 1,
        n: 2,
        from: 0,
        attempt: 1,
        ending: 0,
        code: new Uint8Array([0, 0, 1, 0]),
        started: 1e12,
        finished: 1e12 + 5,
        outAt: -1,
        outBytes: 0,
        errBytes: 0,
        details: [[1, "exit code 1"]],
      },
    ],
  },
  { t: "progress", tasks: [{ run: 1, row: 2, attempt: 1, started: 1e12, outAt: 5 }] },
  { t: "returned", parts: [{ run: 1, ranges: [3, 1] }] },
  {
    t: "ranks-ended",
    run: 1,
    row: 2,
    attempt: 1,
    ending: 0,
    code: 0,
    detail: "",
    outAt: 3,
    outBytes: 1,
    errBytes: 0,
  },
  { t: "leaving", reason: "r" },
  { t: "bye", reason: "r" },
];

const turns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await new Promise((resolve) => void setImmediate(resolve));
};

const connect = async (agents: Agents, first: object): Promise<{ channel: Channel<object>; closed(): boolean }> => {
  const [here, there] = duplexPair();
  agents.accept(there);
  const peer = createPeer<ServerMessage, object>(here);
  let closed = false;
  void peer.closed.then(() => (closed = true));
  peer.channel.send(first);
  await turns(6);
  return { channel: peer.channel, closed: () => closed };
};

describe("whatever an agent with the token says", () => {
  it("is taken or refused whole, and the next server starts with the same state", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ which: fc.nat(), changes: fc.array(change, { maxLength: 3 }) }), { maxLength: 8 }),
        async (said) => {
          const disk = fakeDisk();
          const first = await startServer(disk, 1);
          const uuid = randomUUID();
          let peer = await connect(first.agents, hello(uuid));
          for (const { which, changes } of said) {
            const nth = which % (messages.length + 1);
            const original: AgentMessage = nth === messages.length ? hello(uuid) : messages[nth]!;
            const message = mutated(original, changes);
            if (peer.closed() || original.t === "hello")
              peer = await connect(first.agents, { ...message, token: TOKEN });
            else peer.channel.send(message);
            await turns(4);
          }
          await first.journal.close();
          first.agents.close();
          const second = await startServer(disk, 2);
          const view = ({ state }: Server): unknown =>
            [...state.runs.values()].map(({ counts, losses, retries, history }) => [
              [...counts].map((count, code) => (code === 2 || code === 10 ? counts[2]! + counts[10]! : count)),
              losses,
              retries,
              [...history],
            ]);
          expect(view(second)).toEqual(view(first));
          for (const { state } of [first, second]) noRefusals(state);
          await second.journal.close();
          second.agents.close();
        },
      ),
      { numRuns: 100 },
    );
  });

  it("is refused with the field in the log, also in a hello; a spool with it is left alone, whole", async () => {
    const disk = fakeDisk();
    const { agents, lines, journal, state } = await startServer(disk, 1);
    const uuid = randomUUID();
    const good = messages[0] as Extract<AgentMessage, { t: "results" }>;
    const bad = { ...good, seq: 2, parts: [{ ...good.parts[0]!, details: 5 as never }] };
    const peer = await connect(agents, hello(uuid));
    await turns(10);
    const before = journal.appended;
    peer.channel.send({ ...bad, seq: 1 });
    await turns(6);
    expect(lines.at(-1)).toMatch(/agent 1: .*parts\[0\]\.details is 5, not a list/);
    await connect(agents, { ...hello(uuid), resources: { cpus: -1 } });
    expect(lines.at(-1)).toMatch(/refused: malformed hello: .*resources\.cpus/);
    expect(() => agents.importSpool(uuid, [good, bad])).toThrow(/details/);
    expect(() => agents.importSpool(uuid, [{ t: "ping" } as never])).toThrow(/'ping' among results/);
    expect([journal.appended, state.agents.get(1)?.seq]).toEqual([before, 0]);
    // texts are cut and unknown fields left out: neither is a reason to refuse the results of a task
    const long = { ...good.parts[0]!, details: [[1, "x".repeat(100_000)] as const], more: "y".repeat(100_000) };
    const bytes = journal.pendingBytes;
    expect(agents.importSpool(uuid, [{ ...good, parts: [long] }])).toBe(true);
    expect(journal.pendingBytes - bytes).toBeLessThan(5000);
    expect(state.agents.get(1)?.seq).toBe(1);
    await journal.close();
    agents.close();
  });
});
