import type { FifoPool } from "./fifo-pool.ts";
import type { Outbox } from "./outbox.ts";

/**
 * The end of the Node spawner: from the moment it is asked to stop it takes no requests and ends all tasks. Its process
 * exits when none is left and the agent has read every event.
 */
export interface Shutdown {
  readonly begun: boolean;
  /** With the exit status that the process will have, if not 0. */
  begin(status?: number): void;
  /** A task has ended, or events were read: exits if those were the last. */
  check(): void;
  /** Says which tasks to end. */
  arm(tasks: { readonly size: number; endAll(): void; close(): void }): void;
}

/** How long the agent may leave our events unread. */
const STALL_MS = 10_000;

export const createShutdown = (stdin: NodeJS.ReadStream, outbox: Outbox, pool: FifoPool): Shutdown => {
  let begun = false;
  let exitStatus = 0;
  let tasks: Parameters<Shutdown["arm"]>[0] | undefined;

  const check = (): void => {
    if (!begun || (tasks?.size ?? 0) > 0 || outbox.queued() > 0) return;
    pool.close();
    tasks?.close();
    process.exit(exitStatus);
  };

  return {
    get begun() {
      return begun;
    },
    begin: (status) => {
      if (status !== undefined) exitStatus = status;
      if (begun) return;
      begun = true;
      stdin.destroy();
      tasks?.endAll();
      let queued = outbox.queued();
      setInterval(() => {
        const now = outbox.queued();
        if (now > 0 && now >= queued) outbox.abandon();
        queued = now;
        check();
      }, STALL_MS);
      check();
    },
    check,
    arm: (given) => {
      tasks = given;
    },
  };
};
