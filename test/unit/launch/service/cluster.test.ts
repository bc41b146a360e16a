import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { settingsOf } from "../../../../src/launch/plan/settings.ts";
import { combineClusters, readClustersFile } from "../../../../src/config/clusters-file.ts";
import { createLaunchCluster, type LaunchCluster } from "../../../../src/launch/service/cluster.ts";

/** Two managers on one machine: one on the PATH, one in a directory that only clusters.yaml names. */

let root: string;

/** Programs that record where they are, their arguments, and where their manager is. */
const install = async (directory: string, programs: Readonly<Record<string, string>>): Promise<string> => {
  await mkdir(directory);
  for (const [name, answer] of Object.entries(programs)) {
    const path = join(directory, name);
    const lines = ["#!/bin/sh", `echo "$0 \${SLURM_CONF-}\${PBS_CONF_FILE-} $*" >>${join(root, "calls")}`, answer, ""];
    await writeFile(path, lines.join("\n"));
    await chmod(path, 0o755);
  }
  return directory;
};

const PROGRAMS = {
  slurm: { sbatch: "echo 7", squeue: ":", scancel: ":", sinfo: "echo slurm 22.05.8", sacct: ":" },
  pbs: { qsub: "echo 7.head", qstat: "echo '{}'", qdel: ":", pbsnodes: "echo '{}'" },
} as const;

const calls = async (): Promise<string[]> =>
  (await readFile(join(root, "calls"), "utf8").catch(() => "")).split("\n").filter((line) => line !== "");

const clusterOf = (type: "slurm" | "pbs", keys: object = {}): LaunchCluster => {
  const layer = readClustersFile(JSON.stringify({ clusters: { hpc: { type, ...keys } } }), "clusters.yaml");
  const config = combineClusters([layer]).clusters.get("hpc")!;
  return createLaunchCluster(config, type, settingsOf(config), join(root, "jobs"));
};

const job = (user?: string) => ({
  name: "slipway_cmd-x",
  directory: root,
  command: [],
  script: join(root, "job.sh"),
  ...(user === undefined ? {} : { user }),
});

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-launch-cluster-"));
  const path = await install(join(root, "path"), {
    ...PROGRAMS.slurm,
    ...PROGRAMS.pbs,
    sudo: 'while [ "$#" -gt 0 ]; do case $1 in -n) shift ;; -u) shift 2 ;; *=*) export "$1"; shift ;; *) break ;; esac; done; exec "$@"',
  });
  vi.stubEnv("PATH", `${path}:${process.env["PATH"]}`);
  vi.stubEnv("SLURM_CONF", undefined);
  vi.stubEnv("PBS_CONF_FILE", undefined);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(root, { recursive: true, force: true });
});

describe.each(["slurm", "pbs"] as const)("launches on a cluster of type %s", (type) => {
  const all = async (cluster: LaunchCluster, user?: string): Promise<void> => {
    const provider = cluster.provider(user);
    await provider.submit(job(user));
    await provider.cancel(["7"]);
    if (user !== undefined) return;
    await provider.describe();
    await provider.poll(["7"]);
    await provider.list("slipway");
  };

  it("speak to the manager that bin and config name, in the server's name and in a user's", async () => {
    const bin = await install(join(root, "other"), PROGRAMS[type]);
    const cluster = clusterOf(type, { bin, config: "/etc/other.conf" });
    await all(cluster);
    await all(cluster, "alice");
    const made = await calls();
    const [sudos, commands] = [
      made.filter((line) => line.startsWith(`${join(root, "path", "sudo")} `)),
      made.filter((line) => !line.includes("/sudo ")),
    ];
    expect(sudos).toHaveLength(2);
    for (const line of sudos)
      expect(line).toContain(
        `-n -u alice ${type === "slurm" ? "SLURM_CONF" : "PBS_CONF_FILE"}=/etc/other.conf ${bin}/`,
      );
    expect(commands.length).toBeGreaterThanOrEqual(7);
    for (const line of commands) expect(line).toMatch(new RegExp(`^${bin}/\\w+ /etc/other\\.conf `));
  });

  it("without them, to the one on the PATH", async () => {
    await all(clusterOf(type));
    await all(clusterOf(type), "alice");
    for (const line of await calls()) expect(line).toMatch(new RegExp(`^${root}/path/\\w+  `));
  });

  it("find the manager's programs inside of the job too", async () => {
    const bin = await install(join(root, "other"), PROGRAMS[type]);
    expect(await clusterOf(type, { bin }).searchPath()).toEqual([`PATH=${bin}:$PATH`, "export PATH"]);
    expect(await clusterOf(type).searchPath()).toEqual([`PATH=${root}/path:$PATH`, "export PATH"]);
  });

  it("are shown with the command that would be given", async () => {
    const bin = await install(join(root, "other"), PROGRAMS[type]);
    const [submit, variable] = type === "slurm" ? ["sbatch", "SLURM_CONF"] : ["qsub", "PBS_CONF_FILE"];
    const other = clusterOf(type, { bin, config: "/etc/other.conf" });
    expect(await other.submission(["job.sh"])).toEqual([
      "env",
      `${variable}=/etc/other.conf`,
      `${bin}/${submit}`,
      "job.sh",
    ]);
    expect(await other.submission(["job.sh"], "alice")).toEqual([
      "sudo",
      "-n",
      "-u",
      "alice",
      `${variable}=/etc/other.conf`,
      `${bin}/${submit}`,
      "job.sh",
    ]);
    expect(await clusterOf(type).submission(["job.sh"])).toEqual([submit, "job.sh"]);
    expect(await clusterOf(type).submission(["job.sh"], "alice")).toEqual([
      "sudo",
      "-n",
      "-u",
      "alice",
      `${root}/path/${submit}`,
      "job.sh",
    ]);
  });
});
