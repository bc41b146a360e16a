/** What a fake OpenPBS is like. The commands find this beside themselves, as real ones find /etc/pbs.conf. */
export interface PbsConfig {
  /** Everything is below it: commands in bin, spool, logs, the server's socket. */
  readonly root: string;
  readonly server: string;
  readonly nodes: readonly NodeConfig[];
  readonly queues: readonly QueueConfig[];
  readonly defaultQueue: string;
  /**
   * `head` writes JSON; `release` writes what some released builds do: text that looks like a number without quotes,
   * control characters and non-ASCII letters as bytes, and an empty variable that swallows the next.
   */
  readonly json: "head" | "release";
  /** The build that prints only the first job when asked for several as JSON. */
  readonly onlyFirst: boolean;
  /** Whether jobs that have ended are remembered (the server's job_history_enable, which is off by default). */
  readonly history: boolean;
  /** Whether root may have jobs (the server's acl_roots). */
  readonly rootMaySubmit: boolean;
  /** How long a deleted job is still R: 8 to 10 s on a real PBS. */
  readonly killMs: number;
  /**
   * How much longer the processes on its other nodes live, which get no signal: 13 to 23 s after the deletion on a real
   * PBS.
   */
  readonly sistersMs: number;
  /** How long after its walltime a job is ended: 5 s on a real PBS. */
  readonly lateMs: number;
  /**
   * How long copying output takes: that long a job is E, its status known and its output not there yet. Seconds for
   * large files.
   */
  readonly stageMs: number;
  /** How long a job stays in E when its output cannot be copied back. */
  readonly copyMs: number;
  /** How long the server takes to notice that a node is gone. */
  readonly nodeFailMs: number;
  /** How long qstat and qdel take for each unknown id. */
  readonly unknownMs: number;
  /** How long the daemon that qsub leaves behind stays: a minute after its last use on a real PBS. */
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

/** The answer to a command: bytes, since what it prints may not be text. */
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
