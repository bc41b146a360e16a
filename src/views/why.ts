import { isAhead } from "../core/held.ts";
import { Outcome, judgeLink, outcomeOfRow, placeBefore } from "../core/item-links.ts";
import { KILLED_FOR_MEMORY } from "../core/memory-retry.ts";
import { formatDuration, formatResource } from "../core/quantities.ts";
import { type Group, type Run, groupOf, indexOfRow, runState, shapeOfRow } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { TASK_STATES, Task, isFinalTask } from "../core/states.ts";
import { stateWord } from "../core/state-words.ts";
import { isSkipped, isUpToDate } from "../core/skipped.ts";
import { Flag, peek, stateOf } from "../core/table.ts";
import type { WhyView } from "../api/schemas.ts";
import type { AgentId, Row } from "../core/ids.ts";
import type { Basis } from "../learned/expected.ts";
import { taskName } from "./views.ts";
import { type JobSurroundings, whyJob } from "./why-job.ts";

/** Why a run or a task is not running, or why it failed, and what would help: in words that need no expert. */

export interface ManagerSays {
  readonly text: string;
  readonly remedy: string | null;
}

export interface Surroundings {
  readonly state: State;
  readonly now: number;
  /** Why nothing at all is placed now: the disk is full, the server stops. */
  readonly blocked: string | null;
  /** Whether any queue of its cluster could run it. What follows covers only these queues. */
  readonly able: boolean;
  readonly place: string;
  /** Why a fleet starts no pilot, if that is so, and what is known about the last one that did not start. */
  readonly fleetProblem: string | null;
  readonly lastFailure: string | null;
  readonly livePilots: number;
  /** Pilots that the manager has not started or holds up, each with what the manager says about it. */
  readonly waitingPilots: readonly ManagerSays[];
  /** The same for an agent's pilot. */
  stalledBy(agent: AgentId): ManagerSays | null;
  readonly connectedAgents: number;
  readonly suspectAgents: number;
  /** All agents that take tasks end before its time-request would be up. */
  readonly tooLate: boolean;
  /** Which amount of what its machine or cluster has in all it waits for, and who holds it. */
  readonly sharedWait: string | null;
  readonly runningTasks: number;
  readonly waitingTasks: number;
  /** It waits for the first tasks of its group to show how much memory they need. */
  heldBack(run: Run, row: Row): boolean;
  /** How many waiting tasks stand before this one. */
  before(run: Run, row: Row): number;
  /** Of a task that is a job of its own, instead of what is said of pilots here; null: it goes through pilots. */
  readonly job: JobSurroundings | null;
  /** How long a task should take, and what that is based on. */
  expected(run: Run, row: Row): { readonly ms: number; readonly basis: Basis };
}

/** `; it took 4m12s the last time it succeeded`; nothing where nothing is known. */
const expectation = ({ ms, basis }: ReturnType<Surroundings["expected"]>): string => {
  const time = formatDuration(ms < 1000 ? ms / 1000 : Math.round(ms / 1000));
  switch (basis) {
    case "own":
      return `; it took ${time} the last time it succeeded`;
    case "template":
      return `; tasks like it took ${time} on average`;
    case "time-request":
      return `; its time-request is ${time}`;
    case "unknown":
      return "";
  }
};

const why = (cause: string, detail: string, remedy: string): WhyView => ({ cause, detail, remedy });

const shapeText = (group: Group, row: Row): string =>
  Object.entries(shapeOfRow(group, row).resources)
    .map(([name, units]) => `${name} ${formatResource(name, units)}`)
    .join(", ");

/** Dependencies that are still open, and how far along they are; of one task, or of all. */
const openDependencies = (run: Run, group: Group, row?: Row): string[] => [
  ...(row === undefined ? [] : openLinks(run, group, row)),
  ...openWholes(run, group, row !== undefined),
];

const openWholes = (run: Run, group: Group, isOne: boolean): string[] =>
  group.spec.after.flatMap((dependency) => {
    if ("run" in dependency) return [`run ${dependency.run}`];
    if (isOne && dependency.items !== undefined) return [];
    const other = run.groups[dependency.group]!;
    const ended = other.done + other.failed + other.canceled;
    return ended === other.count && dependency.on !== "failed"
      ? []
      : [`${other.spec.name} (${ended} of ${other.count} ended)`];
  });

/** The tasks that one waits for because of its item. */
const openLinks = (run: Run, group: Group, row: Row): string[] =>
  group.links.flatMap((link) => {
    if (judgeLink(run, link, row - group.first) === "met") return [];
    const before = run.groups[link.before]!;
    const { pairing, match } = link;
    if (pairing.kind !== "keyed") return [whichTask(run, before.first + placeBefore(pairing, row - group.first))];
    const key = pairing.after[row - group.first]!;
    const open = pairing.before.findIndex(
      (number, place) => number === key && outcomeOfRow(run, before.first + place) === Outcome.OPEN,
    );
    const example = open < 0 ? "" : `, such as ${whichTask(run, before.first + open)}`;
    const by = match === "same" ? "item" : match.by;
    return [`${before.spec.name} with its ${by} (${pairing.ended[key]} of ${pairing.size[key]} ended${example})`];
  });

/** `3.17 (align[s1])` */
const whichTask = (run: Run, row: Row): string => `${run.id}.${indexOfRow(run, row)} (${taskName(run, row)})`;

/** The task whose end another was cancelled for, because of its item. */
const cancelledFor = (run: Run, group: Group, row: Row): string => {
  for (const link of group.links) {
    if (link.pairing.kind === "keyed" || judgeLink(run, link, row - group.first) !== "never") continue;
    return `: ${whichTask(run, run.groups[link.before]!.first + placeBefore(link.pairing, row - group.first))}`;
  }
  return "";
};

const whyWaits = ({ waitingPilots }: Surroundings, what: string): WhyView =>
  why(
    "pilot-queued",
    `${what}: ${waitingPilots
      .slice(0, 3)
      .map(({ text }) => text)
      .join("; ")}`,
    waitingPilots.find(({ remedy }) => remedy !== null)?.remedy ??
      "They start when the manager has room for them; `slipway pilots list` shows each.",
  );

/** `before` of the tasks that wait stand before it, where it is one task. */
const whyReady = (around: Surroundings, what: string, before?: number): WhyView => {
  const answer = whyNotPlaced(around, what, before);
  return answer.detail.startsWith(`${what}; `) ? { ...answer, waits: answer.detail.slice(what.length + 2) } : answer;
};

const whyNotPlaced = (around: Surroundings, what: string, before: number | undefined): WhyView => {
  if (around.job !== null) return whyJob(around.job, what);
  if (around.blocked !== null)
    return why(
      "blocked",
      `${what}; no tasks are being placed: ${around.blocked}`,
      "It continues by itself when that is over.",
    );
  if (!around.able)
    return why(
      "no-queue",
      `${what}; no queue of cluster ${around.place} could run it: its pilots are too small for it, or end too soon`,
      "`slipway clusters show` lists the queues; ask for less, or give a queue more in clusters.yaml.",
    );
  const last = around.lastFailure === null ? "" : `; the last one, ${around.lastFailure}`;
  if (around.fleetProblem !== null && around.connectedAgents === 0)
    return why(
      "no-pilot",
      `${what}; no pilot runs: ${around.fleetProblem}${last}`,
      `\`slipway clusters check ${around.place}\` says what to fix; \`slipway pilots list\` shows each pilot's reason, with --json also what it printed.`,
    );
  // silence from the agents of such pilots is no mystery
  if (around.connectedAgents === 0 && around.waitingPilots.length > 0)
    return whyWaits(around, `${what}; the pilots wait in the workload manager`);
  if (around.connectedAgents === 0 && around.suspectAgents > 0)
    return why(
      "agent-silent",
      `${what}; its agent does not answer`,
      "Slipway gives the agent up when its lease is over or its process is gone; then the tasks run again.",
    );
  if (around.connectedAgents === 0)
    return why(
      "pilot-starting",
      `${what}; waiting for a pilot to start${last}`,
      "Nothing to do; `slipway pilots list` shows it.",
    );
  if (around.tooLate)
    return why(
      "pilot-ends",
      `${what}; all pilots end before its time-request would be over`,
      "It starts on the next pilot, which Slipway starts when the fleet's max allows it.",
    );
  if (around.sharedWait !== null)
    return why(
      "busy",
      `${what}; ${around.sharedWait}`,
      "It starts when others end. A higher --priority goes first; more of it in clusters.yaml runs more at once.",
    );
  return why(
    "busy",
    `${what}; all slots that could take it are busy (${around.runningTasks} tasks are with agents, ${around.waitingTasks} wait${before === undefined ? "" : before === 0 ? ", it is the next" : `, ${before} of them before it`})`,
    "It starts when others end. A higher --priority goes first; more resources in clusters.yaml run more at once.",
  );
};

/** That its last attempt had too little memory and this one has more. */
const memoryText = (run: Run, group: Group, row: Row): string => {
  if (!group.memory.has(row)) return "";
  const killed = run.history.get(row)?.findLast(({ reason }) => reason.startsWith(KILLED_FOR_MEMORY));
  return killed === undefined ? "" : `; attempt ${killed.n} was ${killed.reason}`;
};

/** Why a task failed: that does not depend on anything around it. */
export const whyFailed = (run: Run, row: Row, lastStderr: string | null): WhyView => {
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  const attempts = page?.attempt[slot] ?? 0;
  const reason = run.reasons[page?.reason[slot] ?? 0] ?? "";
  const said =
    lastStderr === null || lastStderr.trim() === "" ? "" : `; it said: ${lastStderr.trim().split("\n").at(-1)}`;
  return why(
    "failed",
    `${reason} after ${attempts} attempt${attempts === 1 ? "" : "s"}${memoryText(run, groupOf(run.groups, row), row)}${said}`,
    `See \`slipway logs ${run.id}.${indexOfRow(run, row)} --stderr\`; \`slipway retry ${run.id}\` runs failed tasks again; --retries N does so automatically.`,
  );
};

export const whyTask = (around: Surroundings, run: Run, row: Row, lastStderr: string | null): WhyView => {
  const group = groupOf(run.groups, row);
  const state = stateOf(run.table, row);
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  const reason = page === undefined ? "" : (run.reasons[page.reason[slot]!] ?? "");
  const id = `${run.id}.${indexOfRow(run, row)}`;
  if (isSkipped(run, row))
    return why(
      "skipped",
      isUpToDate(run, row)
        ? "it did not need to run: its outputs are up to date"
        : `run ${run.spec.resumes} has done it`,
      `\`slipway retry ${id}\` runs it all the same.`,
    );
  if (state === Task.DONE) return why("done", "it is done", "Nothing to do.");
  if (state === Task.FAILED) return whyFailed(run, row, lastStderr);
  if (state === Task.CANCELED) {
    if ((page!.flags[slot]! & Flag.UNNEEDED) !== 0)
      return why("not-needed", reason, "Nothing to do: it is a handler for a failure that did not happen.");
    return why(
      "canceled",
      `${reason}${cancelledFor(run, group, row)}`,
      `\`slipway retry ${run.id}\` runs cancelled and failed tasks again.`,
    );
  }
  if (state === Task.NEW) {
    const ahead =
      page === undefined || !isAhead(page, slot) ? "" : `; agent ${page.agent[slot]} has it and begins it then`;
    return why(
      "dependencies",
      `it waits for ${openDependencies(run, group, row).join(", ")}${ahead}`,
      "It starts when these have ended.",
    );
  }
  const stalled = state >= Task.EXECUTING ? around.stalledBy(page!.agent[slot]!) : null;
  if (stalled !== null)
    return why(
      "stalled",
      `it is stalled: ${stalled.text}`,
      stalled.remedy ?? "It continues, or runs again, by itself.",
    );
  if (state >= Task.EXECUTING)
    return why(
      "running",
      `it has been running for ${formatDuration(Math.max(0, around.now - page!.started[slot]!) / 1000)}${memoryText(run, group, row)}${expectation(around.expected(run, row))}`,
      "Nothing to do; --time-limit sets how long it may run.",
    );
  if (state >= Task.SCHEDULING && page!.agent[slot] !== 0)
    return why(
      "queued-at-agent",
      `agent ${page!.agent[slot]} has it and starts it with its next free slot (${shapeText(group, row)})${memoryText(run, group, row)}`,
      "It starts when a task there ends.",
    );
  if (page !== undefined && page.finished[slot]! > 0 && group.spec.retryDelay > 0) {
    const left = (page.finished[slot]! + group.spec.retryDelay * 1000 - around.now) / 1000;
    if (left > 0)
      return why(
        "retry-delay",
        `its last attempt failed; the next begins in ${formatDuration(Math.ceil(left))}`,
        "--retry-delay sets the time between attempts.",
      );
  }
  if (around.heldBack(run, row))
    return why(
      "first-tasks",
      `it waits for the first tasks of ${group.spec.name}: nobody knows yet how much memory they need (mem: auto)`,
      "It starts when some of them have ended, or when they say nothing for unknown-task-duration. An amount instead of auto starts all at once.",
    );
  return whyReady(
    around,
    `it is ready and asks for ${shapeText(group, row)}${memoryText(run, group, row)}${expectation(around.expected(run, row))}`,
    around.before(run, row),
  );
};

/** The most frequent reasons for failed tasks. */
const failureReasons = (run: Run): string => {
  const tally = new Map<number, { count: number; row: Row }>();
  for (const [index, page] of run.table.pages.entries()) {
    if (page === undefined) continue;
    const rows = Math.min(run.table.pageRows, run.total - index * run.table.pageRows);
    for (let slot = 0; slot < rows; slot += 1) {
      if (page.state[slot] !== Task.FAILED) continue;
      const entry = tally.get(page.reason[slot]!) ?? { count: 0, row: index * run.table.pageRows + slot };
      entry.count += 1;
      tally.set(page.reason[slot]!, entry);
    }
  }
  return [...tally]
    .toSorted(([, a], [, b]) => b.count - a.count)
    .slice(0, 3)
    .map(
      ([reason, { count, row }]) => `${count} with ${run.reasons[reason]} (such as ${run.id}.${indexOfRow(run, row)})`,
    )
    .join("; ");
};

export const whyRun = (around: Surroundings, run: Run): WhyView => {
  switch (runState(run)) {
    case "DONE":
      return why("done", "all tasks are done", "Nothing to do.");
    case "FAILED":
      return why(
        "failed",
        `${run.counts[Task.FAILED]} of ${run.total} tasks failed: ${failureReasons(run)}${run.canceled === "" ? "" : `; the rest was cancelled: ${run.canceled}`}`,
        `\`slipway show ${run.id}\` lists failed tasks; \`slipway retry ${run.id}\` runs them again.`,
      );
    case "CANCELED":
      return why(
        "canceled",
        run.canceled === "" ? "tasks were cancelled" : run.canceled,
        `\`slipway retry ${run.id}\` runs what was cancelled.`,
      );
    default:
  }
  const counts = [...run.counts];
  const running = counts.slice(Task.EXECUTING, Task.DONE).reduce((sum, n) => sum + n, 0);
  const words = new Map<string, number>();
  for (const [code, name] of TASK_STATES.entries())
    if (counts[code]! > 0 && !isFinalTask(code))
      words.set(stateWord(name), (words.get(stateWord(name)) ?? 0) + counts[code]!);
  const text = [...words].map(([word, count]) => `${count} ${word}`).join(", ");
  if (running > 0 && around.waitingPilots.length > 0 && around.waitingPilots.length === around.livePilots)
    return whyWaits(around, `${running} tasks are stalled; ${text}`);
  if (running > 0) return why("running", `${running} tasks run; ${text}`, "Nothing to do.");
  if (run.counts[Task.PENDING]! + run.counts[Task.SCHEDULING]! > 0)
    return whyReady(around, `tasks are ready (${text})`);
  const waiting = run.groups.find(
    ({ base, waits, links, done, failed, canceled, count }) =>
      base === Task.NEW && (waits > 0 || (links.length > 0 && done + failed + canceled < count)),
  );
  if (waiting !== undefined)
    return why(
      "dependencies",
      `${waiting.spec.name} waits for ${openDependencies(run, waiting).join(", ")}`,
      "It starts when these have ended.",
    );
  return whyReady(around, text);
};
