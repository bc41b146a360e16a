import { describe, expect, it } from "vitest";
import type { WrapView } from "../../../src/api/schemas.ts";
import { WrapView as Schema } from "../../../src/api/schemas.ts";
import { PLAIN } from "../../../src/cli/render/style.ts";
import { wrapDetails, wrapFleets, wrapPilotsTable } from "../../../src/cli/render/wraps.ts";
import { pilotsOfWraps } from "../../../src/cli/wraps-here.ts";
import type { WrapView as Entry } from "../../../src/wrap/holder/registry.ts";
import { wrapView } from "../../../src/wrap/report/view.ts";

const entry = (changes: Partial<Entry> = {}): Entry => ({
  id: "a1b2c3d4",
  target: "dask_jobqueue::SLURMCluster",
  statusFile: "/work/dask.json",
  holder: { host: "login1", bootId: "b", pid: 77, startTime: 1 } as unknown as Entry["holder"],
  started: "2026-11-15T10:00:00.000Z",
  state: "running",
  head: {
    address: "tls://10.0.0.1:8786",
    host: "10.0.0.1",
    port: 8786,
    dashboard_port: 8787,
    kind: "SLURMCluster",
    manager: "slurm",
    log_directory: null,
  },
  minimum: 0,
  maximum: 4,
  wanted: 2,
  work: 1000,
  tasks: { processing: 3, queued: 997, waiting: 0, "no-worker": 0 },
  clients: 1,
  workers: [{ name: "w-0", address: "tls://10.0.0.2:40", threads: 3, memory: 2 * 1024 ** 3, used: 400 * 1024 ** 2 }],
  jobs: [
    { id: "11", connected: true },
    { id: "12", connected: false, reason: "queued: PENDING (Resources), it is next in line" },
  ],
  ...changes,
});

/** Slipway's own path: workers in pilots of a queue. */
const own = (changes: Partial<Entry> = {}): Entry => {
  const { jobs: _, ...rest } = entry({
    target: "hpc/cpu",
    cluster: "hpc",
    queue: "cpu",
    pilots: [
      { id: "1", job: "11", state: "PMGR_ACTIVE", agents: 1, workers: 1, reason: null },
      { id: "2", job: null, state: "PMGR_LAUNCHING", agents: 0, workers: 0, reason: null },
    ],
  });
  return { ...rest, ...changes };
};

describe("a Dask cluster as a fleet", () => {
  it("has workers, memory, tasks, clients and the dashboard's address, and keeps to the API's schema", () => {
    const view = wrapView(entry());
    expect(Schema.parse(view)).toEqual(view);
    expect(view).toMatchObject({
      dashboard: "http://10.0.0.1:8787/status",
      memory: { used: 400 * 1024 ** 2, limit: 2 * 1024 ** 3 },
      wanted: 2,
      cluster: null,
      pilots: [
        { id: "11", job: "11", state: "PMGR_ACTIVE", workers: 1 },
        { id: "12", state: "PMGR_ACTIVE_PENDING", workers: 0, reason: expect.stringContaining("Resources") },
      ],
    });
    const bare = wrapView(entry({ state: "starting", head: undefined, workers: undefined } as unknown as Entry));
    expect([bare.dashboard, bare.memory, bare.kind]).toEqual([null, { used: 0, limit: 0 }, null]);
    const six = wrapView(entry({ head: { ...entry().head!, host: "fd00::1" } }));
    expect(six.dashboard).toBe("http://[fd00::1]:8787/status");
  });

  it("is one line of `status`, whatever its path", () => {
    const lines = wrapFleets([wrapView(entry()), wrapView(own({ problem: "a job\nwas refused" }))], PLAIN).split("\n");
    expect(lines[1]).toMatch(
      /^a1b2c3d4 +dask_jobqueue::SLURMCluster +running +1 of 2 +4 +400M of 2G +1,000 +1 +http:\/\/10\.0\.0\.1:8787\/status$/,
    );
    expect(lines[2]).toMatch(/^a1b2c3d4 +hpc\/cpu +running +1 of 2 .* a job\\nwas refused$/);
  });

  it("is one line a job of `pilots list`, with what its manager says", () => {
    const pilots = pilotsOfWraps([wrapView(entry()), wrapView(own())]);
    expect(pilots.map(({ id, cluster, queue, nativeId }) => [id, cluster, queue, nativeId])).toEqual([
      ["a1b2c3d4/11", "dask_jobqueue::SLURMCluster", "", "11"],
      ["a1b2c3d4/12", "dask_jobqueue::SLURMCluster", "", "12"],
      ["a1b2c3d4/1", "hpc", "cpu", "11"],
      ["a1b2c3d4/2", "hpc", "cpu", null],
    ]);
    const lines = wrapPilotsTable(pilots, PLAIN).split("\n");
    expect(lines[2]).toMatch(/^a1b2c3d4\/12 .* - +queued +12 +0 +queued: PENDING \(Resources\)/);
    expect(lines[3]).toMatch(/^a1b2c3d4\/1 +hpc +cpu +running +11 +1$/);
  });

  it("is shown whole by `wrap show`", () => {
    const text = wrapDetails(entry(), wrapView(entry()), "/home/log", PLAIN, Date.parse("2026-11-15T10:01:00Z"));
    expect(text).toMatch(/^memory +400M of 2G$/m);
    expect(text).toMatch(/^work +1,000 tasks \(3 processing, 997 queued\), 1 client$/m);
    expect(text).toMatch(/^dashboard +http:\/\/10\.0\.0\.1:8787\/status$/m);
  });
});

describe("why a Dask cluster has no workers, or no more", () => {
  const why = (changes: Partial<Entry>, base = entry): WrapView["why"] => wrapView(base(changes)).why;
  const none: Partial<Entry> = { workers: [], jobs: [], wanted: 0 };
  const four = Array.from({ length: 4 }, (_, at) => ({ ...entry().workers![0]!, name: `w-${at}` }));

  it.each<[string, string, Partial<Entry>, string]>([
    ["waiting in the manager, with its reason", "pilot-queued", {}, "12: queued: PENDING (Resources)"],
    [
      "refused, with the manager's words",
      "job-failed",
      { ...none, problem: "a job was refused: sbatch: error: invalid partition" },
      "invalid partition",
    ],
    [
      "died, with its last lines",
      "job-failed",
      { problem: "job 12 ended before its worker connected (FAILED, exit status 127): python: command not found" },
      "1 of 2 workers connected, for 1000 tasks; job 12 ended before its worker connected (FAILED, exit status 127): python: command not found",
    ],
    ["not connected yet", "pilot-starting", { jobs: [{ id: "12", connected: false }], workers: [] }, "12"],
    ["nothing to compute", "idle", { ...none, work: 0 }, "nothing to compute (1 client)"],
    ["as many as it may have", "at-maximum", { jobs: [], workers: four, wanted: 4 }, "4 of 4 workers"],
    ["no worker may run them", "no-fitting-worker", { jobs: [], tasks: { "no-worker": 7 } }, "7 tasks"],
    ["as many as it needs", "enough", { jobs: [], wanted: 1 }, "target-duration"],
    ["about to ask", "scaling", none, "it has no workers, for 1000 tasks"],
    ["none allowed", "at-maximum", { ...none, maximum: 0 }, "it may have 0"],
    ["killed", "wrapper-lost", { state: "lost" }, "pid 77 on login1"],
    ["not up yet", "starting", { state: "starting" }, "does not stand yet"],
    ["going", "closing", { state: "closing" }, "being closed"],
  ])("%s: %s", (_title, cause, changes, words) => {
    const found = why(changes);
    expect([found.cause, found.detail]).toEqual([cause, expect.stringContaining(words)]);
    expect(found.remedy).not.toBe("");
  });

  it("pilots of Slipway's own path are told in the same words", () => {
    expect(why({}, own)).toMatchObject({ cause: "pilot-starting", detail: expect.stringContaining("pilot 2") });
    const waiting = { id: "2", job: "12", state: "PMGR_ACTIVE_PENDING", agents: 0, workers: 0, reason: "queued: PD" };
    expect(why({ pilots: [waiting] }, own)).toMatchObject({
      cause: "pilot-queued",
      detail: expect.stringContaining("12: queued: PD"),
    });
  });
});
