// What TLS adds to the messages of null tasks: the same frames through two sockets of this machine, encrypted and not.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect as plainConnect, createServer as createPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tlsConnect, createServer as createTls } from "node:tls";
import { loadSource } from "../scripts/load-source.mjs";

const SOURCE = `
export { createChannel } from "./src/protocol/frames.ts";
export { createResultStore } from "./src/agent/results.ts";
export { loadKeys } from "./src/home/index.ts";
`;
let loaded;

/** Tasks per assignment at full speed: what an agent may hold in advance. */
const PER_ASSIGNMENT = 16_384;

/** CPU microseconds per task, both ends together: assignments one way, results the other, acknowledgements back. */
const exchange = async ({ createChannel, createResultStore }, listen, dial, tasks) => {
  const store = createResultStore();
  let row = 0;
  let finished;
  const all = new Promise((resolve) => (finished = resolve));
  const server = listen((socket) => {
    const channel = createChannel(
      socket,
      (message) => {
        if (message.t !== "results") return;
        channel.send({ t: "ack", seq: message.seq });
        if (row < tasks) next();
        else if (message.last) finished();
      },
      () => undefined,
    );
    const next = () => {
      const count = Math.min(PER_ASSIGNMENT, tasks - row);
      channel.send({ t: "assign", run: 1, group: 0, ranges: [row, count], attempts: 1 });
      row += count;
    };
    channel.trust();
    next();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const before = process.cpuUsage();
  const socket = dial(server.address().port);
  const channel = createChannel(
    socket,
    (message) => {
      if (message.t !== "assign") return;
      const [from, count] = message.ranges;
      const now = Date.now();
      const done = { run: 1, row: 0, attempt: 1, ending: 0, code: 0, started: now, finished: now };
      Object.assign(done, { outAt: -1, outBytes: 0, errBytes: 0 });
      for (done.row = from; done.row < from + count; done.row++) store.add(done);
      for (const made of store.take()) channel.send({ ...made, last: from + count === tasks });
    },
    () => undefined,
  );
  channel.trust();
  await all;
  const { user, system } = process.cpuUsage(before);
  channel.close();
  server.close();
  return (user + system) / tasks;
};

/** Microseconds of CPU per task with and without TLS. */
export const wireCost = async (tasks) => {
  const cold = loaded === undefined;
  loaded ??= await loadSource(SOURCE);
  const home = await mkdtemp(join(tmpdir(), "slipway-wire-"));
  try {
    const { keyPem: key, certPem: cert } = await loaded.loadKeys(home);
    const dialPlain = (port) => plainConnect(port, "127.0.0.1");
    // compiled before timing
    if (cold) await exchange(loaded, createPlain, dialPlain, tasks);
    const plain = await exchange(loaded, createPlain, dialPlain, tasks);
    const encrypted = (onSocket) => createTls({ key, cert, minVersion: "TLSv1.3" }, onSocket);
    const dial = (port) => tlsConnect({ port, host: "127.0.0.1", rejectUnauthorized: false });
    return { plain, tls: await exchange(loaded, encrypted, dial, tasks) };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
};
