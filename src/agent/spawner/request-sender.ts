import { constants } from "node:os";
import type { Writable } from "node:stream";
import { failedStart } from "./events.ts";
import { createFrameWriter } from "./frames.ts";
import { type Exit, NONE, Request } from "./protocol.ts";
import { toGrace, writeEnv, writeNumbers, writeStart } from "./requests.ts";
import type { LostTask } from "./salvage.ts";
import type { Spawner } from "./spawner.ts";

/**
 * Requests to a spawner, sent together at the end of the current turn; and the tasks that the spawner has because of
 * them.
 */
export interface RequestSender extends Pick<Spawner, "defineEnv" | "dropEnv" | "start" | "end" | "signal" | "flush"> {
  /** Started and not ended. */
  readonly live: Map<number, LostTask>;
  /** Prefixes of their TMPDIRs. */
  readonly tmpdirs: ReadonlySet<string>;
  /** The spawner is gone: nothing is sent any more. */
  stop(): void;
}

const now = Promise.resolve();

/** `refused` gets a task that is not even sent, after `start` has returned, like the exit of any other. */
export const createRequestSender = (stdin: Writable, refused: (exit: Exit) => void): RequestSender => {
  const writer = createFrameWriter();
  const environments = new Map<number, "ok" | "too-large" | "nul">();
  const live = new Map<number, LostTask>();
  const tmpdirs = new Set<string>();
  let scheduled = false;
  let gone = false;

  const refuse = (id: number, stage: "exec" | "dropped", errno: number): void =>
    queueMicrotask(() => refused(failedStart(id, stage, errno)));

  const flush = (): void => {
    scheduled = false;
    if (writer.size === 0) return;
    const bytes = writer.take();
    if (!gone && stdin.writable) stdin.write(bytes);
  };

  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    // queueMicrotask costs several times as much
    void now.then(flush);
  };

  return {
    live,
    tmpdirs,
    defineEnv: (id, entries) => {
      environments.set(id, writeEnv(writer, id, entries));
      schedule();
    },
    dropEnv: (id) => {
      if (environments.get(id) === "ok") writeNumbers(writer, Request.DROP_ENV, id);
      environments.delete(id);
      schedule();
    },
    start: (request) => {
      const { id } = request;
      const env = environments.get(request.env);
      if (env === undefined) throw new Error(`environment ${request.env} was not defined`);
      const sent = env !== "ok" ? env : request.argv.length === 0 ? "nul" : writeStart(writer, request);
      const { E2BIG, EINVAL, EPIPE } = constants.errno;
      if (sent !== "ok") return refuse(id, "exec", sent === "nul" ? EINVAL : E2BIG);
      // not the task's fault: it never began, and `closed` is about to say why
      if (gone || !stdin.writable) return refuse(id, "dropped", EPIPE);
      live.set(id, { pid: 0, token: request.token });
      if (request.tmpdir !== null) tmpdirs.add(request.tmpdir);
      schedule();
    },
    end: (id, graceMs) => {
      if (!live.has(id)) return;
      writeNumbers(writer, Request.END, id, graceMs === undefined ? NONE : toGrace(graceMs));
      schedule();
    },
    signal: (id, signo) => {
      if (!live.has(id)) return;
      writeNumbers(writer, Request.SIGNAL, id, signo);
      schedule();
    },
    flush,
    stop: () => {
      gone = true;
    },
  };
};
