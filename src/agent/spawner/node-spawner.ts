import { randomUUID } from "node:crypto";
import { closeSync, readdirSync, readFileSync } from "node:fs";
import { createFifoPool, PIPES_VARIABLE } from "./fifo-pool.ts";
import { createFrameReader } from "./frames.ts";
import { emptyEnv, type Env, NodeTasks, put } from "./node-tasks.ts";
import { createOutbox } from "./outbox.ts";
import { Event, Request, VERSION } from "./protocol.ts";
import { createRequestOrder, noPipes, type RequestOrder } from "./request-order.ts";
import { createBodyReader, readStart } from "./requests.ts";
import { createShutdown, type Shutdown } from "./shutdown.ts";

const O_CLOEXEC = 0o2000000;

/** Closes what our parent left open: Node marks its own descriptors close-on-exec, but not all inherited ones. */
const closeInherited = (): void => {
  for (const name of readdirSync("/proc/self/fd")) {
    if (Number(name) <= 2) continue;
    try {
      const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "latin1"))?.[1];
      if (flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0) closeSync(Number(name));
    } catch {
      continue; // the descriptor that listed the others
    }
  }
};

/** Reads requests and has them carried out in order. Throws a RangeError if one is malformed. */
const createRequestReader = (
  { perform }: RequestOrder,
  shutdown: Shutdown,
  environments: Map<number, Env>,
  tasks: NodeTasks,
) =>
  createFrameReader((type, buffer, at, to) => {
    if (shutdown.begun) return;
    if (type === Request.START) {
      const request = readStart(buffer, at, to);
      return perform(() => tasks.start(request));
    }
    const body = createBodyReader(buffer, at, to);
    const id = body.u32();
    if (type === Request.ENV) {
      const env = emptyEnv();
      for (const entry of body.texts()) put(env, entry);
      body.done();
      perform(() => environments.set(id, env));
    } else if (type === Request.DROP_ENV) {
      perform(() => environments.delete(id));
    } else if (type === Request.END) {
      const graceMs = body.u32();
      perform(() => tasks.end(id, graceMs));
    } else if (type === Request.SIGNAL) {
      const signo = body.u32();
      perform(() => tasks.signal(id, signo));
    } else throw new RangeError(`unknown request ${type}`);
  });

/**
 * The spawner in Node: the same protocol and promises as native/spawner.h, for machines without a compiler. Runs as
 * a process of its own until stdin ends or a signal asks it to stop, then exits.
 */
export const runNodeSpawner = (stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream): void => {
  Error.stackTraceLimit = 0; // system calls fail every day here
  closeInherited();
  delete process.env["NODE_V8_COVERAGE"]; // Node would pass it on to every task

  const pool = createFifoPool(process.env[PIPES_VARIABLE] ?? randomUUID());
  const outbox = createOutbox(stdout);
  const shutdown = createShutdown(stdin, outbox, pool);
  const order = createRequestOrder(pool, shutdown);
  const environments = new Map<number, Env>();
  const tasks = new NodeTasks({ environments, pool, outbox, order, shutdown });
  const read = createRequestReader(order, shutdown, environments, tasks);

  shutdown.arm(tasks);
  outbox.listen({
    opened: () => tasks.resume(),
    broken: () => {
      outbox.abandon();
      shutdown.begin();
    },
    emptied: shutdown.check,
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (shutdown.begun) tasks.endAll(0); // asked twice: at once
      shutdown.begin();
    });
  }
  process.on("exit", () => pool.close());
  pool.refill().then(
    () => {
      outbox.writer.begin(Event.HELLO);
      outbox.writer.u32(VERSION);
      outbox.writer.u32(process.pid);
      outbox.writer.end();
      outbox.schedule();
      stdin.on("data", (chunk: Buffer) => order.guarded(() => read(chunk)));
      stdin.on("end", () => shutdown.begin());
      stdin.on("error", () => shutdown.begin());
    },
    (error: unknown) => {
      noPipes(error);
      process.exit(3);
    },
  );
};
