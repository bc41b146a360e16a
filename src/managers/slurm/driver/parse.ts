import { elementId, elementsOf, isElement } from "./array-ids.ts";
import { expandHostlist } from "./hostlist.ts";
import type { ArrayPlace, JobOutcome, JobStatus, Partition } from "../../provider.ts";

/**
 * What Slurm's commands print, as they are asked to: fields end with characters that no name can hold by accident, so
 * that a job's name with spaces, bars or line breaks shifts nothing. Text that fits nothing is left out or `unknown`.
 */

const FIELD = "\x1f";
const RECORD = "\x1e";

type State = JobStatus["state"];

/** Every state of Slurm 22.05 and what newer ones add; `ended` has its outcome. */
const STATES: Readonly<Record<string, State | readonly ["ended", JobOutcome]>> = {
  PENDING: "queued",
  CONFIGURING: "queued",
  POWER_UP_NODE: "queued",
  REQUEUED: "queued",
  REQUEUE_FED: "queued",
  REQUEUE_HOLD: "held",
  SPECIAL_EXIT: "held",
  RESV_DEL_HOLD: "held",
  RUNNING: "active",
  COMPLETING: "active",
  RESIZING: "active",
  SIGNALING: "active",
  STAGE_OUT: "active",
  SUSPENDED: "suspended",
  STOPPED: "suspended",
  COMPLETED: ["ended", "done"],
  FAILED: ["ended", "failed"],
  CANCELLED: ["ended", "cancelled"],
  TIMEOUT: ["ended", "timeout"],
  DEADLINE: ["ended", "timeout"],
  OUT_OF_MEMORY: ["ended", "out-of-memory"],
  NODE_FAIL: ["ended", "lost"],
  BOOT_FAIL: ["ended", "start-failed"],
  PREEMPTED: ["ended", "preempted"],
  // another cluster of the federation took it
  REVOKED: ["ended", "cancelled"],
};

const HELD = /JobHeld|JobHold|\bheld\b|special exit/i;

/** What slurmd reports for a job whose files it could not open or whose directory it could not enter. */
const LAUNCH_FAILURE = 53;

/** Outcomes that a signal explains; elsewhere Slurm uses the field for numbers of its own, such as 125. */
const BY_SIGNAL: readonly JobOutcome[] = ["failed", "cancelled", "timeout", "preempted"];

/** From `3:9` (exit code, signal) or the wait status as one number; an exit code 0 only where it means success. */
const exitOf = (text: string, outcome: JobOutcome): Pick<JobStatus, "exitCode" | "signal"> => {
  const { code, signal } = exitNumbers(text);
  if (signal > 0) return BY_SIGNAL.includes(outcome) ? { signal } : {};
  return code === undefined || (code === 0 && outcome !== "done") ? {} : { exitCode: code };
};

const exitNumbers = (text: string): { readonly code: number | undefined; readonly signal: number } => {
  const [, code, signal] = /^(\d{1,9}):(\d{1,9})$/.exec(text) ?? [];
  if (code !== undefined) return { code: Number(code), signal: Number(signal) };
  const status = /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  return status === undefined ? { code: undefined, signal: 0 } : { code: status >> 8, signal: status & 127 };
};

const reasonOf = (text: string): string | undefined => (text === "" || text === "None" ? undefined : text);

const hostsOf = (text: string): readonly string[] | undefined => {
  const hosts = /^(None assigned|\(null\)|)$/.test(text) ? [] : expandHostlist(text);
  return hosts.length === 0 ? undefined : hosts;
};

export const statusOf = (raw: string, reason: string, exit: string, nodes: string): JobStatus => {
  // `CANCELLED by 1000`, or `CANCELLED+` where a column was too narrow
  const word = /^[A-Z_]+/.exec(raw)?.[0] ?? "";
  const known = Object.hasOwn(STATES, word) ? STATES[word]! : "unknown";
  const why = reasonOf(reason);
  const hosts = hostsOf(nodes);
  const shared = { raw, ...(why === undefined ? {} : { reason: why }), ...(hosts === undefined ? {} : { hosts }) };
  if (typeof known === "string") {
    const isHeld = known === "queued" && why !== undefined && HELD.test(why);
    return { state: isHeld ? "held" : known, ...shared };
  }
  const neverStarted = word === "FAILED" && exitNumbers(exit).signal === LAUNCH_FAILURE;
  const outcome = neverStarted ? "start-failed" : known[1];
  return { state: "ended", outcome, ...shared, ...exitOf(exit, outcome) };
};

export interface ListedJob {
  readonly id: string;
  readonly name: string;
  readonly status: JobStatus;
  readonly array?: ArrayPlace;
}

/** For `squeue -O`; the name, which may hold anything, comes last. An array has a row for each element with `--array`. */
export const SQUEUE_FORMAT = `JobID:${FIELD},ArrayJobID:${FIELD},ArrayTaskID:${FIELD},State:${FIELD},exit_code:${FIELD},Reason:${FIELD},NodeList:${FIELD},Name:${RECORD}`;

export const parseSqueue = (text: string): ListedJob[] =>
  text.split(`${RECORD}\n`).flatMap((record) => {
    const [job = "", whole = "", task = "", state, exit, reason, nodes, ...name] = record.split(FIELD);
    if (!/^\d+$/.test(job) || name.length === 0) return [];
    const listed = { name: name.join(FIELD), status: statusOf(state!, reason!, exit!, nodes!) };
    // `N/A` where it is no element
    if (!/^\d{1,9}$/.test(task)) return [{ id: job, ...listed }];
    return [{ id: elementId(whole, Number(task)), ...listed, array: { nativeId: whole, element: Number(task) } }];
  });

/** For `sacct -P`, with times in seconds since 1970. */
export const SACCT_FORMAT = "JobID,JobIDRaw,State,ExitCode,End,NodeList,Reason";
export const SACCT_DELIMITER = FIELD;
export const SACCT_TIME_FORMAT = "%s";

/** For the first seconds a row may say COMPLETED and more that is not so. */
const UNSETTLED_S = 5;

/**
 * The history of jobs that the controller no longer shows. A row that is too young to be true is `unknown`, to be asked
 * again; one that never got an end although the controller has forgotten the job has ended in an unknown way.
 * Elements that never began share one row, `12_[3-5,8]`; what a row of its own says of one counts.
 */
export const parseSacct = (text: string, nowMs: number): ReadonlyMap<string, JobStatus> => {
  const answers = new Map<string, JobStatus>();
  const together = new Map<string, JobStatus>();
  for (const line of text.split("\n")) {
    const [shown = "", raw = "", state, exit, end, nodes, reason] = line.split(FIELD);
    if (!/^\d+$/.test(raw) || reason === undefined) continue;
    const ids = elementsOf(shown);
    const status = settled(statusOf(state!, reason, exit!, nodes!), nowMs / 1000 - Number(end));
    if (ids === undefined) answers.set(isElement(shown) ? shown : raw, status);
    else for (const id of ids) together.set(id, status);
  }
  for (const [id, status] of together) if (!answers.has(id)) answers.set(id, status);
  return answers;
};

/** What a row of that age, in seconds, can be taken for. */
const settled = (status: JobStatus, age: number): JobStatus => {
  const { raw } = status;
  if (status.state !== "ended")
    return { state: "ended", outcome: "unknown", raw, reason: "the controller has forgotten it" };
  if (Math.abs(age) < UNSETTLED_S) return { state: "unknown", raw, reason: "its record is not yet complete" };
  return status;
};

/** `sbatch --parsable` prints `ID` or `ID;CLUSTER`, possibly after a site's own lines. */
export const parseSubmitted = (text: string): string | undefined =>
  text
    .split("\n")
    .map((line) => /^(\d+)(;\S*)?\s*$/.exec(line)?.[1])
    .findLast((id) => id !== undefined);

/** What an `sbatch` or `scancel` said, without its own name in front. */
export const wordsOf = (stderr: string): string =>
  stderr
    .split("\n")
    .map((line) => line.replace(/^s[a-z]+: (error: |fatal: )?/, "").trim())
    .filter((line) => line !== "")
    .join("; ")
    .slice(0, 2000);

/** `D-HH:MM:SS`, `HH:MM:SS`, `MM:SS` or minutes, in seconds; undefined for no limit and for what is none of these. */
export const parseLimit = (text: string): number | undefined => {
  const [, days, clock] = /^(?:(\d{1,6})-)?(\d{1,9}(?::\d{1,2}){0,2})$/.exec(text) ?? [];
  if (clock === undefined) return undefined;
  const parts = clock.split(":").map(Number);
  const [first = 0, second = 0, third = 0] = parts;
  if (days !== undefined) return Number(days) * 86_400 + first * 3600 + second * 60 + third;
  if (parts.length === 3) return first * 3600 + second * 60 + third;
  return first * 60 + second;
};

/** `gpu:a100:4(S:0-1),gpu:2,craynetwork:3` → how many GPUs, and of which types. */
export const parseGres = (text: string): { readonly gpus: number; readonly types: readonly string[] } => {
  let gpus = 0;
  const types = new Set<string>();
  for (const entry of text.replaceAll(/\([^)]*\)/g, "").split(",")) {
    const [, type, count] = /^gpu(?::([^:]*[^:\d][^:]*))?(?::(\d{1,6}))?$/.exec(entry.trim()) ?? [];
    if (!/^gpu(:|$)/.test(entry.trim())) continue;
    gpus += count === undefined ? 1 : Number(count);
    if (type !== undefined) types.add(type);
  }
  return { gpus, types: [...types] };
};

/** For `sinfo --exact -o`: one line for each partition and kind of node. */
export const SINFO_FORMAT = ["%R", "%P", "%a", "%l", "%D", "%c", "%m", "%G"].join(FIELD);

const MIB = 1024 * 1024;

export const parseSinfo = (text: string): Partition[] => {
  const found = new Map<string, Partition>();
  for (const line of text.split("\n")) {
    const [name = "", marked, available, limit, nodes, cpus, memory, gres] = line.split(FIELD);
    if (name === "" || gres === undefined) continue;
    const number = (field: string | undefined): number => Number(/^\d{1,15}/.exec(field ?? "")?.[0] ?? 0);
    const { gpus, types } = parseGres(gres.trim());
    const maxWalltime = parseLimit(limit!);
    const before = found.get(name);
    found.set(name, {
      name,
      isDefault: marked!.endsWith("*"),
      isUp: available === "up",
      nodes: number(nodes) + (before?.nodes ?? 0),
      cpusPerNode: Math.max(number(cpus), before?.cpusPerNode ?? 0),
      memoryPerNode: Math.max(number(memory) * MIB, before?.memoryPerNode ?? 0),
      gpusPerNode: Math.max(gpus, before?.gpusPerNode ?? 0),
      gpuTypes: [...new Set([...(before?.gpuTypes ?? []), ...types])],
      ...(maxWalltime === undefined ? {} : { maxWalltime }),
    });
  }
  return [...found.values()];
};
