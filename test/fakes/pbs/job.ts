import type { QsubRequest } from "./request.ts";
import type { Chunk } from "./select.ts";

/** A job of the fake server, and its attributes as qstat prints them. */

export interface Owner {
  readonly user: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly shell: string;
}

export interface Job {
  readonly id: string;
  readonly sequence: number;
  readonly name: string;
  readonly owner: Owner;
  readonly request: QsubRequest;
  readonly queue: string;
  readonly script: string;
  readonly cwd: string;
  readonly chunks: readonly Chunk[];
  readonly select: string;
  readonly place: string;
  readonly walltime?: number;
  readonly variables: readonly (readonly [string, string])[];
  readonly stdout: string;
  readonly stderr: string;
  readonly submitArguments: string;
  readonly created: Date;
  readonly cookie: string;
  /** For an array: the whole, or one of its jobs. */
  readonly arrayIndices?: readonly number[];
  readonly arrayId?: string;
  readonly arrayIndex?: number;
  state: "Q" | "H" | "W" | "R" | "E" | "F" | "B";
  substate: number;
  hold: "n" | "u" | "s";
  comment: string;
  exit?: number;
  started?: Date;
  ended?: Date;
  runs: number;
  /** Where its chunks are; the script runs on the first. */
  hosts: readonly string[];
  /** Slot numbers of exec_host by host. */
  slots: ReadonlyMap<string, number>;
  /** Set if it was deleted while it ran, or exceeded its limit: how its end will be reported. */
  ending?: { readonly exit: number; readonly substate: number; readonly comment: string; readonly until: number };
  timers: NodeJS.Timeout[];
}

export type Attribute = readonly [name: string, value: string | readonly Attribute[]];

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (value: number): string => String(value).padStart(2, "0");

export const longDate = (date: Date): string =>
  `${DAYS[date.getDay()]} ${MONTHS[date.getMonth()]} ${String(date.getDate()).padStart(2, " ")} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())} ${date.getFullYear()}`;

export const shortDate = (date: Date): string =>
  `${DAYS[date.getDay()]} ${MONTHS[date.getMonth()]} ${two(date.getDate())} at ${two(date.getHours())}:${two(date.getMinutes())}`;

export const clock = (seconds: number): string =>
  [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60].map(two).join(":");

export const vnodesOf = (job: Job): string =>
  job.hosts.map((host, at) => `(${host}:${job.chunks[at]!.text})`).join("+");

const execHostOf = (job: Job): string =>
  job.hosts
    .map((host, at) => {
      const { ncpus } = job.chunks[at]!;
      return `${host}/${job.slots.get(host) ?? 0}${ncpus > 1 ? `*${ncpus}` : ""}`;
    })
    .join("+");

const sum = (chunks: readonly Chunk[], key: "ncpus" | "ngpus" | "memKb"): number =>
  chunks.reduce((total, chunk) => total + chunk[key], 0);

const resourceList = (job: Job): Attribute[] => {
  const memory = sum(job.chunks, "memKb");
  const gpus = sum(job.chunks, "ngpus");
  const list: [string, string][] = [
    ...(memory > 0 ? [["mem", memory % 1024 === 0 ? `${memory / 1024}mb` : `${memory}kb`] as [string, string]] : []),
    ["ncpus", String(sum(job.chunks, "ncpus"))],
    ...(gpus > 0 ? [["ngpus", String(gpus)] as [string, string]] : []),
    ["nodect", String(job.chunks.length)],
    ["place", job.place],
    ["select", job.select],
    ...(job.walltime === undefined ? [] : [["walltime", clock(job.walltime)] as [string, string]]),
  ];
  return list;
};

const used = (job: Job): Attribute[] => [
  ["cpupercent", "0"],
  ["cput", "00:00:00"],
  ["mem", "0kb"],
  ["ncpus", String(sum(job.chunks, "ncpus"))],
  ["vmem", "0kb"],
  ["walltime", clock((job.ended!.getTime() - job.started!.getTime()) / 1000)],
];

/** In the order of the real PBS. */
export const attributesOf = (job: Job, server: string): Attribute[] => {
  const known = (name: string, value: string | readonly Attribute[] | undefined): Attribute[] =>
    value === undefined ? [] : [[name, value]];
  const { request } = job;
  return [
    ["Job_Name", job.name],
    ["Job_Owner", `${job.owner.user}@${server}`],
    ...known("resources_used", job.ended !== undefined && job.started !== undefined ? used(job) : undefined),
    ["job_state", job.state],
    ["queue", job.queue],
    ["server", server],
    ["Checkpoint", "u"],
    ["ctime", longDate(job.created)],
    ...known("depend", request.depend),
    ["Error_Path", `${server}:${job.stderr}`],
    ...known("exec_host", job.hosts.length > 0 ? execHostOf(job) : undefined),
    ...known("exec_vnode", job.hosts.length > 0 ? vnodesOf(job) : undefined),
    ["Hold_Types", job.hold],
    ["Join_Path", request.join],
    ["Keep_Files", request.keep],
    ["Mail_Points", "a"],
    ["mtime", longDate(job.ended ?? job.started ?? job.created)],
    ["Output_Path", `${server}:${job.stdout}`],
    ["Priority", "0"],
    ["qtime", longDate(job.created)],
    ["Rerunable", request.rerunable ? "True" : "False"],
    ["Resource_List", resourceList(job)],
    ...known("stime", job.started === undefined ? undefined : longDate(job.started)),
    ...known("obittime", job.ended === undefined || job.started === undefined ? undefined : longDate(job.ended)),
    ...known("jobdir", job.started === undefined ? undefined : job.owner.home),
    ["substate", String(job.substate)],
    ["Variable_List", job.variables],
    ...known("comment", job.comment === "" ? undefined : job.comment),
    ["etime", longDate(job.created)],
    ...known("umask", request.umask === undefined ? undefined : String(Number(request.umask))),
    ...known("run_count", job.runs === 0 ? undefined : String(job.runs)),
    ...known("Stageout_status", job.state === "F" && job.started !== undefined ? "1" : undefined),
    ...known("Exit_status", job.exit === undefined ? undefined : String(job.exit)),
    ["Submit_arguments", job.submitArguments],
    ...known("array", job.arrayIndices === undefined ? undefined : "True"),
    ...known("array_id", job.arrayId),
    ...known("array_index", job.arrayIndex === undefined ? undefined : String(job.arrayIndex)),
    ...known("history_timestamp", job.state === "F" ? String(Math.floor(job.ended!.getTime() / 1000)) : undefined),
    ["project", request.project ?? "_pbs_project_default"],
    ["Submit_Host", server],
  ];
};
