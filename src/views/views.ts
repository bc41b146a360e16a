import { constants } from "node:os";
import { MOST_TIME } from "../core/bounds.ts";
import type { Item } from "../core/item.ts";
import { countRows } from "../core/group-counts.ts";
import { itemIn, itemsOf } from "../core/item-source.ts";
import { LOST_REASONS, type OutputLost } from "../core/output-lost.ts";
import { PEAK_SOURCES, type Peak } from "../core/peak.ts";
import { attemptsOf, droppedOf } from "../core/past-attempts.ts";
import { placeOf } from "../core/rank-places.ts";
import { fromUnits } from "../core/resources.ts";
import { setOf } from "../core/retry-set.ts";
import { type Attempt, type Group, type Run, groupOf, indexOfRow, runState, shapeOfRow } from "../core/run.ts";
import type { GroupSpec } from "../core/spec.ts";
import type { Agent, RunSummary, State } from "../core/state.ts";
import { TASK_STATES, Task, taskStateName } from "../core/states.ts";
import { peek, stateOf } from "../core/table.ts";
import { usedBy } from "../core/usage.ts";
import { isSkipped, isUpToDate } from "../core/skipped.ts";
import { agentOf } from "../core/task-job.ts";
import { type CompiledTask, compileTask, expandTask } from "../core/task-template.ts";
import { expand, type Template, type TemplateContext } from "../core/template.ts";
import type { Estimate } from "../eta/estimate.ts";
import type { AttemptView, OutputLostView, PeakMemoryView, RanksView, RunView, TaskView } from "../api/schemas.ts";
import { setView } from "./retry-set.ts";
import { resolve } from "node:path";
import type { Row } from "../core/ids.ts";

/** State as the API shows it. */

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

export const signalName = (number: number): string | null =>
  number === 0 ? null : (SIGNALS.get(number) ?? `signal ${number}`);

/** Hides an impossible time, which an earlier version may have let in. */
export const isoTime = (ms: number): string | null => (ms > 0 && ms <= MOST_TIME ? new Date(ms).toISOString() : null);

/** The same for a size. */
export const sizeOf = (bytes: number): number | null => (bytes >= 0 && Number.isSafeInteger(bytes) ? bytes : null);

const countsOf = (counts: ArrayLike<number>): Record<string, number> => {
  const out: Record<string, number> = {};
  for (const [code, name] of TASK_STATES.entries()) if ((counts[code] ?? 0) > 0) out[name] = counts[code]!;
  return out;
};

/** When a run ends: dates in milliseconds, or why nobody can tell. */
export type EtaDates = { readonly dates: Estimate } | { readonly reason: string } | undefined;

/** The seconds to go are rounded to tenths; a date that has passed is now. */
const etaView = (eta: EtaDates, now: number): Pick<RunView, "eta" | "etaRange" | "etaReason"> => {
  if (eta === undefined || "reason" in eta) return { eta: null, etaRange: null, etaReason: eta?.reason ?? null };
  const date = (ms: number): string => isoTime(Math.min(MOST_TIME, Math.max(now, ms)))!;
  const { p10, p50, p90 } = eta.dates;
  return {
    eta: Math.round(Math.max(0, Math.min(MOST_TIME, p50) - now) / 100) / 10,
    etaRange: { p10: date(p10), p50: date(p50), p90: date(p90) },
    etaReason: null,
  };
};

/**
 * Times of one clock never go backward, but these may come from several: the wall clock was set between two servers, or
 * agents of an earlier version reported their node's time. Here, where they are shown, they are put in order, so that
 * nobody reads a negative duration or the time of an agent whose clock was years off.
 */
const inOrder = (
  begin: number,
  { started, finished }: { readonly started: number; readonly finished: number },
  latest: number,
): { started: string | null; finished: string | null } => {
  const from = started === 0 ? begin : Math.max(begin, Math.min(started, latest));
  return {
    started: isoTime(started === 0 ? 0 : from),
    finished: isoTime(finished === 0 ? 0 : Math.max(from, Math.min(finished, latest))),
  };
};

export const runView = (run: Run, now: number, eta: EtaDates = undefined): RunView => ({
  id: run.id,
  name: run.spec.name,
  state: runState(run),
  total: run.total,
  counts: countsOf(run.counts),
  unneeded: run.unneeded,
  skipped: run.skipped,
  resumes: run.spec.resumes ?? null,
  submitted: isoTime(run.submitted),
  ...inOrder(run.submitted, run, run.finished === 0 ? now : run.finished),
  idle: run.idle / 1000,
  ...etaView(run.finished > 0 ? undefined : eta, now),
  reason: run.canceled === "" ? null : run.canceled,
  retries: run.retries,
  losses: run.losses,
  outputLost: run.lost.tasks === 0 ? null : { tasks: run.lost.tasks, bytes: run.lost.bytes },
  numbering: run.spec.numbering,
});

export const summaryView = (summary: RunSummary): RunView => {
  const failed = (summary.counts[Task.FAILED] ?? 0) > 0;
  const canceled = (summary.counts[Task.CANCELED] ?? 0) > summary.unneeded;
  return {
    id: summary.id,
    name: summary.name,
    state: failed ? "FAILED" : canceled ? "CANCELED" : "DONE",
    total: summary.total,
    counts: countsOf(summary.counts),
    unneeded: summary.unneeded,
    skipped: summary.skipped ?? 0,
    resumes: summary.resumes ?? null,
    submitted: isoTime(summary.submitted),
    ...inOrder(summary.submitted, summary, summary.finished),
    idle: (summary.idle ?? 0) / 1000,
    ...etaView(undefined, 0),
    reason: summary.canceled === "" ? null : summary.canceled,
    retries: summary.retries,
    losses: summary.losses,
    outputLost: summary.outputLost ?? null,
    numbering: summary.numbering,
  };
};

export const dependencyNames = (run: Run, group: Group): string[] =>
  group.spec.after.map((dependency) => {
    const name = "group" in dependency ? run.groups[dependency.group]!.spec.name : `run:${dependency.run}`;
    const match = "group" in dependency ? dependency.items : undefined;
    const how = [
      ...(match === undefined ? [] : [match === "same" ? "same" : `by ${match.by}`]),
      ...(dependency.on === "ok" ? [] : [dependency.on]),
    ];
    return how.length === 0 ? name : `${name} (${how.join(", ")})`;
  });

/** At most this many groups are shown with a run; a file of 100,000 entries has as many. */
const MOST_GROUPS = 200;

export const groupViews = (run: Run): NonNullable<RunView["groups"]> =>
  run.groups.slice(0, MOST_GROUPS).map((group) => {
    const { name } = group.spec;
    return { name, total: group.count, counts: countsOf(countRows(run, group)), after: dependencyNames(run, group) };
  });

export const lostView = (lost: OutputLost | undefined): OutputLostView | null => {
  if (lost === undefined) return null;
  const { stdout, stderr } = lost;
  return { bytes: stdout + stderr, stdout, stderr, reason: LOST_REASONS[lost.reason] ?? "write-failed" };
};

const peakView = (peak: Peak | undefined): PeakMemoryView | null => {
  const source = PEAK_SOURCES[peak?.by ?? 0];
  return peak === undefined || !source ? null : { bytes: peak.bytes, source };
};

/** What an attempt that has ended used. */
export const usageView = (attempt: Attempt | undefined): Required<Pick<AttemptView, "wall" | "cpu" | "io">> => {
  const { started = 0, finished = 0, usage } = attempt ?? {};
  const wall = started > 0 && finished > 0 ? Math.max(0, Math.round(finished - started)) / 1000 : null;
  if (usage === undefined) return { wall, cpu: null, io: null };
  const { userMs, systemMs, readBytes, writtenBytes } = usedBy(usage);
  return {
    wall,
    cpu: { user: userMs / 1000, system: systemMs / 1000 },
    io: { readBytes, writtenBytes, source: "rusage" },
  };
};

/** How an attempt ended, or where it is. Older versions did not record the state of earlier attempts. */
const attemptState = ({ lost, state, exit }: Attempt): AttemptView["state"] =>
  lost ? "LOST" : taskStateName(state ?? (exit === 0 ? Task.DONE : Task.FAILED));

/** The job that an agent is in, as its manager knows it. */
const nativeIdOfAgent = (state: State, agent: Agent | undefined): string | null => {
  if (agent?.taskJob === undefined) return null;
  const job = state.taskJobs.get(agent.taskJob.id);
  return job?.elements[agent.taskJob.element]?.nativeId || job?.nativeId || null;
};

const attemptView = (state: State, run: Run, attempt: Attempt): AttemptView => {
  const agent = agentOf(state, run, attempt.agent);
  return {
    n: attempt.n,
    state: attemptState(attempt),
    agent: attempt.agent === 0 ? null : String(attempt.agent),
    pilot: agent === undefined || agent.pilot === 0 ? null : String(agent.pilot),
    job: nativeIdOfAgent(state, agent),
    host: agent?.host || null,
    assigned: isoTime(attempt.assigned),
    ...inOrder(attempt.assigned, attempt, run.finished === 0 ? Infinity : run.finished),
    exitCode: attempt.exit < 0 ? null : attempt.exit,
    signal: signalName(attempt.signal),
    reason: attempt.reason === "" ? null : attempt.reason,
    lost: attempt.lost,
    outputLost: lostView(attempt.outputLost),
    peakMemory: peakView(attempt.peak),
    ...usageView(attempt),
    mem: attempt.mem ?? null,
  };
};

const itemOfRow = ({ spec, items, first }: Group, row: Row): Item | undefined =>
  itemIn(itemsOf(spec, items), row - first);

export const itemTextOf = (group: Group, row: Row): string | null => itemOfRow(group, row)?.text ?? null;

/** If a value cannot be placed, shows the template as it was written. */
const shownAs = (template: Template, context: TemplateContext): string => {
  try {
    return expand(template, context);
  } catch {
    return template.text;
  }
};

/** The last group that was looked at: rows come group by group. */
let compiled: { readonly of: GroupSpec; readonly task: CompiledTask } | undefined;

/** A task's command and paths after expansion, for its latest attempt or another. */
export const expandView = (
  run: Run,
  row: Row,
  attempt = Math.max(1, attemptsOf(run, row).at(-1)?.n ?? 1),
): { command: string[]; cwd: string; stdout: string | null; stderr: string | null } => {
  const group = groupOf(run.groups, row);
  if (compiled?.of !== group.spec) compiled = { of: group.spec, task: compileTask(group.spec) };
  const item = itemOfRow(group, row);
  const facts = { run: run.id, task: indexOfRow(run, row), attempt, item, cwd: run.spec.cwd };
  const { argv, cwd, stdout, stderr } = expandTask(compiled.task, facts, resolve, shownAs);
  return { command: [...argv], cwd, stdout, stderr };
};

/** `solve`, and with the item of one of many `solve[17]`. */
export const taskName = (run: Run, row: Row): string => {
  const group = groupOf(run.groups, row);
  return group.count === 1 ? group.spec.name : `${group.spec.name}[${itemTextOf(group, row) ?? ""}]`.slice(0, 300);
};

const ranksView = (state: State, run: Run, row: Row, group: Group, one: Record<string, number>): RanksView | null => {
  const { ranks } = group.spec;
  if (ranks === undefined) return null;
  const place = placeOf(run, row);
  return {
    count: ranks.count,
    nodes: ranks.nodes ?? null,
    places: (place?.agents ?? []).map((agent, i) => ({
      host: agentOf(state, run, agent)?.host || null,
      agent: String(agent),
      ranks: place!.ranks[i] ?? 0,
    })),
    totals: Object.fromEntries(Object.entries(one).map(([name, amount]) => [name, amount * ranks.count])),
  };
};

export const taskView = (
  state: State,
  run: Run,
  row: Row,
  lastStderr: string | null,
  job: TaskView["job"] = null,
): TaskView => {
  const group = groupOf(run.groups, row);
  const page = peek(run.table, row);
  const slot = row % run.table.pageRows;
  const resources: Record<string, number> = {};
  for (const [name, units] of Object.entries(shapeOfRow(group, row).resources))
    resources[name] = fromUnits(name, units);
  const attempts = attemptsOf(run, row);
  const last = attempts.at(-1);
  const index = indexOfRow(run, row);
  return {
    id: `${run.id}.${index}`,
    index,
    name: taskName(run, row),
    state: taskStateName(stateOf(run.table, row)),
    skipped: isSkipped(run, row),
    ...(isUpToDate(run, row) ? { upToDate: true } : {}),
    exitCode: page === undefined || page.exit[slot]! < 0 ? null : page.exit[slot]!,
    signal: page === undefined ? null : signalName(page.signal[slot]!),
    reason: page === undefined ? null : run.reasons[page.reason[slot]!] || null,
    item: itemTextOf(group, row),
    ...expandView(run, row),
    attempts: attempts.map((attempt) => attemptView(state, run, attempt)),
    attemptsDropped: droppedOf(run, row),
    resources,
    set: setView(setOf(group, row)),
    // how much it wrote is reported at its end
    stdoutBytes: last === undefined || last.finished === 0 ? null : sizeOf(last.outBytes),
    stderrBytes: last === undefined || last.finished === 0 ? null : sizeOf(last.errBytes),
    outputLost: lostView(last?.outputLost),
    peakMemory: peakView(last?.peak),
    ...usageView(last),
    ranks: ranksView(state, run, row, group, resources),
    lastStderr,
    via: group.spec.job === undefined ? "pilot" : "job",
    job,
  };
};
