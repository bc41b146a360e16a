import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JobStatus } from "../../../../src/managers/provider.ts";
import { expandHostlist } from "../../../../src/managers/slurm/driver/hostlist.ts";
import {
  parseGres,
  parseLimit,
  parseSacct,
  parseSinfo,
  parseSqueue,
  parseSubmitted,
  statusOf,
  wordsOf,
} from "../../../../src/managers/slurm/driver/parse.ts";

const sample = (name: string): string =>
  readFileSync(new URL(`../../../fixtures/slurm/${name}.txt`, import.meta.url), "utf8");

/** Each job of the recorded cluster is named after what happened to it. */
const EXPECTED: Readonly<Record<string, Partial<JobStatus>>> = {
  done: { state: "ended", outcome: "done", exitCode: 0, raw: "COMPLETED" },
  exit3: { state: "ended", outcome: "failed", exitCode: 3, reason: "NonZeroExitCode" },
  sig9: { state: "ended", outcome: "failed", signal: 9 },
  launch: { state: "ended", outcome: "start-failed" },
  timeout: { state: "ended", outcome: "timeout", signal: 15 },
  oom: { state: "ended", outcome: "out-of-memory" },
  nodefail: { state: "ended", outcome: "lost", reason: "NodeDown" },
  preempted: { state: "ended", outcome: "preempted" },
  cancelled: { state: "ended", outcome: "cancelled" },
  held: { state: "held", reason: "JobHeldUser" },
  requeuehold: { state: "held" },
  special: { state: "held", raw: "SPECIAL_EXIT" },
  begin: { state: "queued", reason: "BeginTime" },
  depnever: { state: "queued", reason: "DependencyNeverSatisfied" },
  lic2: { state: "queued", reason: "Licenses" },
  limit: { state: "queued", reason: "PartitionTimeLimit" },
  downnode: { state: "queued" },
  preemptor: { state: "active", raw: "RUNNING" },
  suspended: { state: "suspended" },
  "two\nlines|bars": { state: "active" },
};

const LATER = 1_800_000_000_000;

describe("what Slurm prints", () => {
  const jobs = parseSqueue(sample("squeue"));
  const byName = new Map(jobs.map((job) => [job.name, job]));

  it.each(Object.entries(EXPECTED))("squeue: %j", (name, status) => {
    expect(byName.get(name)?.status).toMatchObject(status);
  });

  it("squeue: exit codes and signals only where they mean what they say", () => {
    for (const name of ["oom", "launch", "nodefail", "cancelled"]) {
      expect(byName.get(name)?.status).not.toHaveProperty("exitCode");
      expect(byName.get(name)?.status).not.toHaveProperty("signal");
    }
  });

  it("sacct says the same of what has ended, with its owner's end left out of the state", () => {
    const answers = parseSacct(sample("sacct"), LATER);
    for (const [name, expected] of Object.entries(EXPECTED)) {
      if (expected.state !== "ended") continue;
      expect(answers.get(byName.get(name)!.id)).toMatchObject({ state: "ended", outcome: expected.outcome });
    }
    expect(answers.get(byName.get("cancelled")!.id)?.raw).toBe("CANCELLED by 0");
    // the controller no longer shows them, or sacct would not have been asked
    expect(answers.get(byName.get("preemptor")!.id)).toMatchObject({
      state: "ended",
      outcome: "unknown",
      raw: "RUNNING",
    });
  });

  it("sacct: a row younger than five seconds is not yet believed", () => {
    const row = "7\x1f7\x1fCOMPLETED\x1f0:0\x1f1000\x1fn1\x1fNone";
    expect(parseSacct(row, 1_002_000).get("7")).toMatchObject({ state: "unknown", raw: "COMPLETED" });
    expect(parseSacct(row, 1_006_000).get("7")).toMatchObject({ state: "ended", outcome: "done" });
  });

  it("every state has its meaning, and one that is not known stays unknown with its word", () => {
    const state = (raw: string): string => {
      const { state, outcome } = statusOf(raw, "", "", "");
      return outcome === undefined ? state : `${state} ${outcome}`;
    };
    expect(
      Object.fromEntries(
        "PENDING CONFIGURING RUNNING SUSPENDED COMPLETING COMPLETED FAILED CANCELLED TIMEOUT OUT_OF_MEMORY NODE_FAIL BOOT_FAIL DEADLINE PREEMPTED REQUEUED REQUEUE_HOLD SPECIAL_EXIT STOPPED REVOKED RESIZING SIGNALING STAGE_OUT"
          .split(" ")
          .map((raw) => [raw, state(raw)]),
      ),
    ).toEqual({
      PENDING: "queued",
      CONFIGURING: "queued",
      RUNNING: "active",
      SUSPENDED: "suspended",
      COMPLETING: "active",
      COMPLETED: "ended done",
      FAILED: "ended failed",
      CANCELLED: "ended cancelled",
      TIMEOUT: "ended timeout",
      OUT_OF_MEMORY: "ended out-of-memory",
      NODE_FAIL: "ended lost",
      BOOT_FAIL: "ended start-failed",
      DEADLINE: "ended timeout",
      PREEMPTED: "ended preempted",
      REQUEUED: "queued",
      REQUEUE_HOLD: "held",
      SPECIAL_EXIT: "held",
      STOPPED: "suspended",
      REVOKED: "ended cancelled",
      RESIZING: "active",
      SIGNALING: "active",
      STAGE_OUT: "active",
    });
    expect(statusOf("QUANTUM", "why", "", "")).toEqual({ state: "unknown", raw: "QUANTUM", reason: "why" });
    expect(statusOf("constructor", "", "", "")).toEqual({ state: "unknown", raw: "constructor" });
  });

  it("sinfo: partitions with their largest node, GPUs, limit and default", () => {
    const partitions = parseSinfo(sample("sinfo"));
    expect(partitions.map(({ name, isDefault, maxWalltime }) => [name, isDefault, maxWalltime])).toEqual([
      ["batch", true, undefined],
      ["high", false, undefined],
      ["short", false, 600],
      ["big", false, 129_600],
      ["plain", false, undefined],
    ]);
    const of = (name: string): unknown => partitions.find((partition) => partition.name === name);
    expect(of("big")).toMatchObject({
      nodes: 1,
      gpusPerNode: 8,
      gpuTypes: ["a100"],
      memoryPerNode: 32_000 * 1024 ** 2,
    });
    expect(of("plain")).toMatchObject({ gpusPerNode: 0, gpuTypes: [], isUp: true });
  });

  it("sinfo: kinds of nodes of one partition are counted together", () => {
    const line = (...fields: string[]): string => fields.join("\x1f");
    const text = [
      line("p", "p*", "up", "infinite", "3", "8", "16000", "gpu:a100:4(S:0-1)"),
      line("p", "p*", "up", "infinite", "2", "64", "8000", "gpu:h100:1,gpu:t4:2,shard:8"),
      line("off", "off", "drain", "30", "0", "0+", "n/a", "(null)"),
      "",
    ].join("\n");
    expect(parseSinfo(text)).toEqual([
      {
        name: "p",
        isDefault: true,
        isUp: true,
        nodes: 5,
        cpusPerNode: 64,
        memoryPerNode: 16_000 * 1024 ** 2,
        gpusPerNode: 4,
        gpuTypes: ["a100", "h100", "t4"],
      },
      {
        name: "off",
        isDefault: false,
        isUp: false,
        nodes: 0,
        cpusPerNode: 0,
        memoryPerNode: 0,
        gpusPerNode: 0,
        gpuTypes: [],
        maxWalltime: 1800,
      },
    ]);
  });

  it.each([
    ["gpu:4", 4, []],
    ["gpu", 1, []],
    ["gpu:a100", 1, ["a100"]],
    ["gpu:1g.5gb:7,gpu:a100:2", 9, ["1g.5gb", "a100"]],
    ["gpumem:4", 0, []],
    ["(null)", 0, []],
  ])("gres %s", (text, gpus, types) => {
    expect(parseGres(text)).toEqual({ gpus, types });
  });

  it.each([
    ["10:00", 600],
    ["1-12:00:00", 129_600],
    ["2-00", 172_800],
    ["30", 1800],
    ["01:02:03", 3723],
    ["infinite", undefined],
    ["n/a", undefined],
  ])("limit %s", (text, seconds) => {
    expect(parseLimit(text)).toBe(seconds);
  });

  it("sbatch: the id, also of another cluster, also after a site's greeting", () => {
    expect(parseSubmitted("12\n")).toBe("12");
    expect(parseSubmitted("Welcome to 2026\n12;other\n")).toBe("12");
    expect(parseSubmitted("Submitted batch job 12\n")).toBeUndefined();
  });

  it("sbatch: its words without its name", () => {
    expect(wordsOf("sbatch: error: invalid partition: x\nsbatch: error: Batch job submission failed: no\n\n")).toBe(
      "invalid partition: x; Batch job submission failed: no",
    );
  });

  it.each([
    ["n1", ["n1"]],
    ["n[1-3,07],x", ["n1", "n2", "n3", "n07", "x"]],
    ["r[1-2]n[08-09]", ["r1n08", "r1n09", "r2n08", "r2n09"]],
    ["", []],
    ["n[x]", ["nx"]],
  ])("hosts %s", (text, hosts) => {
    expect(expandHostlist(text)).toEqual(hosts);
  });

  it("a list of hosts is bounded, whatever it claims", () => {
    expect(expandHostlist("n[1-999999999]")).toHaveLength(20_000);
    expect(expandHostlist("a[0-9][0-9][0-9][0-9][0-9][0-9]")).toHaveLength(20_000);
  });

  it("any text is taken without a crash", () => {
    const pieces = fc.constantFrom(
      "\x1f",
      "\x1e\n",
      "\n",
      "1",
      "[",
      "]",
      "-",
      ",",
      "RUNNING",
      "gpu:",
      ":",
      "*",
      "a",
      "(",
      ")",
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(pieces).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, (any) => {
        for (const { status } of parseSqueue(any)) expect(status.state).toBeTypeOf("string");
        for (const [, status] of parseSacct(any, LATER)) expect(status.state).toBeTypeOf("string");
        for (const { nodes } of parseSinfo(any)) expect(nodes).toBeGreaterThanOrEqual(0);
        expect(parseSubmitted(any) ?? "").toMatch(/^\d*$/);
        expect(expandHostlist(any).length).toBeLessThanOrEqual(20_000);
        parseGres(any);
        parseLimit(any);
        wordsOf(any);
      }),
    );
  });

  it("a name with any characters shifts no other field", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        fc.pre(!name.includes("\x1e"));
        const text = `1\x1f1\x1fN/A\x1fPENDING\x1f0\x1fJobHeldUser\x1f\x1f${name}\x1e\n2\x1f2\x1fN/A\x1fRUNNING\x1f0\x1fNone\x1fn1\x1fb\x1e\n`;
        expect(parseSqueue(text)).toMatchObject([
          { id: "1", name, status: { state: "held" } },
          { id: "2", name: "b", status: { state: "active", hosts: ["n1"] } },
        ]);
      }),
    );
  });
});
