import { describe, expect, it } from "vitest";
import type { ClusterDescription, Partition } from "../../../src/managers/provider.ts";
import { jobShortage, partitionOf } from "../../../src/submission/job-fits.ts";

const partition = (name: string, cpus: number, memory: number, nodes: number): Partition => ({
  name,
  isDefault: name === "batch",
  isUp: true,
  nodes,
  cpusPerNode: cpus,
  memoryPerNode: memory,
  gpusPerNode: 0,
  gpuTypes: [],
});
const GB = 2 ** 30;
const HPC: ClusterDescription = {
  version: "",
  largest: { cpus: 640_000, mem: 64 * GB },
  partitions: [partition("batch", 16, 32 * GB, 4), partition("big", 64, 64 * GB, 2), partition("odd", 0, 0, 1)],
};
const lack = (size: Parameters<typeof jobShortage>[1]): unknown => jobShortage(HPC, size);

describe("whether a manager has a node for the job of a task", () => {
  it("the named partition counts, several together, else the whole cluster", () => {
    const size = { resources: { cpus: 320_000 } };
    expect(lack({ ...size, partition: "batch" })).toEqual({
      name: "cpus",
      asked: 320_000,
      has: 160_000,
      partition: "batch",
    });
    for (const there of ["big", "batch,big", "nonsuch", "batch,nonsuch", undefined])
      expect(lack({ ...size, partition: there })).toBeUndefined();
    expect(lack({ resources: { cpus: 650_000 } })).toEqual({ name: "cpus", asked: 650_000, has: 640_000 });
  });

  it("what the manager does not say, or says of only one of its partitions, is left to it", () => {
    expect(lack({ resources: { cpus: 9e9, mem: 9e15, gpus: 10_000 }, partition: "odd" })).toBeUndefined();
    expect(lack({ resources: { cpus: 9e9 }, partition: "batch,odd" })).toBeUndefined();
    expect(lack({ resources: { tmp: 9e15, gpus: 10_000, licence: 10_000 }, partition: "batch" })).toBeUndefined();
  });

  it("ranks share the nodes that they ask for", () => {
    const ranks = (count: number, nodes?: number) =>
      ({ count, by: "agents", ...(nodes === undefined ? {} : { nodes }) }) as const;
    const resources = { cpus: 80_000 };
    expect(lack({ resources, ranks: ranks(8, 4), partition: "batch" })).toBeUndefined();
    expect(lack({ resources, ranks: ranks(900), partition: "batch" })).toBeUndefined();
    expect(lack({ resources, ranks: ranks(9, 4), partition: "batch" })).toMatchObject({ name: "ranks", has: 8 });
    expect(lack({ resources, ranks: ranks(5, 5), partition: "batch" })).toMatchObject({ name: "nodes", has: 4 });
  });

  it("the partition is the task's, else the queue's, unless an option may name another", () => {
    const queue = { partition: "batch", options: [] };
    expect(partitionOf({ partition: "big" }, queue)).toBe("big");
    expect(partitionOf({}, queue)).toBe("batch");
    expect(partitionOf({}, { ...queue, options: ["--exclusive", "--partition=x"] })).toBeUndefined();
    expect(partitionOf({}, undefined)).toBeUndefined();
  });
});
