import { existsSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { createHome, type RunOptions, type SlipwayHome } from "./slipway-process.ts";

/** What a task finds around itself: its variables, its cores and devices, its own temporary directory. */

let slipway: SlipwayHome;

/** Cores are found, not declared, so that their numbers are real; the rest is declared. */
beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  const resources = "gpus: 2, mem: 4G, tmp: 20G, licence: 4, big-disk: 2";
  await writeFile(join(slipway.home, "clusters.yaml"), `clusters: { local: { resources: { ${resources} } } }\n`);
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const cores = availableParallelism();

/** The environment of the tasks of a run, by task number. */
const environments = async (args: string[], options: RunOptions = {}): Promise<Record<string, string>[]> => {
  const { id, total } = await slipway.json<RunView>(["run", ...args, "--", "env", "-0"], options);
  const all: Record<string, string>[] = [];
  for (let task = 0; task < total; task++) {
    const { stdout } = await slipway.run(["logs", `${id}.${task}`]);
    const pairs = stdout.split("\0").slice(0, -1);
    all.push(
      Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)])),
    );
  }
  return all;
};
const environment = async (args: string[], options?: RunOptions): Promise<Record<string, string>> =>
  (await environments(args, options))[0]!;

/** What each of several tasks that run at the same time printed before it reached the gate. */
const together = async (name: string, count: number, options: string[], script: string): Promise<string[]> => {
  const gate = createGate(slipway.cwd, name);
  const command = ["sh", "-c", `${script}; ${gate.script}`];
  const { run } = await slipway.json<{ run: number }>([
    "submit",
    "--array",
    `1-${count}`,
    ...options,
    "--",
    ...command,
  ]);
  await gate.arrived(count);
  gate.open();
  expect((await slipway.run(["wait", String(run)])).status).toBe(0);
  return (await slipway.run(["logs", String(run)])).stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.slice(line.indexOf(": ") + 2));
};

describe("SLIPWAY_*", () => {
  it("rows 001-16 and 001-35: every variable of the contract, with the values of the task", async () => {
    await writeFile(join(slipway.cwd, "items.txt"), "first item\nsecond item\n");
    const options = ["--each-line", "items.txt", "--name", "my run", "--mem", "100M", "--tmp", "1G", "--gpus", "0.5"];
    const more = ["--cpus", "0.5", "--resource", "licence=2", "--resource", "big-disk=1"];
    const [, found] = await environments([...options, ...more]);
    const [run] = await slipway.json<RunView[]>(["list", "--limit", "1"]);
    expect(found).toMatchObject({
      SLIPWAY_RUN: String(run!.id),
      SLIPWAY_TASK: "1",
      SLIPWAY_ATTEMPT: "1",
      SLIPWAY_ITEM: "second item",
      SLIPWAY_NAME: "my run",
      SLIPWAY_CPUS: "0.5",
      SLIPWAY_MEM: String(100 * 2 ** 20),
      SLIPWAY_TMP: String(2 ** 30),
      SLIPWAY_GPUS: "0.5",
      SLIPWAY_RESOURCE_LICENCE: "2",
      SLIPWAY_RESOURCE_BIG_DISK: "1",
      OMP_NUM_THREADS: "1",
    });
    expect(found!["TMPDIR"]).toBeDefined();
  });

  it("row 001-39: nothing asked for: 1 core, no memory, no devices, no item", async () => {
    expect(await environment([])).toMatchObject({
      SLIPWAY_TASK: "0",
      SLIPWAY_ITEM: "",
      SLIPWAY_CPUS: "1",
      SLIPWAY_MEM: "0",
      SLIPWAY_TMP: "0",
      SLIPWAY_GPUS: "0",
      OMP_NUM_THREADS: "1",
      CUDA_VISIBLE_DEVICES: "",
    });
  });

  it("OMP_NUM_THREADS follows the cores, unless the task says otherwise", async () => {
    expect((await environment(["--cpus", String(Math.min(2, cores))]))["OMP_NUM_THREADS"]).toBe(
      String(Math.min(2, cores)),
    );
    expect((await environment(["--env", "OMP_NUM_THREADS=7"]))["OMP_NUM_THREADS"]).toBe("7");
  });

  it("no user and no submitting Slipway can fake them", async () => {
    const env = { SLIPWAY_TASK: "99", SLIPWAY_FOO: "x", SLIPWAY_ITEM: "fake" };
    const found = await environment(["--env", "SLIPWAY_RUN=77"], { env });
    expect(found).toMatchObject({ SLIPWAY_TASK: "0", SLIPWAY_ITEM: "" });
    expect(found["SLIPWAY_RUN"]).not.toBe("77");
    expect(found).not.toHaveProperty("SLIPWAY_FOO");
    expect(found).not.toHaveProperty("SLIPWAY_HOME");
  });
});

describe("the submitter's environment", () => {
  it("comes along exactly: UTF-8, blanks, newlines, equals signs, empty", async () => {
    const env = {
      PLAIN: "x",
      BLANKS: "  two  blanks  ",
      BREAKS: "a\nb\n",
      EQUALS: "a=b==c",
      EMPTY: "",
      UTF8: "grüße 🚢 日本語 e\u0301 \u202e",
      QUOTES: `"'\`$HOME\\n`,
      "odd-name.x": "1",
    };
    expect(await environment([], { env })).toMatchObject(env);
  });

  it("what describes the session stays behind", async () => {
    const env = {
      SSH_CONNECTION: "1 2 3 4",
      SSH_AUTH_SOCK: "/x",
      DISPLAY: ":0",
      SLURM_JOB_ID: "1",
      PBS_JOBID: "2",
      OAR_JOB_ID: "3",
      CUDA_VISIBLE_DEVICES: "5",
      KEPT: "yes",
    };
    const found = await environment([], { env });
    expect(found["KEPT"]).toBe("yes");
    for (const name of ["SSH_CONNECTION", "SSH_AUTH_SOCK", "DISPLAY", "SLURM_JOB_ID", "PBS_JOBID", "OAR_JOB_ID"])
      expect(found, name).not.toHaveProperty(name);
    expect(found["CUDA_VISIBLE_DEVICES"]).toBe("");
    expect(found["TMPDIR"]).not.toBe(slipway.tmp);
  });

  it("is that of the submitter, not of the server", async () => {
    expect((await environment([], { env: { WHO: "first" } }))["WHO"]).toBe("first");
    expect((await environment([], { env: { WHO: "second" } }))["WHO"]).toBe("second");
    expect(await environment([])).not.toHaveProperty("WHO");
  });

  it("may be as large as the system takes: single values of 128 KB, 1.5 MB together, byte for byte", async () => {
    const env: Record<string, string> = {};
    for (let n = 0; n < 12; n++) env[`BIG_${n}`] = String.fromCodePoint(0x61 + n).repeat(125_000);
    // The longest that the kernel accepts: 128 KiB with the name and the NUL, minus what Slipway keeps for itself.
    env["LONGEST"] = "é".repeat(65_400);
    const digest = (value: string): string => createHash("sha256").update(value).digest("hex");
    const script = `for (const [k, v] of Object.entries(process.env)) if (/^(BIG_|LONGEST)/.test(k))
      console.log(k, require("crypto").createHash("sha256").update(v).digest("hex"))`;
    const file = join(slipway.cwd, "digest.cjs");
    await writeFile(file, script);
    const { status, stdout, stderr } = await slipway.run(["run", "--quiet", "--", process.execPath, file], { env });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect(stdout.trimEnd().split("\n").toSorted()).toEqual(
      Object.entries(env)
        .map(([name, value]) => `${name} ${digest(value)}`)
        .toSorted(),
    );
  });

  it("larger than the system takes: the task fails and says so", async () => {
    const values = Array.from({ length: 30 }, (_, n) => `      V${n}: ${"x".repeat(120_000)}`).join("\n");
    await writeFile(join(slipway.cwd, "huge.yaml"), `tasks:\n  - run: 'true'\n    env:\n${values}\n`);
    const { id } = await slipway.json<RunView>(["run", "huge.yaml"], { statuses: [1] });
    const task = await slipway.json<TaskView>(["show", `${id}.0`]);
    expect(task).toMatchObject({ state: "FAILED", exitCode: 126 });
    expect(task.reason).toContain("larger than the system allows");
  });
});

describe("TMPDIR", () => {
  /** At once if anything was left there; else a moment later, unless another task has it by then. */
  const isGone = async (path: string): Promise<void> => {
    expect(existsSync(path) ? readdirSync(path) : []).toEqual([]);
    await until(`${path} is gone`, () => !existsSync(path));
  };

  it("row 001-18: is private, empty, 0700, and gone afterwards with all that was put there", async () => {
    const script = `stat -c '%a %u' "$TMPDIR"; ls -A "$TMPDIR" | wc -l; mkdir -p "$TMPDIR/a/b"; echo x > "$TMPDIR/a/b/c"; mkdir "$TMPDIR/locked"; chmod 0 "$TMPDIR/locked"; ln -s / "$TMPDIR/link"; echo "$TMPDIR"`;
    const { status, stdout } = await slipway.run(["run", "--quiet", "--", "sh", "-c", script]);
    expect(status).toBe(0);
    const [mode, entries, path] = stdout.trimEnd().split("\n");
    expect(mode).toBe(`700 ${process.getuid!()}`);
    expect(Number(entries)).toBe(0);
    expect(dirname(dirname(path!))).toBe(slipway.tmp);
    await isGone(path!);
  });

  it("every attempt has its own, also at the same time; a failed one leaves nothing either", async () => {
    const count = Math.min(2, cores);
    const paths = await together("tmpdirs", count, [], 'touch "$TMPDIR/mine"; echo "$TMPDIR"');
    expect(new Set(paths).size).toBe(count);
    for (const path of paths) await isGone(path);
    const failed = await slipway.run([
      "run",
      "--quiet",
      "--retries",
      "1",
      "--",
      "sh",
      "-c",
      'echo "$TMPDIR"; kill -9 $$',
    ]);
    expect(failed.status).toBe(1);
    expect(basename(dirname(failed.stdout.trimEnd()))).toMatch(/^slipway-/);
    await isGone(failed.stdout.trimEnd());
  });
});

describe("cores and devices", () => {
  it("tasks that run together have distinct cores", async (ctx) => {
    if (cores < 2) ctx.skip("this machine has one core");
    const ids = await together("cores", 2, [], 'echo "$SLIPWAY_CPU_IDS"');
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^\d+$/);
  });

  it("--pin binds every process of a task to them", async (ctx) => {
    if (cores < 2) ctx.skip("this machine has one core");
    const allowed = "sh -c \"sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status\"";
    const found = await together("pinned", 2, ["--pin"], `echo "$SLIPWAY_CPU_IDS=$(${allowed})"`);
    expect(new Set(found).size).toBe(2);
    for (const line of found) expect(line).toMatch(/^(\d+)=\1$/);
    const free = await together("unpinned", 1, [], `echo "$(${allowed})"`);
    expect(free[0]).not.toMatch(/^\d+$/);
  });

  it("a task on several cores has that many", async (ctx) => {
    if (cores < 2) ctx.skip("this machine has one core");
    const ids = (await environment(["--cpus", "2"]))["SLIPWAY_CPU_IDS"]!.split(",");
    expect(new Set(ids).size).toBe(2);
  });

  const device = 'echo "$CUDA_VISIBLE_DEVICES"';
  const half = ["--cpus", "0.1"];

  it("whole GPUs: each task its own; several: a list", async () => {
    expect((await together("gpus", 2, [...half, "--gpus", "1"], device)).toSorted()).toEqual(["0", "1"]);
    const found = await environment(["--gpus", "2"]);
    expect(found).toMatchObject({ CUDA_VISIBLE_DEVICES: "0,1", SLIPWAY_GPUS: "2" });
  });

  it("shares: two halves share a device, four fill both; shares that do not fit together do not share", async () => {
    expect((await together("halves", 4, [...half, "--gpus", "0.5"], device)).toSorted()).toEqual(["0", "0", "1", "1"]);
    expect((await together("quarters", 8, [...half, "--gpus", "0.25"], device)).toSorted()).toEqual(
      Array.from({ length: 8 }, (_, i) => (i < 4 ? "0" : "1")),
    );
    expect((await together("big", 2, [...half, "--gpus", "0.6"], device)).toSorted()).toEqual(["0", "1"]);
  });
});
