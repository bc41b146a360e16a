import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { MAX_BYTES } from "../../../src/core/quantities.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { accountRules, capacityIn } from "../../../src/pilots/accounts.ts";

const clusters = combineClusters([
  readClustersFile(
    "clusters: { local: { resources: { cpus: 2 }, licences: { seat: 1 } }, hpc: { type: slurm, licences: { matlab: 5 }, resources: { disk: 3 } } }",
    "clusters.yaml",
  ),
]);
const largest = new Map([
  ["local", { cpus: 2 * FRACTION, mem: 2 ** 30, tmp: MAX_BYTES, seat: FRACTION }],
  ["hpc", { cpus: 64 * FRACTION, disk: 3 * FRACTION, matlab: 5 * FRACTION }],
]);
const offer = { id: 1, resources: {}, queue: "q", endsAt: Infinity };

describe("accountRules", () => {
  const rules = accountRules(clusters, largest, "me");

  it("row 001-36: this machine is counted once with all it has, a cluster only in its licences", () => {
    expect(capacityIn(rules, "local")).toEqual({ cpus: 2 * FRACTION, mem: 2 ** 30, seat: FRACTION });
    expect(capacityIn(rules, "hpc")).toEqual({ matlab: 5 * FRACTION });
    expect(capacityIn(rules, "none")).toEqual({});
  });

  it("agents of pilots are on this machine, others where their host is; licences are everywhere", () => {
    const covered = (host: string, pilot: number): string[] =>
      rules
        .filter(({ cluster, covers }) => cluster === "local" && covers({ ...offer, cluster, host, pilot }))
        .flatMap(({ capacity }) => Object.keys(capacity));
    expect(covered("me", 0)).toEqual(["cpus", "mem", "seat"]);
    expect(covered("other", 4)).toEqual(["cpus", "mem", "seat"]);
    expect(covered("other", 0)).toEqual(["seat"]);
  });
});
