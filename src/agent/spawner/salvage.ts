import { setTimeout as delay } from "node:timers/promises";
import { tmpdirsOf } from "./protocol.ts";
import { removeTree } from "./remove-tree.ts";
import { createStrayScanner, sendSignal, standingOf } from "./strays.ts";

export interface LostTask {
  /** 0 if the spawner had not reported its start. */
  pid: number;
  readonly token: string;
}

const ROUNDS = 100;

/** A spawner was killed before it could end its tasks: kills them, by group and by token, and removes their TMPDIRs. */
export const salvage = async (spawner: number, lost: Iterable<LostTask>, tmpdirs: Iterable<string>): Promise<void> => {
  const tasks = [...lost];
  if (tasks.length > 0) await killAll(tasks);
  await Promise.all(Array.from(tmpdirs, (prefix) => removeTree(tmpdirsOf(prefix, spawner))));
};

const killAll = async (tasks: readonly LostTask[]): Promise<void> => {
  const scanner = createStrayScanner();
  for (const task of tasks) if (task.pid > 0) sendSignal(-task.pid, "SIGKILL");
  for (let round = 0; round < ROUNDS; round++) {
    const { byToken, sure } = scanner.scan();
    const alive = tasks.flatMap((task) => byToken.get(task.token) ?? []).filter((pid) => standingOf(pid) !== undefined);
    // a process in the middle of an exec shows no token yet
    if (alive.length === 0 && sure) break;
    for (const pid of alive) sendSignal(pid, "SIGKILL");
    await delay(5);
  }
};
