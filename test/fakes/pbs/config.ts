/** What a pretended OpenPBS is like. The commands find it beside themselves, as real ones find /etc/pbs.conf. */
export interface PbsConfig {
  /** Everything of it lies below: commands in bin, spool, logs, the server's socket. */
  readonly root: string;
  readonly server: string;
  readonly nodes: readonly NodeConfig[];
  readonly queues: readonly QueueConfig[];
  readonly defaultQueue: string;
  /**
   * `head` writes JSON; `release` writes what some released builds do: numbers unquoted wherever a text looks like one,
   * control characters and letters beyond ASCII as bytes, and an empty variable that swallows the next.
   */
  readonly json: "head" | "release";
  /** The build that prints only the first job when JSON is asked for several. */
  readonly onlyFirst: boolean;
  /** Whether jobs that have ended are remembered (the server's job_history_enable, which is off by default). */
  readonly history: boolean;
  /** Whether root may have jobs (the server's acl_roots). */
  readonly rootMaySubmit: boolean;
  /** How long a deleted job is still R: 8 to 10 s on the real thing. */
  readonly killMs: number;
  /** How much longer the processes on its other nodes live, which nobody tells: 13 to 23 s after the deletion on the real thing. */
  readonly sistersMs: number;
  /** How much later than its walltime a job is ended: 5 s on the real thing. */
  readonly lateMs: number;
  /** How long output is copied: so long a job is E, its status known and its output not there yet. Seconds for large files. */
  readonly stageMs: number;
  /** How long a job whose output cannot be brought back stays in E. */
  readonly copyMs: number;
  /** Until the server notices that a node is gone. */
  readonly nodeFailMs: number;
  /** How long qstat and qdel take over each id that nobody knows. */
  readonly unknownMs: number;
  /** How long the daemon stays that qsub leaves behind: a minute after its last use on the real thing. */
  readonly qsubStaysMs: number;
}

export interface NodeConfig {
  readonly name: string;
  readonly ncpus: number;
  readonly memKb: number;
  readonly ngpus: number;
  /** Further resources: `arch`, or `bigmem: "True"`. */
  readonly custom: Readonly<Record<string, string>>;
  /** The only queue that it serves. */
  readonly queue?: string;
}

export interface QueueConfig {
  readonly name: string;
  /** Seconds. */
  readonly maxWalltime?: number;
  readonly defaultWalltime?: number;
  readonly enabled: boolean;
  readonly started: boolean;
}

export const socketOf = (root: string): string => `${root}/server.socket`;

export const VERSION = "23.06.06";

/** What a command is answered: bytes, since what it prints may be no text. */
export interface Answer {
  readonly code: number;
  readonly stdout?: string;
  /** Instead of stdout: bytes in base64. */
  readonly bytes?: string;
  readonly stderr?: string;
  /** As if nothing listened. */
  readonly unreachable?: boolean;
}

/** Exit statuses of the commands. */
export const STATUS = {
  finished: 35,
  conflictingResource: 5,
  unknownJob: 153,
  unauthorized: 159,
  noServer: 162,
  badValue: 166,
  badState: 168,
  unknownQueue: 170,
  badUser: 175,
  unknownResource: 187,
  queueLimit: 188,
  unreachable: 255,
} as const;
