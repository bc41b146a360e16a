import { randomUUID } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { planLaunch, type LaunchPlan } from "../../src/launch/plan/plan.ts";
import type { Partition } from "../../src/managers/provider.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { sampleInput } from "../unit/launch/plan/sample.ts";
import { until } from "../until.ts";
import { startPbs, type PbsLab } from "./lab/pbs.ts";
import { writePlan } from "./launch-directory.ts";

const workq: Partition = {
  name: "workq",
  isDefault: true,
  isUp: true,
  nodes: 3,
  cpusPerNode: 4,
  memoryPerNode: 4 * 2 ** 30,
  gpusPerNode: 2,
  gpuTypes: [],
};

const NASTY = "$HOME `id` \"double\" 'single' back\\slash “ü” =\n\ttab, line\n";
const REPORT = 'env -0 >"$SLIPWAY_JOB_DIRECTORY/ranks/$SLIPWAY_RANK/report"; hostname';

const MARK = 'touch "$SLIPWAY_JOB_DIRECTORY/at-$SLIPWAY_RANK"; sleep 3600';

interface Row {
  readonly launch: Record<string, unknown>;
  readonly cluster?: readonly string[];
  /** Slots of each host, in the order of the hosts. */
  readonly slots: readonly number[];
  readonly resources: Readonly<Record<string, string>>;
}

const ROWS: Readonly<Record<string, Row>> = {
  "gres: one GPU each, two of them on a node": { launch: { slots: 3 }, slots: [2, 1], resources: { ngpus: "3" } },
  "gres: slots_per_node": {
    launch: { slots: 4, pbs: { slots_per_node: 2 } },
    slots: [2, 2],
    resources: { ngpus: "4", nodect: "2" },
  },
  "gres: one slot on each node": {
    launch: { slots: 3, pbs: { slots_per_node: 1 } },
    slots: [1, 1, 1],
    resources: { ngpus: "3", nodect: "3" },
  },
  "gres: rounded up": {
    launch: { slots: 5, pbs: { slots_per_node: 2 } },
    slots: [2, 2, 2],
    resources: { ngpus: "6", nodect: "3" },
  },
  "gres: a select of the user, with more lines of the node file": {
    launch: {
      slots: 4,
      pbs: { slots_per_node: 2, pbsbatch_args: ["-l select=9:ncpus=2:ngpus=1:mpiprocs=2:mem=10mb"] },
    },
    slots: [2, 2],
    resources: { ngpus: "4", ncpus: "4" },
  },
  "no gres": {
    launch: { slots: 4, pbs: { slots_per_node: 2, pbsbatch_args: ["-l select=1:ncpus=4"] } },
    cluster: ["gres_supported: false", "slot_type: cuda"],
    slots: [2, 2],
    resources: { nodect: "2" },
  },
  "cpu: slots_per_node": {
    launch: { slots: 8, slot_type: "cpu", pbs: { slots_per_node: 4 } },
    slots: [4, 4],
    resources: { ncpus: "8", nodect: "2" },
  },
  "no slots": { launch: { slots: 0 }, slots: [0], resources: { nodect: "1" } },
};

describe("what PBS allocates for a launch", () => {
  let lab: PbsLab;
  beforeAll(async () => {
    lab = await startPbs({ nodes: 3, history: true });
  });
  afterAll(async () => lab.stop());

  const launch = async (spec: Record<string, unknown>, cluster: readonly string[] = []) => {
    const id = randomUUID();
    const directory = join(lab.root, `launch-${id}`);
    const plan = planLaunch({
      ...sampleInput(spec, { manager: "pbs", cluster, partitions: [workq], directory }),
      id,
    });
    await writePlan(plan);
    const { code, stdout, stderr } = await lab.run(["qsub", ...plan.submitOptions, plan.paths.script], {
      env: { INHERITED: NASTY },
    });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return { plan, id: stdout.trim() };
  };
  const job = async (id: string): Promise<Record<string, unknown>> => {
    const { stdout } = await lab.run(["qstat", "-x", "-f", "-F", "json", id]);
    return (JSON.parse(stdout) as { Jobs: Record<string, Record<string, unknown>> }).Jobs[id]!;
  };
  const ended = (id: string): Promise<Record<string, unknown>> =>
    until(`job ${id} to end`, async () => {
      const facts = await job(id);
      return facts["job_state"] === "F" ? facts : undefined;
    });
  const logsOf = async ({ paths }: LaunchPlan): Promise<string> =>
    (await Promise.all([paths.stdout, paths.stderr].map((path) => readFile(path, "utf8").catch(() => "")))).join("");
  const report = async ({ paths }: LaunchPlan, rank: number): Promise<Record<string, string>> =>
    Object.fromEntries(
      (await readFile(join(paths.directory, "ranks", String(rank), "report"), "utf8"))
        .split("\0")
        .filter((line) => line !== "")
        .map((line): [string, string] => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );

  it.each(Object.entries(ROWS))("%s", async (_name, row) => {
    const { plan, id } = await launch({ command: REPORT, env: { NASTY, INHERITED: null }, ...row.launch }, row.cluster);
    const facts = await ended(id);
    expect([facts["Exit_status"], await logsOf(plan)]).toEqual([0, expect.stringContaining(`is job ${id} of PBS`)]);
    expect(facts["Resource_List"]).toMatchObject(
      Object.fromEntries(Object.entries(row.resources).map(([name, value]) => [name, Number(value)])),
    );
    expect(await readFile(plan.paths.exitCode, "utf8")).toBe("0\n");
    expect(await readFile(plan.paths.nativeId, "utf8")).toBe(`${id}\n`);

    const hosts = (await readFile(join(plan.paths.directory, "hosts"), "utf8")).trim().split("\n");
    expect(new Set(hosts).size).toBe(row.slots.length);
    expect((await readdir(join(plan.paths.directory, "ranks"))).toSorted()).toEqual(
      hosts.map((_, rank) => String(rank)),
    );
    for (const [rank, host] of hosts.entries()) {
      expect(await report(plan, rank)).toMatchObject({
        NASTY,
        INHERITED: NASTY,
        PBS_JOBID: id,
        SLIPWAY_RANK: String(rank),
        SLIPWAY_NODES: String(hosts.length),
        SLIPWAY_HOST: host,
        SLIPWAY_HOSTS: hosts.join(","),
        SLIPWAY_SLOTS: String(row.slots[rank]),
        SLIPWAY_HOST_SLOTS: hosts.map((name, at) => `${name}:${row.slots[at]}`).join(","),
        SLIPWAY_JOB_ID: id,
        MASTER_ADDR: hosts[0],
      });
      // if nodes have names of their own: it ran there, once
      if (process.getuid?.() === 0)
        expect((await logsOf(plan)).split("\n").filter((line) => line === host)).toHaveLength(1);
    }
  });

  it("the first rank that fails ends the whole job, also where it only sleeps", async () => {
    const { plan, id } = await launch({
      slots: 6,
      pbs: { slots_per_node: 2 },
      command:
        'touch "$SLIPWAY_JOB_DIRECTORY/at-$SLIPWAY_RANK"; if [ "$SLIPWAY_RANK" = 1 ]; then exit 3; fi; sleep 3600',
    });
    expect((await ended(id))["Exit_status"]).toBe(3);
    expect(await readFile(plan.paths.exitCode, "utf8")).toBe("3\n");
    await until("its processes to be gone", async () => (await processesUnder(plan.paths.directory)).length === 0);
  });

  it("a deleted job leaves no rank behind, and its status says so", async () => {
    const { plan, id } = await launch({ slots: 4, pbs: { slots_per_node: 2 }, command: MARK });
    const started = async () => (await readdir(plan.paths.directory)).filter((name) => name.startsWith("at-"));
    await until("its ranks to run", async () => (await started()).length === 2);
    expect((await lab.run(["qdel", id])).code).toBe(0);
    expect((await ended(id))["substate"]).toBe(91);
    await until("its processes to be gone", async () => (await processesUnder(plan.paths.directory)).length === 0);
  });
});
