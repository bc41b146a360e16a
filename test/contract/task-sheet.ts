import { expect } from "vitest";
import type { TaskView } from "../../src/api/schemas.ts";

/**
 * Tasks that between them use everything that a task is promised; what became of each is compared with what is written
 * here. They run as one run, so that a manager with a slow clock is waited for once.
 */
export interface SheetTask {
  readonly name: string;
  /** Its keys in a run's file. */
  readonly keys: Readonly<Record<string, unknown>>;
  /** What `show` says of it; absent: it is done at its first attempt. */
  readonly shows?: object;
  readonly stdout?: string | RegExp;
  readonly stderr?: string | RegExp;
  readonly check?: (seen: Seen) => Promise<void> | void;
}

export interface Seen {
  readonly task: TaskView;
  readonly stdout: string;
  readonly stderr: string;
  /** A file below the run's directory; undefined where there is none. */
  file(name: string): Promise<string | undefined>;
  /** Whether a path is there, on whichever node it was. */
  exists(path: string): boolean;
}

export interface SheetFacts {
  readonly cwd: string;
  /** Its own files begin with this. */
  readonly stem: string;
}

/** A variable of the submitter's that is exported, and one that describes the session and is not. */
export const SUBMITTED_ENV = { SHEET_WORD: "two words", SSH_SHEET: "not for tasks" } as const;

const failed = (more: object): object => ({ state: "FAILED", ...more });

/** Runs, environment, streams, files. */
const plain = ({ stem, cwd }: SheetFacts): SheetTask[] => [
  {
    name: "arguments",
    keys: { run: ["printf", "<%s>", "a b", "$HOME", "", "*", "quo'te", "{{item}}"] },
    stdout: "<a b><$HOME><><*><quo'te><{item}>",
  },
  {
    name: "shell",
    keys: { run: 'x=$(printf %s abc | tr b -); echo "$x" && exit 0' },
    stdout: "a-c\n",
  },
  {
    name: "environment",
    keys: {
      run: 'echo "$GREETING|$SHEET_WORD|${SSH_SHEET-unset}|$SLIPWAY_NAME|$SLIPWAY_CPUS|$OMP_NUM_THREADS"',
      env: { GREETING: "hello {name}" },
    },
    stdout: "hello environment|two words|unset|environment|1|1\n",
  },
  {
    name: "placeholders",
    keys: { run: ["echo", "{run}", "{task}", "{name}", "{attempt}", "{cwd}"], cwd: `${stem}-below` },
    check: ({ task, stdout }) =>
      expect(stdout).toBe(`${task.id.replace(".", " ")} placeholders 1 ${cwd}/${stem}-below\n`),
  },
  { name: "cwd", keys: { run: "pwd", cwd: `${stem}-below` }, stdout: `${cwd}/${stem}-below\n` },
  { name: "stdin", keys: { run: "readlink /proc/self/fd/0; wc -c" }, stdout: "/dev/null\n0\n" },
  { name: "streams", keys: { run: "echo out; echo err >&2" }, stdout: "out\n", stderr: "err\n" },
  {
    name: "files",
    keys: { run: "echo out; echo err >&2", stdout: `${stem}/{name}.out`, stderr: `${stem}/{name}.err` },
    check: async ({ file }) =>
      expect([await file(`${stem}/files.out`), await file(`${stem}/files.err`)]).toEqual(["out\n", "err\n"]),
  },
  {
    name: "append",
    keys: { each: { array: "1-3" }, run: "echo line {item}", stdout: `${stem}/shared.out`, append: true },
    check: async ({ file }) =>
      expect((await file(`${stem}/shared.out`))?.trim().split("\n").toSorted()).toEqual(["line 1", "line 2", "line 3"]),
  },
  {
    name: "tmpdir",
    keys: { run: 'ls -A "$TMPDIR" | wc -l; echo x >"$TMPDIR/file" && echo "$TMPDIR"' },
    stdout: /^0\n\/.+\n$/,
    check: ({ stdout, exists }) => expect(exists(stdout.split("\n")[1]!)).toBe(false),
  },
];

/** Ends, attempts, dependencies. */
const ends = ({ stem }: SheetFacts): SheetTask[] => [
  { name: "code", keys: { run: "echo no >&2; exit 7" }, shows: failed({ exitCode: 7, signal: null }), stderr: "no\n" },
  { name: "signal", keys: { run: "kill -9 $$" }, shows: failed({ exitCode: null, signal: "SIGKILL" }) },
  { name: "missing", keys: { run: ["no-such-command-anywhere"] }, shows: failed({ exitCode: 127 }) },
  {
    name: "limit",
    keys: { run: "echo begun; sleep 1000", "time-limit": "1s" },
    shows: failed({ reason: "over its time limit of 1 s" }),
    stdout: "begun\n",
  },
  {
    name: "memory",
    keys: { run: "head -c 600000000 /dev/zero | tail", mem: "200M" },
    // by its agent's watch, or where the manager enforces it by the kernel
    shows: failed({ reason: expect.stringMatching(/over its memory limit|out of memory/) }),
  },
  {
    name: "retried",
    keys: { run: 'echo "attempt {attempt}"; [ {attempt} -gt 2 ]', retries: 3 },
    shows: {
      state: "DONE",
      attempts: [
        { n: 1, state: "FAILED", exitCode: 1, lost: false },
        { n: 2, state: "FAILED", exitCode: 1, lost: false },
        { n: 3, state: "DONE", exitCode: 0, lost: false },
      ],
    },
    stdout: "attempt 3\n",
  },
  {
    name: "after",
    keys: { run: `cat ${stem}/files.out ${stem}/shared.out | wc -l`, after: ["files", "append"] },
    stdout: "4\n",
  },
  { name: "never", keys: { run: "true", after: "code" }, shows: { state: "CANCELED", attempts: [] } },
  { name: "handler", keys: { run: "echo handled", after: { code: "failed" } }, stdout: "handled\n" },
  {
    name: "unneeded",
    keys: { run: "true", after: { streams: "failed" } },
    shows: { state: "CANCELED", attempts: [] },
  },
  { name: "whatever", keys: { run: "true", after: { signal: "any" } } },
];

export const sheetOf = (facts: SheetFacts): readonly SheetTask[] => [...plain(facts), ...ends(facts)];
