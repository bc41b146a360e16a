import { describe, expect, it } from "vitest";
import { clusterNamed, combineClusters, readClustersFile } from "../../../../src/config/clusters-file.ts";
import { SlipwayError } from "../../../../src/errors.ts";
import type { SimulatedCluster } from "../../../../src/managers/simulated/manager.ts";
import { QUIET, simulationOf } from "../../../../src/managers/simulated/simulation.ts";

const read = (text: string): ReturnType<typeof combineClusters> => combineClusters([readClustersFile(text, "c.yaml")]);

describe("a simulated cluster in clusters.yaml", () => {
  it("is read, and what it does not say gives no trouble", () => {
    const { own } = clusterNamed(
      read(
        "clusters: { t: { type: simulated, simulation: { nodes: 4, queue-wait: 5s, failure_rate: 0.5, seed: 7 } } }",
      ),
      "t",
    );
    expect(simulationOf((own as SimulatedCluster).simulation!, 9)).toEqual({
      ...QUIET,
      nodes: 4,
      coresPerNode: 2,
      queueWaitMs: 5000,
      failureRate: 0.5,
      seed: 7,
    });
    expect(simulationOf({}, 1)).toEqual(QUIET);
  });

  it.each([
    ["{ failure-rate: 2 }", "must be between 0 and 1, not 2"],
    ["{ nodes: 0 }", "must be between 1 and 1000, not 0"],
    ["{ queue-wait: soon }", "soon"],
    ["{ node: 2 }", "did you mean"],
    ["4", "must be a map"],
  ])("refuses simulation: %s", (text, words) => {
    const act = (): unknown => read(`clusters:\n  t:\n    type: simulated\n    simulation: ${text}\n`);
    expect(act).toThrow(SlipwayError);
    expect(act).toThrow(words);
    expect(act).toThrow("c.yaml:4");
  });

  it("is refused in a cluster of another type, where it was written", () => {
    expect(() => read("clusters:\n  t:\n    type: slurm\n    simulation: {}\n")).toThrow("c.yaml:4");
  });
});
