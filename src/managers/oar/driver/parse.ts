import type { ArrayPlace, JobOutcome, JobStatus } from "../../provider.ts";

/** Reads what OAR's commands print. Nothing here throws: text that is not understood is left out, or `unknown`. */

export interface OarJob {
  readonly id: string;
  readonly name: string;
  readonly owner: string;
  readonly state: string;
  readonly message: string;
  /** A wait status; absent while it runs, and when it was killed. */
  readonly exitCode?: number;
  readonly hosts: readonly string[];
  readonly events: readonly { readonly type: string; readonly description: string }[];
  /** The job that this one repeats. */
  readonly repeats?: string;
  readonly array?: ArrayPlace;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
/** Numbers come as such, or as text. */
const number = (value: unknown): number =>
  typeof value === "number" ? value : typeof value === "string" && value.trim() !== "" ? Number(value) : Number.NaN;
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

const json = (source: string): Readonly<Record<string, unknown>> => {
  try {
    return record(JSON.parse(source));
  } catch {
    return {};
  }
};

/** Whether this is an answer at all: nothing, when no job matches, or a document. */
export const isOarAnswer = (source: string): boolean => source.trim() === "" || Object.keys(json(source)).length > 0;

/** Every job has these numbers: one that is no element of an array is told by how it was asked for. */
const placeOf = (id: string, job: Readonly<Record<string, unknown>>): ArrayPlace | undefined => {
  const [array, index] = [number(job["array_id"]), number(job["array_index"])];
  const isElement = String(array) !== id || /^\S*oarsub\b[^;]*\s--array[ =]/.test(text(job["initial_request"]));
  return array > 0 && index > 0 && isElement ? { nativeId: String(array), element: index - 1 } : undefined;
};

/** `oarstat -J -f`: nothing at all for jobs that it does not know. */
export const parseOarstat = (source: string): OarJob[] =>
  Object.entries(json(source)).map(([id, value]) => {
    const job = record(value);
    const exitCode = number(job["exit_code"]);
    const repeats = number(job["resubmit_job_id"]);
    const array = placeOf(id, job);
    return {
      id,
      name: text(job["name"]),
      owner: text(job["owner"]),
      state: text(job["state"]),
      message: text(job["message"]),
      ...(Number.isInteger(exitCode) ? { exitCode } : {}),
      hosts: list(job["assigned_network_address"]).filter((host) => typeof host === "string"),
      events: list(job["events"]).map((event) => ({
        type: text(record(event)["type"]),
        description: text(record(event)["description"]),
      })),
      ...(repeats > 0 ? { repeats: String(repeats) } : {}),
      ...(array === undefined ? {} : { array }),
    };
  });

const STATES: Readonly<Record<string, JobStatus["state"]>> = {
  Waiting: "queued",
  toAckReservation: "queued",
  toLaunch: "queued",
  Hold: "held",
  Launching: "active",
  Running: "active",
  Finishing: "active",
  toError: "active",
  Suspended: "suspended",
  Resuming: "suspended",
  Terminated: "ended",
  Error: "ended",
};

/** Events that say why a job ended, the strongest first. */
const TELLING: readonly (readonly [RegExp, JobOutcome])[] = [
  [/^WALLTIME$/, "timeout"],
  [/^BESTEFFORT_KILL$/, "preempted"],
  [/^FRAG_JOB_REQUEST$/, "cancelled"],
  [/^(OUTPUT_FILES|WORKING_DIRECTORY|USER_SHELL|CANNOT_WRITE_NODE_FILE|CANNOT_CREATE_TMP_DIRECTORY)$/, "start-failed"],
  [/PROLOGUE|CPUSET/, "start-failed"],
  [/^PING_CHECKER_NODE_SUSPECTED/, "lost"],
  [/^(RESUBMIT_JOB_AUTOMATICALLY|EXTERMINATE_JOB)$/, "lost"],
  [/EPILOGUE/, "failed"],
];

const ending = (job: OarJob): Pick<JobStatus, "outcome" | "reason" | "exitCode" | "signal"> => {
  const { exitCode: status, events } = job;
  const told = TELLING.flatMap(([type, outcome]) => {
    const event = events.findLast((one) => type.test(one.type));
    return event === undefined ? [] : [{ outcome, reason: event.description.trim() }];
  })[0];
  // deleting a job that had ended leaves its event there too
  if (job.state === "Terminated" && status !== undefined && told?.outcome !== "timeout") {
    const signal = status & 127;
    const exitCode = (status >> 8) & 255;
    return {
      outcome: status === 0 ? "done" : "failed",
      ...(signal === 0 ? { exitCode } : { signal }),
    };
  }
  const reason = told?.reason === undefined || told.reason === "" ? job.message : told.reason;
  const outcome = told?.outcome ?? (job.state === "Error" ? "failed" : "unknown");
  return { outcome, ...(reason === "" ? {} : { reason: reason.slice(0, 500) }) };
};

/** `successor`: the job that OAR started in its place. */
export const statusOfJob = (job: OarJob, successor?: string): JobStatus => {
  const state = Object.hasOwn(STATES, job.state) ? STATES[job.state]! : "unknown";
  // for a held one it says only what was asked for
  const waits = state === "queued" && job.message !== "";
  return {
    state,
    raw: job.state,
    ...(waits ? { reason: job.message.slice(0, 500) } : {}),
    ...(state === "ended" ? ending(job) : {}),
    ...(job.hosts.length === 0 ? {} : { hosts: job.hosts }),
    ...(successor === undefined ? {} : { successor }),
  };
};

/** `oarsub`: the id, of an array those of its elements in order; none when it was refused: negative numbers are refusals. */
export const parseSubmitted = (stdout: string): string[] =>
  [...stdout.matchAll(/^OAR_JOB_ID=(\d+)$/gm)].map(([, id]) => id!);

const USUAL =
  /^\[ADMISSION RULE\] (Modify resource description|Set default walltime)|^OAR_JOB_ID=|please verify your request syntax|^#+$/;

/** The words of a refusal, without what is said every time where there are others. */
export const refusalOf = (stderr: string, stdout: string): string => {
  const lines = `${stderr}\n${stdout}`.split("\n").map((line) => line.trim());
  const said = lines.filter((line) => line !== "");
  const telling = said.filter((line) => !USUAL.test(line));
  return (telling.length === 0 ? said : telling).join("; ").slice(0, 1000) || "no reason given";
};

export interface OarNode {
  readonly name: string;
  readonly cores: number;
  readonly isAlive: boolean;
  /** Bytes; 0 when no property says. */
  readonly memory: number;
  readonly gpus: number;
}

/** `oarnodes -J`: one entry per resource, here per node. */
export const parseNodes = (source: string, memoryPerCoreProperty?: string): OarNode[] => {
  const nodes = new Map<string, { rows: Readonly<Record<string, unknown>>[] }>();
  for (const value of Object.values(json(source))) {
    const row = record(value);
    const name = text(row["network_address"]);
    if (name === "" || text(row["type"]) !== "default") continue;
    const node = nodes.get(name) ?? { rows: [] };
    node.rows.push(row);
    nodes.set(name, node);
  }
  return [...nodes].map(([name, { rows }]) => {
    const different = (property: string): number =>
      new Set(rows.map((row) => row[property]).filter((value) => value !== undefined && value !== null && value !== ""))
        .size;
    const largest = (property: string): number => Math.max(0, ...rows.map((row) => number(row[property]) || 0));
    const cores = different("core") || rows.length;
    const perCore = memoryPerCoreProperty === undefined ? 0 : largest(memoryPerCoreProperty) * cores;
    return {
      name,
      cores,
      isAlive: rows.some((row) => row["state"] === "Alive"),
      memory: (perCore || largest("memnode")) * 1024 * 1024,
      gpus: different("gpu"),
    };
  });
};
