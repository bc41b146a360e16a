import { describe, expect, it } from "vitest";
import type { JobStatus } from "../../../src/managers/provider.ts";
import { createJobWatch } from "../../../src/wrap/holder/job-watch.ts";
import type { LedgerJob } from "../../../src/wrap/holder/ledger.ts";
import { endJobs } from "../../../src/wrap/holder/end-jobs.ts";

/** A watch with a clock and a manager of the test's. */
const watched = (states: Record<string, JobStatus | Error>) => {
  let now = 0;
  const asked: string[][] = [];
  const cancelled: string[] = [];
  const replaced: string[] = [];
  const problems: (string | undefined)[] = [];
  let recorded: readonly LedgerJob[] = [];
  const watch = createJobWatch({
    manager: {
      poll: async (ids) => {
        asked.push([...ids]);
        const found = ids.map((id) => [id, states[id] ?? { state: "queued", raw: "PD" }] as const);
        for (const [, state] of found) if (state instanceof Error) throw state;
        return new Map(found as [string, JobStatus][]);
      },
      cancel: async (jobs) => void cancelled.push(...jobs.map(({ id }) => id)),
      says: ({ raw, reason = "" }) => `${raw}: ${reason}`,
    },
    replace: (names) => void replaced.push(...names),
    report: (problem) => void problems.push(problem),
    record: (jobs) => {
      recorded = jobs;
    },
    lastWords: async (id) => (id === "8" ? "no python" : ""),
    now: () => now,
    periodMs: 5000,
  });
  const tick = async (
    seconds: number,
    ...jobs: [name: string, id: string | null, connected: boolean][]
  ): Promise<void> => {
    now += seconds * 1000;
    watch.tick({
      work: 0,
      clients: 0,
      workers: [],
      jobs: jobs.map(([name, id, connected]) => ({ name, id, connected })),
    });
    // what was asked has been answered
    await new Promise((resolve) => setImmediate(resolve));
  };
  const submit = (name: string, id: string): void => watch.submitted({ name, id, manager: "slurm", cancel: "scancel" });
  return { submit, tick, asked, cancelled, replaced, problems, watch, ids: () => recorded.map(({ id }) => id) };
};

const ENDED: JobStatus = { state: "ended", raw: "FAILED", outcome: "failed", exitCode: 127 };

describe("jobs that dask-jobqueue does not ask about", () => {
  it("the manager is asked once a period, and only while a job is in doubt", async () => {
    const { submit, tick, asked } = watched({});
    submit("w-0", "7");
    for (let second = 0; second < 20; second++) await tick(1, ["w-0", "7", second > 11]);
    expect(asked).toEqual([["7"], ["7"]]);
  });

  it("what the manager says of a job that waits is kept until it runs or its worker connects", async () => {
    const states: Record<string, JobStatus> = { "7": { state: "queued", raw: "PENDING", reason: "Priority" } };
    const { submit, tick, watch } = watched(states);
    submit("w-0", "7");
    await tick(1, ["w-0", "7", false]);
    expect(watch.said("7")).toBeUndefined();
    await tick(5, ["w-0", "7", false]);
    expect(watch.said("7")).toBe("PENDING: Priority");
    states["7"] = { state: "active", raw: "RUNNING" };
    await tick(6, ["w-0", "7", false]);
    expect(watch.said("7")).toBeUndefined();
  });

  it("a job that ended before its worker connected is reported and replaced, at once and then later and later", async () => {
    const { submit, tick, replaced, problems, ids } = watched({ "7": ENDED, "8": ENDED });
    submit("w-0", "7");
    await tick(6, ["w-0", "7", false]);
    expect(problems[0]).toBe(
      "job 7 ended before its worker connected (FAILED, failed, exit status 127); submitted again",
    );
    expect(ids()).toEqual([]);
    await tick(1, ["w-0", "7", false]);
    expect(replaced).toEqual(["w-0"]);
    submit("w-0", "8");
    await tick(6, ["w-0", "8", false]);
    expect(problems[1]).toMatch(/: no python; submitted again in 10 s$/);
    await tick(5, ["w-0", "8", false]);
    expect(replaced).toHaveLength(1);
    await tick(6, ["w-0", "8", false]);
    expect(replaced).toEqual(["w-0", "w-0"]);
    submit("w-0", "9");
    await tick(1, ["w-0", "9", true]);
    expect(problems.at(-1)).toBeUndefined();
  });

  it("a refused submission is told with the manager's words, and tried again", async () => {
    const { watch, tick, replaced, problems } = watched({});
    watch.refused("w-0", "sbatch: error: invalid partition");
    expect(problems).toEqual(["a job was refused: sbatch: error: invalid partition; submitted again"]);
    await tick(1, ["w-0", null, false]);
    expect(replaced).toEqual(["w-0"]);
  });

  it("a ghost, connected once and ended, is replaced without a word; a job that was let go and lives on is cancelled", async () => {
    const states: Record<string, JobStatus> = {};
    const { submit, tick, replaced, cancelled, problems, ids } = watched(states);
    submit("w-0", "7");
    submit("w-1", "8");
    await tick(1, ["w-0", "7", true], ["w-1", "8", true]);
    states["7"] = { state: "ended", raw: "CANCELLED", outcome: "cancelled" };
    states["8"] = { state: "active", raw: "RUNNING" };
    await tick(6, ["w-0", "7", false]);
    expect([replaced, problems.filter((problem) => problem !== undefined)]).toEqual([["w-0"], []]);
    await tick(6);
    expect(cancelled).toEqual(["8"]);
    states["8"] = { state: "ended", raw: "CANCELLED", outcome: "cancelled" };
    await tick(6);
    expect(ids()).toEqual([]);
  });

  it("a manager that gives no answer is reported, and nothing is given up", async () => {
    const { submit, tick, problems, replaced, ids } = watched({ "7": new Error("Slurm gives no answer") });
    submit("w-0", "7");
    await tick(6, ["w-0", "7", false]);
    expect([problems, replaced, ids()]).toEqual([["Slurm gives no answer"], [], ["7"]]);
  });

  it("at the end jobs are cancelled by id and by name, until none is left", async () => {
    const living = new Set(["7", "99"]);
    const left = await endJobs({
      manager: {
        poll: async (ids) =>
          new Map(
            ids.map((id) => [id, living.has(id) ? { state: "active", raw: "R" } : { state: "ended", raw: "CD" }]),
          ),
        list: async () => [
          ...[...living].filter((id) => id === "99").map((nativeId) => ({ nativeId, name: "dask-1" })),
          { nativeId: "5", name: "dask-10" },
        ],
        cancel: async (jobs) => {
          for (const { id } of jobs) living.delete(id);
        },
      },
      jobs: [
        { id: "7", cancel: null },
        { id: "8", cancel: null },
      ],
      jobName: "dask-1",
    });
    expect([left, living.size]).toEqual([[], 0]);
  });
});
