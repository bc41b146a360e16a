import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { planLaunch, type LaunchPlan } from "../../src/launch/plan/plan.ts";
import { SHORT, WITH_VALUE, WITHOUT_VALUE } from "../../src/managers/slurm/sbatch-table.ts";
import type { Partition } from "../../src/managers/provider.ts";
import { sampleInput } from "../unit/launch/plan/sample.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";
import { writePlan } from "./launch-directory.ts";

const reason = skipReason();

/** As sinfo describes the lab: three nodes with four GPUs, one with eight. */
const common: Partition = {
  name: "batch",
  isDefault: true,
  isUp: true,
  nodes: 3,
  cpusPerNode: 8,
  memoryPerNode: 16_000 * 2 ** 20,
  gpusPerNode: 4,
  gpuTypes: ["a100"],
};
const big: Partition = { ...common, name: "big", isDefault: false, nodes: 1, cpusPerNode: 16, gpusPerNode: 8 };
const plain: Partition = { ...common, name: "plain", isDefault: false, nodes: 1, gpusPerNode: 0, gpuTypes: [] };

interface Row {
  readonly launch: Record<string, unknown>;
  readonly cluster?: readonly string[];
  /** Slots that each rank sees; summed up where Slurm chooses how to spread them. */
  readonly ranks: readonly number[] | { readonly nodes: number; readonly total: number };
  /** What Slurm counted: GPUs of the job, CPUs of the job. */
  readonly gpus: number;
  readonly cpus?: number;
}

const NO_TRES = ["tres_supported: false"];
const NO_GRES = ["gres_supported: false", "slot_type: cuda"];

const ROWS: Readonly<Record<string, Row>> = {
  "tres, gres: GPUs of one node": { launch: { slots: 4 }, ranks: [4], gpus: 4 },
  "tres, gres: more than a node has": { launch: { slots: 6 }, ranks: { nodes: 2, total: 6 }, gpus: 6 },
  "tres, gres: all of a partition": { launch: { slots: 12 }, ranks: [4, 4, 4], gpus: 12 },
  "tres, gres: slots_per_node": { launch: { slots: 4, slurm: { slots_per_node: 2 } }, ranks: [2, 2], gpus: 4 },
  "tres, gres: slots_per_node, one node": { launch: { slots: 3, slurm: { slots_per_node: 3 } }, ranks: [3], gpus: 3 },
  "tres, gres: slots_per_node, rounded up": {
    launch: { slots: 5, slurm: { slots_per_node: 2 } },
    ranks: [2, 2, 2],
    gpus: 6,
  },
  "tres, gres: more slots_per_node than slots": {
    launch: { slots: 1, slurm: { slots_per_node: 4 } },
    ranks: [4],
    gpus: 4,
  },
  "tres, gres: gpu_type": { launch: { slots: 2, slurm: { gpu_type: "a100" } }, ranks: [2], gpus: 2 },
  "tres, gres: gpu_type and slots_per_node": {
    launch: { slots: 6, slot_type: "rocm", slurm: { gpu_type: "a100", slots_per_node: 3 } },
    ranks: [3, 3],
    gpus: 6,
  },
  "tres, gres: another pool, and options of the user": {
    launch: { slots: 8, resource_pool: "big", slurm: { sbatch_args: ["-c 3", "--mem=100"] } },
    ranks: [8],
    gpus: 8,
    cpus: 3,
  },
  "gres alone: slots_per_node": {
    launch: { slots: 4, slurm: { slots_per_node: 2 } },
    cluster: NO_TRES,
    ranks: [2, 2],
    gpus: 4,
  },
  "gres alone: one GPU each, gpu_type": {
    launch: { slots: 3, slurm: { gpu_type: "a100" } },
    cluster: NO_TRES,
    ranks: [1, 1, 1],
    gpus: 3,
  },
  "gres alone: rounded up": {
    launch: { slots: 5, slurm: { slots_per_node: 4 } },
    cluster: NO_TRES,
    ranks: [4, 4],
    gpus: 8,
  },
  "cpu: slots_per_node": {
    launch: { slots: 6, slot_type: "cpu", slurm: { slots_per_node: 3 } },
    ranks: [3, 3],
    gpus: 0,
    cpus: 6,
  },
  "cpu: one each": { launch: { slots: 3, slot_type: "cpu" }, ranks: [1, 1, 1], gpus: 0, cpus: 3 },
  "cpu: by the partition, without GPUs": { launch: { slots: 1, resource_pool: "plain" }, ranks: [1], gpus: 0 },
  "neither: slots_per_node": {
    launch: { slots: 4, slurm: { slots_per_node: 2 } },
    cluster: NO_GRES,
    ranks: [2, 2],
    gpus: 0,
    cpus: 2,
  },
  "neither: one each": { launch: { slots: 2 }, cluster: NO_GRES, ranks: [1, 1], gpus: 0 },
  "no slots": { launch: { slots: 0 }, ranks: [0], gpus: 0, cpus: 1 },
};

/** Each rank writes down what it sees, and the first what Slurm says of the job while it runs. */
const REPORT = `
env >"$SLIPWAY_JOB_DIRECTORY/ranks/$SLIPWAY_RANK/report"
hostname >>"$SLIPWAY_JOB_DIRECTORY/ran"
[ "$SLIPWAY_RANK" != 0 ] || scontrol --details show job "$SLURM_JOB_ID" >"$SLIPWAY_JOB_DIRECTORY/details"`;

describe.skipIf(reason !== undefined)(
  `what a real Slurm allocates for a launch${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    const jobs = new Map<string, { readonly plan: LaunchPlan; readonly id: string }>();

    const launch = async (
      spec: Record<string, unknown>,
      cluster: readonly string[] = [],
    ): Promise<{ plan: LaunchPlan; id: string }> => {
      const id = randomUUID();
      const plan = planLaunch({
        ...sampleInput(spec, { cluster, partitions: [common, big, plain], directory: join(lab.root, `job-${id}`) }),
        id,
      });
      await writePlan(plan);
      const { code, stdout, stderr } = await lab.run([
        "sbatch",
        "--parsable",
        ...plan.submitOptions,
        plan.paths.script,
      ]);
      expect(stderr).toBe("");
      expect(code).toBe(0);
      return { plan, id: stdout.trim() };
    };
    const fields = async (id: string): Promise<Record<string, string>> => {
      const { stdout } = await lab.run(["scontrol", "-o", "show", "job", id]);
      return Object.fromEntries([...stdout.matchAll(/(\S+?)=(\S*)/g)].map(([, name, value]) => [name!, value!]));
    };
    const ended = (id: string): Promise<Record<string, string>> =>
      until(`job ${id} to end`, async () => {
        const job = await fields(id);
        return /^(PENDING|CONFIGURING|RUNNING|COMPLETING)$/.test(job["JobState"] ?? "PENDING") ? undefined : job;
      });
    const counted = (job: Record<string, string>, name: string): number =>
      Number(new RegExp(`(?:^|,)${name}=(\\d+)`).exec(job["TRES"] ?? "")?.[1] ?? 0);
    const logsOf = async ({ paths }: LaunchPlan): Promise<string> =>
      (await Promise.all([paths.stdout, paths.stderr].map((path) => readFile(path, "utf8").catch(() => "")))).join("");

    beforeAll(async () => {
      lab = await startSlurm();
      for (const [name, row] of Object.entries(ROWS)) {
        const spec = { command: REPORT, ...row.launch };
        jobs.set(name, await launch(spec, row.cluster));
      }
    }, 120_000);
    afterAll(async () => lab.stop());

    it.each(Object.entries(ROWS))("%s", { timeout: 180_000 }, async (name, row) => {
      const { plan, id } = jobs.get(name)!;
      const job = await ended(id);
      expect(`${job["JobState"]} ${await logsOf(plan)}`).toMatch(/^COMPLETED/);
      expect(await readFile(plan.paths.exitCode, "utf8")).toBe("0\n");
      expect(await readFile(plan.paths.nativeId, "utf8")).toBe(`${id}\n`);

      const hosts = (await readFile(join(plan.paths.directory, "hosts"), "utf8")).trim().split("\n");
      const names = (await readdir(join(plan.paths.directory, "ranks"))).toSorted((a, b) => Number(a) - Number(b));
      expect(names).toEqual(hosts.map((_, rank) => String(rank)));
      const ranks = await Promise.all(
        names.map(async (rank) =>
          Object.fromEntries(
            (await readFile(join(plan.paths.directory, "ranks", rank, "report"), "utf8"))
              .split("\n")
              .map((line): [string, string] => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
          ),
        ),
      );
      // one task on each node, each once
      expect((await readFile(join(plan.paths.directory, "ran"), "utf8")).trim().split("\n").toSorted()).toEqual(
        hosts.toSorted(),
      );
      expect(Number(job["NumNodes"])).toBe(hosts.length);
      expect(counted(job, "node")).toBe(hosts.length);
      const details = await readFile(join(plan.paths.directory, "details"), "utf8");
      expect(Number(/JOB_GRES=gpu:\w+:(\d+)/.exec(details)?.[1] ?? 0)).toBe(row.gpus);
      if (row.cpus !== undefined) expect(counted(job, "cpu")).toBe(row.cpus);
      expect(hosts.length).toBeGreaterThanOrEqual(plan.sizing.nodes.min);
      expect(hosts.length).toBeLessThanOrEqual(plan.sizing.nodes.max);

      const slots = ranks.map((rank) => Number(rank["SLIPWAY_SLOTS"]));
      const total = slots.reduce((sum, some) => sum + some, 0);
      if (Array.isArray(row.ranks)) expect(slots).toEqual(row.ranks);
      else expect({ nodes: slots.length, total }).toEqual(row.ranks);
      for (const [rank, seen] of ranks.entries()) {
        expect(seen).toMatchObject({
          SLIPWAY_RANK: String(rank),
          SLIPWAY_NODES: String(hosts.length),
          SLIPWAY_HOST: hosts[rank],
          SLIPWAY_HOSTS: hosts.join(","),
          SLIPWAY_TOTAL_SLOTS: String(total),
          SLIPWAY_HOST_SLOTS: hosts.map((host, at) => `${host}:${slots[at]}`).join(","),
          MASTER_ADDR: hosts[0],
          SLURMD_NODENAME: hosts[rank],
        });
        // the devices of this node that the rank may use
        const devices = (seen["CUDA_VISIBLE_DEVICES"] ?? "").split(",").filter((device) => device !== "");
        expect(devices.length).toBe(row.gpus === 0 ? 0 : slots[rank]);
      }
    });

    it("the first rank that fails ends the others, and its status is the job's", { timeout: 180_000 }, async () => {
      const command = 'if [ "$SLIPWAY_RANK" = 1 ]; then exit 3; fi; sleep 3600';
      const { plan, id } = await launch({ slots: 3, slot_type: "cpu", command });
      expect(await ended(id)).toMatchObject({ JobState: "FAILED", ExitCode: "3:0" });
      expect(await readFile(plan.paths.exitCode, "utf8")).toBe("3\n");
    });

    it("a cancelled job tells its ranks to end", { timeout: 180_000 }, async () => {
      const command =
        "trap 'touch \"$SLIPWAY_JOB_DIRECTORY/told-$SLIPWAY_RANK\"; exit 0' TERM; " +
        'touch "$SLIPWAY_JOB_DIRECTORY/up-$SLIPWAY_RANK"; sleep 3600 & wait';
      const { plan, id } = await launch({ slots: 2, slot_type: "cpu", command });
      const files = async (prefix: string) =>
        (await readdir(plan.paths.directory)).filter((name) => name.startsWith(prefix)).length;
      await until("its ranks to run", async () => (await files("up-")) === 2);
      await lab.run(["scancel", id]);
      expect(await ended(id)).toMatchObject({ JobState: "CANCELLED" });
      await until("its ranks to have been told", async () => (await files("told-")) === 2);
    });

    const noMpi = existsSync("/usr/bin/mpirun") ? undefined : "openmpi is not installed";
    it.skipIf(noMpi !== undefined)(
      `mpirun starts a process for each slot from what the first rank knows${noMpi === undefined ? "" : ` (skipped: ${noMpi})`}`,
      { timeout: 180_000 },
      async () => {
        const command =
          '[ "$SLIPWAY_RANK" = 0 ] || exit 0; ' +
          'mpirun --allow-run-as-root --oversubscribe --hostfile "$SLIPWAY_HOSTFILE" -np "$SLIPWAY_TOTAL_SLOTS" ' +
          'sh -c \'echo "$SLURMD_NODENAME $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE" >>"$SLIPWAY_JOB_DIRECTORY/mpi"\'';
        const { plan, id } = await launch({ slots: 4, slurm: { slots_per_node: 2 }, command });
        const { JobState } = await ended(id);
        expect(`${JobState} ${await logsOf(plan)}`).toMatch(/^COMPLETED/);
        const [first, second] = (await readFile(join(plan.paths.directory, "hosts"), "utf8")).trim().split("\n");
        expect((await readFile(join(plan.paths.directory, "mpi"), "utf8")).trim().split("\n").toSorted()).toEqual(
          [`${first} 0/4`, `${first} 1/4`, `${second} 2/4`, `${second} 3/4`].toSorted(),
        );
      },
    );

    it("sbatch has the options that it is believed to have, and takes values where it is believed to", async () => {
      const { stdout } = await lab.run(["sbatch", "--help"]);
      const told = [...stdout.matchAll(/^ {2}(?:-(\w)[, ] | {4})--([a-z-]+)(\[?=)?/gm)].map(
        ([, letter, name, value]) => ({
          letter,
          name: name!,
          takes: value === "=",
        }),
      );
      expect(told.length).toBeGreaterThan(80);
      for (const { letter, name, takes } of told) {
        if (letter !== undefined) expect([letter, SHORT[letter]]).toEqual([letter, name]);
        // its help omits the value of --container, and says that the one of --export is optional
        if (["container", "export", "wrap"].includes(name)) continue;
        expect([name, WITH_VALUE.has(name), WITHOUT_VALUE.has(name)]).toEqual([name, takes, !takes]);
      }
    });
  },
);
