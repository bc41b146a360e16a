// Many light agents in one process, for `npm run bench`: each has a connection of its own and speaks the real protocol
// over TLS, with the agent's own frames and results, but answers every task at once instead of running it. Usage:
// light-agents.mjs HOME COUNT CPUS answer|hold|vary|brief|usage|pace. Writes "ready" when the server has welcomed all of them; ends when
// its standard input does. With `hold`, it begins tasks and answers them only after the line "finish"; then it writes
// "finished". With `vary`, times and output sizes differ from task to task as they do in real life; with `brief` they do, of
// tasks that take a moment; with `usage`, those also say what each task used. With `pace`, all of them together answer 1,000
// tasks a second.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { connect } from "node:tls";
import { loadSource } from "../../scripts/load-source.mjs";

const { createChannel, createResultStore, readEndpoint, FRACTION, Ending, PeakBy, PROTOCOL_VERSION, AGENT_PROTOCOL } =
  await loadSource(`
export { createChannel } from "./src/protocol/frames.ts";
export { createResultStore } from "./src/agent/results.ts";
export { readEndpoint } from "./src/protocol/endpoint.ts";
export { FRACTION } from "./src/core/resources.ts";
export { Ending } from "./src/core/events.ts";
export { PeakBy } from "./src/core/peak.ts";
export { AGENT_PROTOCOL, PROTOCOL_VERSION } from "./src/protocol/version.ts";
`);

const [home, count, cpus] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
let holding = process.argv[5] === "hold";
const used = process.argv[5] === "usage";
const brief = used || process.argv[5] === "brief";
const varied = brief || process.argv[5] === "vary";
/** Milliseconds that tasks may have waited and run. */
const [MOST_WAITED, MOST_TAKEN] = brief ? [1, 3] : [1000, 10_000];
const paced = process.argv[5] === "pace";
/** What to do with tasks that were held. */
const releases = [];
/** Tasks that wait for their time to be answered, and how many of them are in each step. */
const pending = [];
const STEP_MS = 20;
const A_STEP = 20;
if (paced) setInterval(() => pending.splice(0, A_STEP).forEach((end) => end()), STEP_MS);
/** Connections being opened at the same time. */
const AT_ONCE = 32;

const endpoint = await readEndpoint(home);
const token = (await readFile(join(home, "keys", "agent.token"), "utf8")).trim();

let over = false;
const gone = (reason) => {
  if (over) return;
  console.error(`a light agent lost its server: ${reason}`);
  process.exit(1);
};

/** Resolves when it is welcomed. */
const startAgent = (number) =>
  new Promise((welcomed) => {
    const results = createResultStore();
    let flushing = false;
    const flush = () => {
      flushing = false;
      for (const message of results.take()) channel.send(message);
    };
    const forEachRow = ({ ranges, attempts }, visit) => {
      let nth = 0;
      for (let i = 0; i < ranges.length; i += 2)
        for (let row = ranges[i]; row < ranges[i] + ranges[i + 1]; row++, nth++)
          visit(row, typeof attempts === "number" ? attempts : attempts[nth]);
    };
    let written = 0;
    const vary = (done, now) => {
      done.started = now + Math.floor(Math.random() * MOST_WAITED);
      done.finished = done.started + Math.floor(Math.random() * MOST_TAKEN);
      done.outAt = written;
      done.outBytes = Math.floor(Math.random() * 1000);
      written += done.outBytes + 32;
    };
    const use = (done) => {
      done.peak = { bytes: 1_000_000 + Math.floor(Math.random() * 1e9), by: PeakBy.RUSAGE };
      const any = () => Math.floor(Math.random() * 10_000);
      done.used = { userMs: any(), systemMs: any(), readBytes: any() * 4096, writtenBytes: any() * 4096 };
    };
    const answer = (assigned) => {
      const now = Date.now();
      // one object for all: the store copies what it gets
      const done = { run: assigned.run, row: 0, attempt: 0, ending: Ending.EXIT, code: 0, started: now, finished: now };
      Object.assign(done, { outAt: -1, outBytes: 0, errBytes: 0 });
      forEachRow(assigned, (row, attempt) => {
        done.row = row;
        done.attempt = attempt;
        if (varied) vary(done, now);
        if (used) use(done);
        results.add(done);
      });
      if (flushing) return;
      flushing = true;
      setImmediate(flush);
    };
    const hold = (assigned) => {
      const tasks = [];
      const started = Date.now();
      forEachRow(assigned, (row, attempt) => tasks.push({ run: assigned.run, row, attempt, started, outAt: -1 }));
      channel.send({ t: "progress", tasks });
      releases.push(() => answer(assigned));
    };
    const pace = (assigned) => {
      forEachRow(assigned, (row, attempt) =>
        pending.push(() => answer({ run: assigned.run, ranges: [row, 1], attempts: attempt })),
      );
    };
    const onMessage = (message) => {
      if (message.t === "welcome") {
        setInterval(() => channel.send({ t: "ping" }), message.heartbeatMs);
        welcomed();
      } else if (message.t === "assign") (paced ? pace : holding ? hold : answer)(message);
      else if (message.t === "ack") results.acknowledged(message.seq);
      else if (message.t === "takeback") channel.send({ t: "returned", parts: [] });
      else if (message.t === "refused") gone(message.message);
    };
    let channel;
    const [host] = endpoint.addresses;
    const socket = connect(
      { host, port: endpoint.port, ALPNProtocols: [AGENT_PROTOCOL], rejectUnauthorized: false, minVersion: "TLSv1.3" },
      () => {
        channel = createChannel(socket, onMessage, gone);
        channel.trust();
        channel.send({
          t: "hello",
          version: PROTOCOL_VERSION,
          slipway: "bench",
          token,
          uuid: randomUUID(),
          pilot: 0,
          host: `light-${number}`,
          pid: process.pid,
          resources: { cpus: cpus * FRACTION },
          output: join(home, "output", "none"),
          epoch: endpoint.epoch,
          seq: 0,
          held: [],
        });
      },
    );
    socket.once("error", (error) => gone(error.message));
  });

for (let first = 0; first < count; first += AT_ONCE)
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, i) => startAgent(first + i)));
process.stdout.write("ready\n");
for await (const line of createInterface({ input: process.stdin })) {
  if (line !== "finish") continue;
  holding = false;
  for (const release of releases.splice(0)) release();
  process.stdout.write("finished\n");
}
over = true;
process.exit(0);
