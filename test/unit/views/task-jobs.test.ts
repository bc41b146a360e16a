import { describe, expect, it } from "vitest";
import type { ElementState, TaskJob } from "../../../src/core/task-job.ts";
import { jobsTable } from "../../../src/cli/render/jobs.ts";
import { PLAIN } from "../../../src/cli/render/style.ts";
import { taskScreen } from "../../../src/cli/render/task.ts";
import { carriersOf, taskJobLine, taskJobView } from "../../../src/views/task-jobs.ts";
import { taskView } from "../../../src/views/views.ts";
import { type JobSurroundings, whyJob } from "../../../src/views/why-job.ts";
import { createDriver, group, spec } from "../core/model.ts";

const element = (row: number, state: ElementState, nativeId = "", reason = "") => ({
  row,
  state,
  nativeId,
  reason,
  agent: 0,
});

const job = (id: number, elements: TaskJob["elements"], more: Partial<TaskJob> = {}): TaskJob => ({
  id,
  cluster: "hpc",
  queue: "cpu",
  jobName: `flow:solve-${String(id).padStart(12, "0")}`,
  run: 1,
  requested: 1000,
  nativeId: "77",
  elements,
  ...more,
});

const SAYS = { text: "queued: PENDING (Priority), jobs with a higher priority are ahead of it", remedy: "Wait." };
const news = { directoryOf: ({ jobName }: TaskJob) => `/home/me/.slipway/jobs/${jobName}`, says: () => SAYS };

const begin = () => {
  const driver = createDriver();
  const run = driver.submit(spec([group("solve", 3, { job: { keys: {} } })]));
  return { driver, run };
};

describe("jobs of tasks, as people see them", () => {
  it("the last job of a task counts; ids of elements come before those of their array", () => {
    const jobs = [
      job(3, [element(0, "queued", "77_1"), element(2, "requested")]),
      job(1, [element(0, "ended", "70", "taken back"), element(1, "spent", "70_2")]),
    ];
    const carriers = carriersOf(jobs, 1);
    expect(
      [...carriers]
        .map(
          ([
            row,
            {
              job: { id },
            },
          ]) => [row, id],
        )
        .toSorted(),
    ).toEqual([
      [0, 3],
      [1, 1],
      [2, 3],
    ]);
    expect(carriersOf(jobs, 2).size).toBe(0);
    expect(taskJobView(carriers.get(0)!, news)).toEqual({
      cluster: "hpc",
      queue: "cpu",
      name: "flow:solve-000000000003",
      nativeId: "77_1",
      state: "queued",
      says: SAYS.text,
      reason: null,
      array: { element: 1, of: 2 },
      directory: "/home/me/.slipway/jobs/flow:solve-000000000003",
      requested: "1970-01-01T00:00:01.000Z",
    });
    expect(taskJobView(carriers.get(2)!, news)).toMatchObject({ nativeId: "77", state: "requested" });
    expect(taskJobView(carriers.get(1)!, { ...news, says: () => null })).toMatchObject({
      state: "running",
      says: null,
    });
  });

  it("jobs list shows those that the manager still has, by the task's id", () => {
    const { driver, run } = begin();
    const agent = driver.join();
    driver.assign(agent, run.id, 1);
    const carriers = carriersOf([job(1, [element(0, "queued"), element(1, "spent", "77_2"), element(2, "ended")])], 1);
    const lines = [0, 1, 2].map((row) => taskJobLine(run, carriers.get(row)!, news));
    expect(lines).toMatchObject([
      { kind: "task", id: "1.0", name: "solve[0]", state: "pending", nativeId: "77", reason: SAYS.text },
      { kind: "task", id: "1.1", name: "solve[1]", state: "running", nativeId: "77_2" },
      undefined as never,
    ]);
    const text = jobsTable(lines.slice(0, 2) as never, PLAIN, 61_000);
    expect(text).toMatch(/^KIND +ID +NAME +STATE +SINCE +CLUSTER +QUEUE +JOB +NAME THERE +REASON\n/);
    expect(text).toMatch(
      /^task +1\.0 +solve\[0\] +waiting +1m 00s +hpc +cpu +77 +flow:solve-000000000001 +queued: PENDING/m,
    );
  });

  it("show tells id, name, place, directory and what the manager says", () => {
    const { driver, run } = begin();
    const view = taskJobView(carriersOf([job(4, [element(0, "queued")])], 1).get(0)!, news);
    const screen = taskScreen(taskView(driver.state, run, 0, null, view), PLAIN, 61_000);
    for (const line of [
      /^job +77 \(flow:solve-000000000004\)$/m,
      /^cluster +hpc\/cpu$/m,
      /^job state +queued \(requested 1m 00s ago\)$/m,
      /^manager says +queued: PENDING \(Priority\), jobs with a higher priority are ahead of it$/m,
      /^job directory +\/home\/me\/\.slipway\/jobs\/flow:solve-000000000004$/m,
    ])
      expect(screen).toMatch(line);
    expect(taskScreen(taskView(driver.state, run, 0, null), PLAIN, 0)).toMatch(/^job +none in the manager now$/m);
  });
});

describe("why a task that is a job of its own is not running", () => {
  const around = (more: Partial<JobSurroundings> = {}): JobSurroundings => ({
    cluster: "hpc",
    declared: true,
    blocked: null,
    unusable: null,
    refused: null,
    carrier: undefined,
    says: null,
    queued: 10,
    most: 10,
    before: 3,
    ...more,
  });
  const carrier = (state: ElementState) => ({ job: job(1, [element(0, state)]), element: element(0, state), at: 0 });
  const why = (more: Partial<JobSurroundings>) => whyJob(around(more), "it is ready");

  it("it waits in Slipway: how many stand before it, and which limit keeps it there", () => {
    const { cause, detail, remedy } = why({});
    expect(cause).toBe("job-held");
    expect(detail).toBe(
      "it is ready; Slipway keeps it back: 10 jobs like it wait in cluster hpc, and no more than 10 may (n_max_queued_jobs); 3 tasks stand before it",
    );
    expect(remedy).toContain("n_max_queued_jobs");
    expect(why({ before: 0 }).detail).toMatch(/; it is the next$/);
    expect(why({ before: 1, queued: 1, most: 1 }).detail).toMatch(/1 job like it waits .*; 1 task stands before it$/);
    expect(why({ queued: 2, before: undefined }).detail).toBe(
      "it is ready; it is about to be submitted to cluster hpc",
    );
    expect(why({ queued: 2, before: 999_954 }).detail).toBe(
      "it is ready; it is submitted to cluster hpc in its turn; 999954 tasks stand before it",
    );
  });

  it("it waits in the manager: its words and what they mean, with what would help", () => {
    expect(why({ carrier: carrier("queued"), says: SAYS })).toEqual({
      cause: "job-queued",
      detail: `it is ready; job 77 (flow:solve-000000000001) of cluster hpc is ${SAYS.text}`,
      remedy: SAYS.remedy,
    });
    expect(why({ carrier: carrier("queued") }).detail).toContain("waits in the workload manager");
    expect(why({ carrier: carrier("requested") }).cause).toBe("job-requested");
  });

  it("its cluster is no longer in clusters.yaml: that comes before all that its manager once said", () => {
    expect(why({ declared: false })).toMatchObject({
      cause: "cluster-undeclared",
      detail: "it is ready; its cluster hpc is no longer in clusters.yaml",
    });
    const carried = why({ declared: false, carrier: carrier("queued"), says: SAYS, unusable: "no answer" });
    expect(carried.detail).toBe(
      "it is ready; it is job 77 (flow:solve-000000000001) of cluster hpc, which is no longer in clusters.yaml: nobody asks its manager about the job",
    );
    expect(carried.remedy).toContain("back into clusters.yaml");
  });

  it("it was refused: the manager's words, and when it is tried again", () => {
    const refused = { words: "sbatch: error: QOSMaxSubmitJobPerUserLimit", inMs: 3800, limit: true };
    const { cause, detail, remedy } = why({ refused });
    expect(cause).toBe("job-refused");
    expect(detail).toContain(
      "hpc refused its job: sbatch: error: QOSMaxSubmitJobPerUserLimit; it is tried again in 4s",
    );
    expect(remedy).toContain("limit");
    expect(why({ refused: { ...refused, limit: false, inMs: 0 } })).toMatchObject({
      detail: expect.stringContaining("again in 1s") as string,
      remedy: expect.stringContaining("three refusals") as string,
    });
  });

  it("its manager does not answer, or nothing is submitted at all", () => {
    const unusable = "sbatch: no answer in 30 s";
    expect(why({ unusable })).toMatchObject({
      cause: "cluster-unreachable",
      detail: expect.stringContaining(unusable) as string,
    });
    expect(why({ unusable, carrier: carrier("queued") }).detail).toContain("whose manager does not answer");
    expect(why({ blocked: "the disk is full" }).cause).toBe("blocked");
  });
});
