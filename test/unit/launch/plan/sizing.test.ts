import { describe, expect, it } from "vitest";
import { CPU, GPU, plan, refused, type SampleOptions } from "./sample.ts";

const OURS = /^#SBATCH --(nodes|ntasks|tasks-per-node|gpus|gpus-per-task|gres|cpus-per-task)=/;

const slurm = (launch: Record<string, unknown>, cluster: readonly string[] = [], options: SampleOptions = {}): string =>
  plan(launch, { ...options, cluster })
    .directives.filter((line) => OURS.test(line))
    .map((line) => line.slice("#SBATCH ".length))
    .join(" ");

const select = (launch: Record<string, unknown>, cluster: readonly string[] = []): string =>
  plan(launch, { manager: "pbs", cluster })
    .directives.filter((line) => line.startsWith("#PBS -l select"))
    .map((line) => line.slice("#PBS -l ".length))
    .join(" ");

const TRES = { true: [], false: ["tres_supported: false"] };
const NO_GRES = ["gres_supported: false", "slot_type: cuda"];

describe("slots of a Slurm launch", () => {
  describe.each(["cuda", "rocm"])("%s with tres and gres", (slot_type) => {
    it.each([
      // slots, slots_per_node, gpu_type, options
      [1, undefined, undefined, "--gpus=1 --nodes=1-1 --tasks-per-node=1"],
      [4, undefined, undefined, "--gpus=4 --nodes=1-4 --tasks-per-node=1"],
      [6, undefined, undefined, "--gpus=6 --nodes=2-6 --tasks-per-node=1"],
      [6, undefined, "a100", "--gpus=a100:6 --nodes=2-6 --tasks-per-node=1"],
      [8, 4, undefined, "--gpus=8 --nodes=2-8 --tasks-per-node=1 --gpus-per-task=4"],
      [8, 2, "a100", "--gpus=a100:8 --nodes=2-8 --tasks-per-node=1 --gpus-per-task=a100:2"],
      [5, 2, undefined, "--gpus=6 --nodes=2-6 --tasks-per-node=1 --gpus-per-task=2"],
      [1, 4, undefined, "--gpus=4 --nodes=1-4 --tasks-per-node=1 --gpus-per-task=4"],
    ])("%s slots, %s per node, type %s: %s", (slots, slots_per_node, gpu_type, options) => {
      expect(slurm({ slots, slot_type, slurm: { slots_per_node, gpu_type } })).toBe(options);
    });

    it("asks for at least one node where the nodes' GPUs are not known", () => {
      expect(slurm({ slots: 6, slot_type, resource_pool: "x" }, [], { partitions: [] })).toBe(
        "--gpus=6 --nodes=1-6 --tasks-per-node=1",
      );
    });
  });

  it.each([
    ["cuda", 8, 4, undefined, "--nodes=2 --ntasks=2 --gres=gpu:4"],
    ["rocm", 8, 4, "mi250", "--nodes=2 --ntasks=2 --gres=gpu:mi250:4"],
    ["cuda", 3, undefined, undefined, "--nodes=3 --ntasks=3 --gres=gpu:1"],
    ["cuda", 5, 4, undefined, "--nodes=2 --ntasks=2 --gres=gpu:4"],
  ])(
    "%s with gres alone: %s slots, %s per node, type %s: %s",
    (slot_type, slots, slots_per_node, gpu_type, options) => {
      expect(slurm({ slots, slot_type, slurm: { slots_per_node, gpu_type } }, TRES.false)).toBe(options);
    },
  );

  it.each(["true", "false"] as const)("cpu, tres %s", (tres) => {
    const cpu = (slots: number, slots_per_node?: number) =>
      slurm({ slots, slot_type: "cpu", slurm: { slots_per_node } }, TRES[tres]);
    expect(cpu(8, 4)).toBe("--nodes=2 --ntasks=2 --cpus-per-task=4");
    expect(cpu(3)).toBe("--nodes=3 --ntasks=3");
    expect(cpu(9, 4)).toBe("--nodes=3 --ntasks=3 --cpus-per-task=4");
  });

  it.each(["cuda", "rocm"])("%s without gres, with and without tres", (slot_type) => {
    for (const tres of [TRES.true, TRES.false]) {
      expect(slurm({ slots: 8, slot_type, slurm: { slots_per_node: 4 } }, [...NO_GRES, ...tres])).toBe(
        "--nodes=2 --ntasks=2",
      );
      expect(slurm({ slots: 2, slot_type }, [...NO_GRES, ...tres])).toBe("--nodes=2 --ntasks=2");
    }
  });

  it("without slots asks for one node", () => {
    expect(slurm({ slots: 0 })).toBe("--nodes=1 --ntasks=1");
    expect(slurm({ slots: 0, slot_type: "cuda", slurm: { slots_per_node: 4, gpu_type: "a100" } })).toBe(
      "--nodes=1 --ntasks=1",
    );
  });

  it("says what was rounded, and why", () => {
    expect(plan({ slots: 5, slurm: { slots_per_node: 2 } }).notes.join("\n")).toMatch(
      /not a multiple of 2.*6 on 3 nodes/,
    );
    expect(plan({ slots: 6 }).notes.join("\n")).toMatch(/at least 2 nodes of 4/);
    expect(plan({ slots: 4 }).notes).toEqual([]);
    expect(plan({ slots: 4 }, { cluster: NO_GRES }).notes.join("\n")).toMatch(/gres_supported/);
  });

  it("tells what to expect", () => {
    expect(plan({ slots: 6 }).sizing).toEqual({ slotType: "cuda", slots: 6, nodes: { min: 2, max: 6 } });
    expect(plan({ slots: 5, slurm: { slots_per_node: 2 } }).sizing).toEqual({
      slotType: "cuda",
      slots: 6,
      slotsPerNode: 2,
      nodes: { min: 3, max: 3 },
    });
  });
});

describe("slots of a PBS launch", () => {
  it.each(["cuda", "rocm"])("%s", (slot_type) => {
    const given = (slots: number, slots_per_node?: number, cluster: readonly string[] = []) =>
      select({ slots, slot_type, pbs: { slots_per_node } }, cluster);
    expect(given(8, 4)).toBe("select=2:ngpus=4");
    expect(given(3)).toBe("select=3:ngpus=1");
    expect(given(9, 4)).toBe("select=3:ngpus=4");
    expect(given(8, 4, NO_GRES)).toBe("select=2");
    expect(given(2, undefined, NO_GRES)).toBe("select=2");
  });

  it("cpu, and none", () => {
    expect(select({ slots: 8, slot_type: "cpu", pbs: { slots_per_node: 4 } })).toBe("select=2:ncpus=4");
    expect(select({ slots: 3, slot_type: "cpu" })).toBe("select=3:ncpus=1");
    expect(select({ slots: 0 })).toBe("select=1");
  });
});

describe("the resource pool", () => {
  const pool = (launch: Record<string, unknown>, options: SampleOptions = {}) => plan(launch, options).pool;

  it("is a queue of clusters.yaml, else a partition", () => {
    const cluster = ["queues: { mine: { partition: cpu, account: a1 }, gpu: { partition: cpu } }"];
    expect(pool({ resource_pool: "mine" }, { cluster })).toMatchObject({ name: "mine", partition: "cpu" });
    expect(pool({ resource_pool: "gpu" }, { cluster })).toMatchObject({ name: "gpu", partition: "cpu" });
    expect(pool({ resource_pool: "cpu" }, { cluster })).toMatchObject({ name: "cpu", partition: "cpu" });
    expect(plan({ resource_pool: "mine" }, { cluster }).directives).toContain("#SBATCH --account=a1");
    const error = refused(() => pool({ resource_pool: "cpus" }, { cluster }));
    expect(error.code).toBe("no-pool");
    expect(error.message).toContain("did you mean 'cpu'");
  });

  it("is the cluster's default for compute or for auxiliary work", () => {
    const cluster = ["default_compute_resource_pool: gpu", "default_aux_resource_pool: cpu"];
    expect(pool({ slots: 1 }, { cluster }).partition).toBe("gpu");
    expect(pool({ slots: 0 }, { cluster }).partition).toBe("cpu");
  });

  it("is the manager's default partition, for compute only if it has GPUs or slots are CPUs", () => {
    expect(pool({ slots: 1 }).partition).toBe("gpu");
    const partitions = [
      { ...GPU, isDefault: false },
      { ...CPU, isDefault: true },
    ];
    expect(pool({ slots: 0 }, { partitions }).partition).toBe("cpu");
    expect(pool({ slots: 2, slot_type: "cpu" }, { partitions }).partition).toBe("cpu");
    expect(pool({ slots: 2 }, { partitions, cluster: ["slot_type: cpu"] }).partition).toBe("cpu");
    const error = refused(() => pool({ slots: 2 }, { partitions }));
    expect(error.code).toBe("no-pool");
    expect(error.hint).toContain("default_compute_resource_pool");
    // there may be GPUs that the manager does not count
    expect(pool({ slots: 2 }, { partitions, cluster: ["gres_supported: false"] }).partition).toBe("cpu");
  });

  it("decides what a slot is, unless somebody says it", () => {
    const type = (launch: Record<string, unknown>, cluster: readonly string[] = []) =>
      plan(launch, { cluster }).sizing.slotType;
    expect(type({ resource_pool: "gpu" })).toBe("cuda");
    expect(type({ resource_pool: "cpu" })).toBe("cpu");
    expect(type({ resource_pool: "gpu" }, ["slot_type: rocm"])).toBe("rocm");
    const overrides = ["slot_type: rocm", "partition_overrides: { gpu: { slot_type: cpu } }"];
    expect(type({ resource_pool: "gpu" }, overrides)).toBe("cpu");
    expect(type({ resource_pool: "cpu" }, overrides)).toBe("rocm");
    expect(type({ resource_pool: "gpu", slot_type: "cuda" }, overrides)).toBe("cuda");
  });
});
