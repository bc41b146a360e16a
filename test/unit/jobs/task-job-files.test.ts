import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readSettings } from "../../../src/agent/read-settings.ts";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { toUnits } from "../../../src/core/resources.ts";
import { type TaskJobAsk, prepareTaskJob } from "../../../src/jobs/task-job-files.ts";
import type { TaskAsk, TaskDialect } from "../../../src/managers/task-dialect.ts";

let root: string;
/** What a dialect was asked to say, in order. */
let asked: TaskAsk[];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-task-job-"));
  asked = [];
  // stands for Node.js: says how the agent would have been started
  await writeFile(join(root, "node"), `#!/bin/sh\nprintf '%s\\n' "$@" >told\nenv -0 >now\nexit \${AGENT_STATUS:-0}\n`);
  await chmod(join(root, "node"), 0o755);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const dialect: TaskDialect = {
  keys: [],
  read: (keys) => keys,
  backend: () => ({ help: false, resources: {}, keys: {}, notices: [] }),
  usage: "",
  directives: (ask) => {
    asked.push(ask);
    return [`#SBATCH --job-name=${ask.name}`];
  },
  jobName: (text) => text,
  mostInName: 200,
  array: { variable: "SLURM_ARRAY_TASK_ID", first: 1 },
  ranks: "srun",
  variables: /^SLURMD?_/,
};

const prepare = async (keys: object = {}, job: Partial<TaskJobAsk> = {}) => {
  const text = JSON.stringify({ clusters: { hpc: { type: "slurm", node: join(root, "node"), ...keys } } });
  const cluster = combineClusters([readClustersFile(text, "clusters.yaml")]).clusters.get("hpc")!;
  const [queue] = cluster.queues.values();
  const directory = join(root, "a job's directory");
  await mkdir(directory, { mode: 0o700, recursive: true });
  const request = await prepareTaskJob(
    {
      home: root,
      cluster,
      queue: queue!,
      batch: cluster.manager.batch!,
      dialect,
      bundle: async () => "b",
      licences: new Set(["matlab"]),
    },
    { id: 9, jobName: "lab:solve-0123456789ab", directory, resources: { cpus: 20_000 }, keys: {}, elements: 1, ...job },
  );
  return { request, directory, ask: asked.at(-1)! };
};

const settingsIn = (directory: string, element?: string) =>
  readSettings({ "settings-file": join(directory, "settings.json"), element }, {});

/** Runs the script as a manager does. */
const run = (script: string, env: Readonly<Record<string, string>> = {}) =>
  spawnSync("/bin/bash", [script], { encoding: "utf8", cwd: "/", env: { PATH: process.env["PATH"]!, ...env } });

describe("the job of a task", () => {
  it("row 001-42: asks for the task's own amounts and keys; where it goes and what it has around it is the queue's", async () => {
    const queue = { nodes: 8, cores: 64, memory: "256G", gpus: 4, walltime: "1h", partition: "long", account: "proj" };
    const resources = { cpus: 160_000, mem: 2 ** 36, gpus: 20_000, tmp: 2 ** 30, matlab: toUnits("matlab", 2) };
    const { ask } = await prepare(queue, { resources, keys: { qos: "high" }, timeLimit: 600, nice: 7 });
    expect(ask).toMatchObject({ nodes: 1, cores: 16, memory: 2 ** 36, gpus: 2, tmp: 2 ** 30, partition: "long" });
    expect(ask).toMatchObject({ account: "proj", keys: { qos: "high" }, nice: 7, walltime: 660 });
    expect([ask.others, [...ask.licences]]).toEqual([{ matlab: toUnits("matlab", 2) }, ["matlab"]]);
    expect(ask.array).toBeUndefined();
    const { ask: least } = await prepare(queue, { resources: { cpus: 5000 } });
    expect(least).toMatchObject({ nodes: 1, cores: 0.5, walltime: 3600 });
    expect(Object.keys(least)).not.toEqual(expect.arrayContaining(["memory"]));
  });

  it("runs one agent, whose status is its own, between prologue and epilogue; settings are for this user alone", async () => {
    const queue = {
      prologue: ["export FROM_PROLOGUE=1"],
      epilogue: ["echo over >epilogue"],
      environment: { A: "it's" },
    };
    const { request, directory } = await prepare(queue);
    expect(request).toEqual({
      name: "lab:solve-0123456789ab",
      directory,
      command: ["/bin/sh", join(directory, "agent.sh")],
      script: join(directory, "job.sh"),
    });
    expect(run(request.script!, { AGENT_STATUS: "3" })).toMatchObject({ status: 3, stderr: "" });
    const file = join(directory, "settings.json");
    expect(await readFile(join(directory, "told"), "utf8")).toBe(
      `${join(root, "bundles", "b", "agent-quick.cjs")}\n--settings-file\n${file}\n`,
    );
    expect(await readdir(directory)).toEqual(expect.arrayContaining(["epilogue", "environment.before"]));
    const now = await readFile(join(directory, "now"), "utf8");
    expect(now.split("\0")).toEqual(expect.arrayContaining(["FROM_PROLOGUE=1", "A=it's"]));
    expect(now).not.toContain("NODE_EXTRA_CA_CERTS");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(join(directory, "bundle"), "utf8")).toBe("b\n");
  });

  it("starts its agent without a list of authorities, which only costs it time, and leaves it the list for its task", async () => {
    const { request, directory } = await prepare({ prologue: [":"] });
    expect(run(request.script!, { NODE_EXTRA_CA_CERTS: "/a b.pem" })).toMatchObject({ status: 0, stderr: "" });
    const now = (await readFile(join(directory, "now"), "utf8")).split("\0");
    expect(now.filter((pair) => pair.includes("CA_CERTS"))).toEqual(["SLIPWAY_NODE_EXTRA_CA_CERTS=/a b.pem"]);
  });

  it("its agent takes that task alone, offers what it asks for, and passes the manager's variables on", async () => {
    const { directory } = await prepare({ walltime: "2h" }, { resources: { cpus: 20_000, mem: 1e9 }, timeLimit: 60 });
    expect(settingsIn(directory)).toMatchObject({
      pilot: 0,
      cluster: "hpc",
      queue: "default",
      taskJob: { id: 9, element: 0 },
      declared: { cpus: 20_000, mem: 1e9 },
      patienceMs: 30_000,
      variables: "^SLURMD?_",
    });
    // the agent itself ends a task with a limit; without one, the job's walltime does
    expect(settingsIn(directory).lifetime).toBeUndefined();
    await prepare({ walltime: "2h", signal: "USR1", "signal-before": "5m" });
    expect(settingsIn(directory).lifetime).toEqual({
      drainMs: 7_185_000,
      signalMs: 6_885_000,
      endMs: 7_185_000,
      signal: "SIGUSR1",
    });
  });

  it("of an array: each element knows its number from the manager's variable and has files of its own", async () => {
    const { request, directory, ask } = await prepare({ prologue: ["export X=1"] }, { elements: 3 });
    expect([request.array, ask.array]).toEqual([3, 3]);
    for (const number of ["1", "3"])
      expect(run(request.script!, { SLURM_ARRAY_TASK_ID: number })).toMatchObject({ status: 0, stderr: "" });
    for (const element of ["0", "2"]) {
      expect(await readFile(join(directory, element, "told"), "utf8")).toMatch(new RegExp(`--element\n${element}\n$`));
      const settings = settingsIn(directory, element);
      expect(settings.taskJob).toEqual({ id: 9, element: Number(element) });
      expect(settings.environmentFile).toBe(join(directory, element, "environment.before"));
      expect((await stat(settings.environmentFile!)).size).toBeGreaterThan(0);
    }
    expect(run(request.script!).status).not.toBe(0);
  });

  it("with ranks: the job's nodes are in a file, and the queue's launcher or the manager's own starts them", async () => {
    const ranks = { count: 4, nodes: 2, by: "agents" } as const;
    const bin = join(root, "bin");
    await mkdir(bin);
    await writeFile(join(bin, "scontrol"), `#!/bin/sh\n[ "$3" = 'n[1-2]' ] && printf 'n1\\nn2\\n'\n`);
    await chmod(join(bin, "scontrol"), 0o755);
    const { request, directory, ask } = await prepare({ bin }, { ranks });
    expect([ask.nodes, ask.ranks]).toEqual([2, ranks]);
    expect(run(request.script!, { SLURM_JOB_NODELIST: "n[1-2]" })).toMatchObject({ status: 0, stderr: "" });
    expect(await readFile(join(directory, "hosts"), "utf8")).toBe("n1\nn2\n");
    expect(settingsIn(directory)).toMatchObject({
      declared: { cpus: 80_000 },
      ranks: { by: "srun", program: join(bin, "srun"), hostsFile: join(directory, "hosts") },
    });
    await prepare({ launcher: { name: "mpirun", program: "/site/mpirun" } }, { ranks });
    expect(settingsIn(directory).ranks).toMatchObject({ by: "mpiexec", program: "/site/mpirun" });
    await prepare({ launcher: { name: "wrapped", prefix: ["nice", "-n", "5"] } }, { ranks });
    expect(settingsIn(directory).ranks).toMatchObject({ by: "srun" });
    expect(await readFile(join(directory, "agent.sh"), "utf8")).toContain('exec nice -n 5 "$slipway_node"');
  });
});
