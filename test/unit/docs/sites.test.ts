import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { preparePilot } from "../../../src/pilots/pilot-job.ts";

/** The clusters.yaml of examples/sites: each queue's batch job, as it would be submitted. */

const sites = fileURLToPath(new URL("../../../examples/sites/", import.meta.url));

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "slw-sites-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const clustersOf = async (file: string) =>
  combineClusters([readClustersFile(await readFile(join(sites, file), "utf8"), file)]);

/** What each queue asks its manager for: the lines that the manager reads, without names and paths. */
const requests = async (file: string): Promise<Record<string, string[]>> => {
  const config = await clustersOf(file);
  const cluster = config.clusters.get(config.default)!;
  const asked: Record<string, string[]> = {};
  for (const queue of cluster.queues.values()) {
    const job = await preparePilot(
      { home: directory, cluster, queue, batch: cluster.manager.batch!, bundle: async () => "b" },
      { id: 1, jobName: "slipway-1", directory, lifetime: undefined },
    );
    const script = await readFile(job.script!, "utf8");
    const lines = script.split("\n").flatMap((line) => /^#(?:SBATCH|PBS|\$|OAR) (.+)$/.exec(line)?.[1] ?? []);
    asked[queue.name] = lines.filter((line) => !line.includes(directory) && !line.includes("slipway-1"));
    for (const line of cluster.queues.get(queue.name)!.prologue) expect(script).toContain(line);
  }
  return asked;
};

describe("row 003-47: configurations of five kinds of sites", () => {
  it("each file is described in docs/sites.md", async () => {
    const page = await readFile(new URL("../../../docs/sites.md", import.meta.url), "utf8");
    for (const name of await readdir(sites)) expect(page).toContain(`(../examples/sites/${name})`);
  });

  it("a university's Slurm: account, QOS and GPUs", async () => {
    const common = ["--nodes=1", "--ntasks-per-node=1"];
    const ending = ["--account=physics", "--no-requeue"];
    const cpu = [...common, "--cpus-per-task=16", "--mem=61440M", "--time=480", "--partition=batch", ...ending];
    expect(await requests("university-slurm.yaml")).toEqual({
      cpu,
      spare: cpu.map((line) => (line === "--time=480" ? "--time=120" : line)).toSpliced(-1, 0, "--qos=low"),
      gpu: [...common, "--cpus-per-task=8", "--mem=49152M", "--gres=gpu:2", "--time=480", "--partition=gpu", ...ending],
    });
  });

  it("a national centre's Slurm: whole nodes, many at once, tasks' temporary files on their own disks", async () => {
    const { wide, debug } = await requests("national-slurm.yaml");
    expect(wide).toEqual([
      "--nodes=16",
      "--ntasks-per-node=1",
      "--cpus-per-task=128",
      "--mem=491520M",
      "--time=720",
      "--partition=compute",
      "--account=proj0042",
      "--constraint=milan",
      "--no-requeue",
      "--exclusive",
    ]);
    expect(debug).toEqual(expect.arrayContaining(["--nodes=1", "--time=30", "--partition=debug", "--exclusive"]));
    const settings = JSON.parse(await readFile(join(directory, "settings.json"), "utf8")) as { scratch: string };
    expect(settings.scratch).toBe("/scratch/local");
  });

  it("a centre with PBS: chunks, where they go, and the project", async () => {
    const { work, wide, gpu } = await requests("pbs-centre.yaml");
    const ending = ["-P ocean", "-r n", "-W umask=0022"];
    expect(work!.slice(0, 4)).toEqual([
      "-l select=1:ncpus=36:mem=178257920kb",
      "-l place=pack",
      "-l walltime=06:00:00",
      "-q workq",
    ]);
    expect(wide!.slice(0, 2)).toEqual(["-l select=4:ncpus=36:mem=178257920kb:mpiprocs=1", "-l place=scatter:excl"]);
    expect(gpu).toEqual(expect.arrayContaining(["-l select=1:ncpus=16:mem=125829120kb:ngpus=4", "-q gpuq"]));
    for (const lines of [work, wide, gpu]) expect(lines!.slice(-3)).toEqual(ending);
  });

  it("a department's Grid Engine: a parallel environment, memory for each slot", async () => {
    const { short, long } = await requests("department-sge.yaml");
    expect(short!.slice(-4)).toEqual(["-l h_rt=14400", "-q all.q", "-pe smp 8", "-l mem_free=2048"]);
    expect(long).toEqual(expect.arrayContaining(["-l h_rt=259200", "-P chemistry"]));
  });

  it("a testbed with OAR: nodes by property, best effort", async () => {
    const cpu = ["-l /nodes=2,walltime=2:00:00", "-p cluster='paravance'"];
    expect(await requests("testbed-oar.yaml")).toEqual({ cpu, idle: [...cpu, "-t besteffort"] });
  });

  it("workstations: what this machine gives, licences included", async () => {
    const { clusters } = await clustersOf("workstations.yaml");
    expect(clusters.get("local")!.resources).toEqual({ cpus: 60_000, mem: 24 * 1024 ** 3, matlab: 20_000 });
  });
});
