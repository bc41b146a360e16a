import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { createLargestMemory, createMemoryShare } from "../../../src/pilots/largest-memory.ts";
import { largestOf } from "../../../src/pilots/largest.ts";
import { createDriver, group } from "../core/model.ts";

const G = 2 ** 30;

const CLUSTERS = `
default: hpc
clusters:
  local: { resources: { cpu: 4, mem: 8G } }
  hpc:
    type: slurm
    queues:
      small: { memory: 16G }
      large: { memory: 64G, nodes: 4 }
  open:
    type: slurm
    queues: { any: {} }
`;

describe("the largest memory that a pilot gives", () => {
  const clusters = combineClusters([readClustersFile(CLUSTERS, "clusters.yaml")]);
  const { state, ...driver } = createDriver();
  const largest = new Map(
    [...clusters.clusters.values()].map((each) => [
      each.name,
      each.name === "local" ? { ...each.resources } : largestOf(each),
    ]),
  );
  const of = createLargestMemory({ state, clusters, largest });
  const joined = (cluster: string, mem: number): number => {
    const agent = driver.join();
    state.agents.set(agent, { ...state.agents.get(agent)!, cluster, resources: { mem } });
    return agent;
  };
  const asked = (more: Partial<GroupSpec>, agent = 0): number => of(group("a", 1, more), agent) / G;

  it("is what its queues declare", () => {
    expect(asked({})).toBe(64);
    expect(asked({ queue: "small" })).toBe(16);
    expect(asked({ cluster: "local" })).toBe(8);
  });

  it("is what nodes have had where the queue leaves it to the manager, and never a bound that no node has", () => {
    expect(asked({ cluster: "open" })).toBe(0);
    expect(asked({ cluster: "open" }, joined("open", 24 * G))).toBe(24);
    joined("open", 96 * G);
    expect(asked({ cluster: "open" })).toBe(96);
    expect(asked({})).toBe(64);
  });

  it("a task's share of it goes with its cores, and is a guess where nothing is known", () => {
    const share = createMemoryShare({ clusters, largest });
    const shareOf = (more: Partial<GroupSpec>): number => share(group("a", 1, more)) / G;
    expect(shareOf({ cluster: "local" })).toBe(2);
    expect(shareOf({ cluster: "local", resources: { cpus: 3 * FRACTION } })).toBe(6);
    expect(shareOf({ cluster: "local", resources: { cpus: 9 * FRACTION } })).toBe(8);
    expect(shareOf({ cluster: "open" })).toBe(2);
    expect(shareOf({ cluster: "open", resources: { cpus: 4 * FRACTION } })).toBe(8);
  });

  it("with ranks is the part of a node that each can have", () => {
    expect(asked({ ranks: { count: 8, nodes: 2, by: "agents" } })).toBe(16);
    expect(asked({ ranks: { count: 8, by: "agents" } })).toBe(32);
    expect(asked({ queue: "small", ranks: { count: 2, by: "agents" } })).toBe(8);
  });
});
