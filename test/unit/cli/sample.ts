import type { RunView, TaskView } from "../../../src/api/schemas.ts";

/** A run and a task as the API shows them, to be varied by tests. */
export const sampleRun = (changes: Partial<RunView> = {}): RunView => ({
  id: 3,
  name: "docking",
  state: "RUNNING",
  total: 1000,
  counts: { DONE: 400, FAILED: 2, AGENT_EXECUTING: 8, TMGR_SCHEDULING_PENDING: 590 },
  unneeded: 0,
  submitted: "2026-11-15T10:00:00.000Z",
  started: "2026-11-15T10:00:01.000Z",
  finished: null,
  eta: 75,
  reason: null,
  retries: 0,
  losses: 0,
  numbering: { start: 1, step: 1 },
  ...changes,
});

export const sampleTask = (changes: Partial<TaskView> = {}): TaskView => ({
  id: "3.17",
  name: "dock",
  state: "FAILED",
  exitCode: 2,
  signal: null,
  reason: "exit code 2",
  command: ["./dock", "--ligand", "it's 17"],
  item: "17",
  cwd: "/work/dock",
  attempts: [
    {
      n: 1,
      agent: "a1",
      pilot: "p1",
      host: "node1",
      assigned: "2026-11-15T10:00:01.000Z",
      started: "2026-11-15T10:00:02.000Z",
      finished: "2026-11-15T10:00:05.500Z",
      exitCode: 2,
      signal: null,
      reason: "exit code 2",
      lost: false,
    },
  ],
  resources: { cpus: 2, mem: 524_288_000, gpus: 0 },
  stdoutBytes: 0,
  stderrBytes: 31,
  stdout: null,
  stderr: null,
  lastStderr: "reading\nno such ligand: 17\n",
  ...changes,
});
