import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type Plan, planOf } from "../../../src/wrap/plan/plan.ts";

const plan = (parameters: object): Plan =>
  planOf(
    { walltime: "01:00:00", cores: 4, memory: "8GB", maximum_jobs: 10, ...parameters },
    { ports: { scheduler: 8700, dashboard: 8701 }, jobName: "dask-0a1b2c3d" },
  ).plan;

/** What a variable is after these lines. */
const valueAfter = (lines: readonly string[], name: string, env: Readonly<Record<string, string>> = {}): string =>
  execFileSync("bash", ["--norc", "-uc", `${lines.join("\n")}\nprintf %s "$${name}"`], {
    env: { PATH: process.env["PATH"], ...env },
    encoding: "utf8",
  });

describe("lines before the worker, read by bash", () => {
  it.each([
    'a\'b $(touch /tmp/x) `id` "q" \\ \n end',
    "",
    " ",
    "~",
    "*",
    "!!",
    "ü€",
    "-n",
    "a=b",
    "x\n#OAR -l host=9\r\n'y' \\n",
  ])("row 002-5: %j arrives as it is", (hostile) => {
    const { exports } = plan({ extra_dask_config: { "distributed.worker.preload": hostile } }).prologue;
    expect(exports.filter((line) => /[\r\n]/.test(line))).toEqual([]);
    expect(valueAfter(exports, "DASK_DISTRIBUTED__WORKER__PRELOAD")).toBe(hostile);
  });

  it("row 002-38: a dict arrives as Python writes it", () => {
    const { exports } = plan({ "dask-resources": { S: 6, GPU: 0.5 } }).prologue;
    expect(valueAfter(exports, "DASK_DISTRIBUTED__WORKER__RESOURCES")).toBe("{'S': 6, 'GPU': 0.5}");
  });

  it("row 002-29: PYTHON_CPU_COUNT is what Slurm gave the job", () => {
    const lines = plan({}).prologue.managers["slurm"]!;
    expect(valueAfter(lines, "PYTHON_CPU_COUNT", { SLURM_JOB_CPUS_PER_NODE: "6" })).toBe("6");
  });
});
