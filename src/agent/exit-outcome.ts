import { Ending, NO_CODE } from "../core/events.ts";
import type { Exit } from "./spawner/spawner.ts";
import type { AgentTask } from "./task.ts";
import type { ExpandedTask } from "./templates.ts";

/** What the end of a process means for its attempt. Pure. */
export interface ExitOutcome {
  readonly ending: number;
  readonly code: number;
  readonly detail?: string;
}

const STAGES: Readonly<Record<string, string>> = {
  cwd: "its directory",
  stdout: "its stdout file",
  stderr: "its stderr file",
  tmpdir: "its TMPDIR",
};

/** What a failed start means for a user. */
const explain = (
  task: ExpandedTask,
  error: NonNullable<Exit["error"]>,
  tmpdir: string,
): { code: number; detail: string } => {
  const what = { cwd: task.cwd, stdout: task.stdout, stderr: task.stderr, tmpdir }[error.stage as string];
  if (what !== undefined) {
    const absent = error.stage === "cwd" ? "does not exist" : "cannot be made (no such directory)";
    const why = error.code === "ENOENT" ? absent : `cannot be used (${error.code})`;
    return { code: NO_CODE, detail: `not started: ${STAGES[error.stage]} ${what} ${why}` };
  }
  if (error.stage === "exec" && error.code === "ENOENT")
    return { code: 127, detail: `exit code 127: command not found: ${task.argv[0]}` };
  if (error.stage === "exec" && error.code === "E2BIG")
    return { code: 126, detail: "its arguments and environment are larger than the system allows" };
  if (error.stage === "exec")
    return { code: 126, detail: `exit code 126: cannot be executed: ${task.argv[0]} (${error.code})` };
  return { code: NO_CODE, detail: `not started: the system refused a new process (${error.code})` };
};

/** How an attempt ended when its spawner ended without our asking. */
const endingWithout = ({ warned }: AgentTask): number => (warned ? Ending.INTERRUPTED : Ending.SPAWNER_LOST);

const codeOf = ({ code, signal }: Exit): number => code ?? (signal === null ? NO_CODE : -signal);

export const exitOutcome = (task: AgentTask, expanded: ExpandedTask, tmpdir: string, exit: Exit): ExitOutcome => {
  // we did not ask for it: someone told the spawner itself to end, with the pilot or from a task
  const { ending = endingWithout(task), detail = "its spawner was told to end" } = task;
  // a task that was already over when we wanted to end it needs no other attempt; nor does one that ends well while its
  // pilot goes: exit code 0 is success, and whatever gives up early exits with another
  const endedWell = exit.code === 0 && ending >= Ending.INTERRUPTED;
  if (exit.ended && !endedWell) return { ending, code: codeOf(exit), detail };
  if (task.warned && (exit.signal !== null || exit.code !== 0))
    return { ending: Ending.INTERRUPTED, code: codeOf(exit), detail: "it ended at its pilot's signal" };
  if (exit.error !== null) return { ending: Ending.NOT_STARTED, ...explain(expanded, exit.error, tmpdir) };
  if (exit.signal !== null) return { ending: Ending.SIGNAL, code: -exit.signal };
  return { ending: Ending.EXIT, code: exit.code ?? NO_CODE };
};

/** Its spawner is gone and took the task with it; this code cannot know whose doing that was. */
export const lossOutcome = (task: AgentTask, reason: string): ExitOutcome => ({
  ending: task.ending ?? endingWithout(task),
  code: NO_CODE,
  detail: task.detail ?? `its spawner ended: ${reason}`,
});
