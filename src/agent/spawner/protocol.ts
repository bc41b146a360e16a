/**
 * What the agent and its spawner processes say to each other over stdin and stdout. native/ is the other end in C,
 * node-spawner.ts the same in Node: a change here changes VERSION there.
 *
 * A frame is a u32 length (of what follows), a u8 type and a body; all numbers are little-endian. Text is a u32 length,
 * the bytes and a NUL that the length does not count; absent text is the length NONE and nothing else.
 *
 *   ENV      u32 id, u32 count, text…            STARTED  u32 id, u32 pid
 *   DROP_ENV u32 id                              OUTPUT   u32 id, u8 fd, bytes
 *   START    see requests.ts                     EXIT     see events.ts
 *   END      u32 id, u32 grace ms or NONE        HELLO    u32 version, u32 pid (always the first frame)
 *   SIGNAL   u32 id, u32 signal
 */
export const VERSION = 6;
export const MAX_FRAME = 8 * 1024 * 1024;
export const NONE = 0xffff_ffff;

/** Output that waits for a slow agent; beyond it, tasks' pipes stay full. */
export const OUT_HIGH = 4 * 1024 * 1024;

export const Request = { ENV: 1, DROP_ENV: 2, START: 3, END: 4, SIGNAL: 5 } as const;
export const Event = { HELLO: 64, STARTED: 65, OUTPUT: 66, EXIT: 67 } as const;

/** Where a start failed; the index is the number on the wire. */
export const STAGES = [null, "cwd", "stdout", "stderr", "tmpdir", "exec", "fork", "dropped"] as const;
export type Stage = NonNullable<(typeof STAGES)[number]>;

export interface StartRequest {
  /** Chosen by the caller, unique among the live tasks of one spawner. */
  readonly id: number;
  /** argv[0] is looked up in the PATH of the task's own environment. */
  readonly argv: readonly string[];
  /** An environment that was defined before. */
  readonly env: number;
  /** `K=V` entries that override it; of equal names the last wins. */
  readonly extraEnv: readonly string[];
  /** Further entries, behind those: the same ones of many tasks, and then those of this task. */
  readonly commonEnv?: CommonEntries;
  readonly ownEnv?: readonly string[];
  readonly cwd: string;
  /** Absolute path of a file to make or truncate; null: captured and sent back. Equal paths share one open file. */
  readonly stdout: string | null;
  readonly stderr: string | null;
  /** Files are not truncated: each write goes to their end (O_APPEND), since several tasks write to them. */
  readonly append: boolean;
  /**
   * The task gets a directory (0700, empty) below tmpdirsOf(this, the spawner), named by TMPDIR in its environment. All
   * that it leaves there is removed before its exit is reported.
   */
  readonly tmpdir: string | null;
  /** Cores to bind the task to; those that do not exist here are left out. */
  readonly cpus: readonly number[] | null;
  /** The value of SLIPWAY_TOKEN in extraEnv: whatever carries it belongs to this task. */
  readonly token: string;
  readonly graceMs: number;
  /**
   * A task that this one follows: it begins when that one's exit is reported, without a round trip to the agent. With
   * null, or a task that has already ended, it begins at once. If it is ended before it begins, it exits with the stage
   * "dropped".
   */
  readonly after: number | null;
  /** A cgroup v2 directory in which the task gets a group of its own, if that is possible. */
  readonly cgroup: string | null;
}

/** Entries that many tasks have, written once. */
export interface CommonEntries {
  readonly entries: readonly string[];
  /** As in a frame; absent before the first use, or if one of them cannot be sent. */
  bytes?: Buffer;
}

/** Where a spawner makes the TMPDIRs of tasks that were started with this prefix; it removes it when it is idle. */
export const tmpdirsOf = (prefix: string, pid: number): string => `${prefix}-${pid}`;

export interface Exit {
  readonly id: number;
  /** Both null if the task never started for a reason other than its command (127 not found, 126 not executable). */
  readonly code: number | null;
  readonly signal: number | null;
  /** Epoch, milliseconds with a fraction. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly error: null | { readonly stage: Stage; readonly errno: number; readonly code: string };
  /**
   * The largest of its processes that were waited for. 0 if unknown (the Node implementation); otherwise never less than
   * the spawner's own few megabytes.
   */
  readonly maxRssBytes: number;
  /** The most that its cgroup had at once; 0 if it has none, or one that does not count memory. */
  readonly cgroupPeakBytes: number;
  /** Processes in its cgroup that the kernel killed for memory; 0 where nobody counts them. */
  readonly oomKills: number;
  readonly userMs: number;
  readonly systemMs: number;
  /** From storage and to it, by its processes that were waited for; what the page cache answered is not counted. */
  readonly readBytes: number;
  readonly writtenBytes: number;
  /** The agent asked for its end before it came; false if it was over by itself when the request arrived. */
  readonly ended: boolean;
  /** Processes that outlived the main one and had to be killed. */
  readonly strays: number;
}
