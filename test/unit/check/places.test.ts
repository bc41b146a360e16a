import { describe, expect, it } from "vitest";
import { createDescriptions } from "../../../src/check/descriptions.ts";
import { createPlaces } from "../../../src/check/places.ts";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import type { GroupSpec, RunSpec } from "../../../src/core/spec.ts";
import type { ClusterDescription, Partition } from "../../../src/managers/provider.ts";
import { enforcedBy, parseAssociations } from "../../../src/managers/slurm/driver/parse-config.ts";

/** What is refused at submit by the last description of a cluster. */

const partition = (name: string, more: Partial<Partition> = {}): Partition => ({
  name,
  isDefault: false,
  isUp: true,
  nodes: 1,
  cpusPerNode: 4,
  memoryPerNode: 2 ** 30,
  gpusPerNode: 0,
  gpuTypes: [],
  ...more,
});

const DESCRIPTION: ClusterDescription = {
  version: "slurm 24",
  largest: {},
  partitions: [partition("batch", { isDefault: true, maxWalltime: 7200 }), partition("long")],
  accounts: ["proj", "other"],
  qos: ["normal", "low"],
};

const clusters = combineClusters([
  readClustersFile(
    JSON.stringify({
      clusters: {
        hpc: {
          type: "slurm",
          queues: {
            good: { partition: "batch", account: "Proj", qos: "low", walltime: "1h" },
            both: { partition: "batch,long" },
            typo: { partition: "bacth" },
            half: { partition: "batch,lnog" },
            account: { partition: "batch", account: "porj" },
            qos: { partition: "batch", qos: "hihg" },
            none: { partition: "batch", fleet: { max: 0 } },
            any: {},
          },
        },
        wrong: { type: "slurm", queues: { a: { partition: "x" }, b: { account: "y" } } },
      },
    }),
    "c.yaml",
  ),
]);

const group = (more: Partial<GroupSpec>): GroupSpec => ({
  name: "t",
  command: ["true"],
  items: { kind: "one" },
  after: [],
  resources: {},
  priority: 0,
  retries: 0,
  retryDelay: 0,
  executor: "process",
  cluster: "hpc",
  ...more,
});

const check = (
  more: Partial<GroupSpec>,
  { description = DESCRIPTION as ClusterDescription | null, served = false } = {},
): string => {
  const places = createPlaces({ clusters, described: () => description ?? undefined, isServed: () => served });
  try {
    places.check({ name: "r", cwd: "/", env: {}, groups: [group(more)], numbering: { start: 0, step: 1 } } as RunSpec);
    return "taken";
  } catch (error) {
    return `${(error as Error).message} ${(error as { hint: string }).hint}`;
  }
};

describe("places", () => {
  it("a partition, account or QOS that the manager does not have is refused, with the nearest name", () => {
    expect(check({ queue: "good" })).toBe("taken");
    expect(check({ queue: "both" })).toBe("taken");
    expect(check({ queue: "any" })).toBe("taken");
    expect(check({ queue: "typo" })).toMatch(
      /queue typo: Slurm has no partition 'bacth'; did you mean 'batch'\?.*batch, long/,
    );
    expect(check({ queue: "half" })).toContain("no partition 'lnog'");
    expect(check({ queue: "account" })).toMatch(/no account 'porj' for this user; did you mean 'proj'\?/);
    expect(check({ queue: "qos" })).toMatch(/no QOS 'hihg' for this user.*normal, low/);
    // its own job: its own names
    expect(check({ queue: "good", job: { keys: { partition: "nope" } } })).toContain("no partition 'nope'");
    expect(check({ queue: "typo", job: { keys: { partition: "long" } } })).toBe("taken");
    expect(check({ cluster: "wrong" })).toMatch(/queue a: .*'x'.*; queue b: .*'y'/);
    // one queue that would do is enough
    expect(check({})).toBe("taken");
  });

  it("what is not known is not refused", () => {
    for (const queue of ["typo", "account", "qos"]) {
      expect(check({ queue }, { description: null })).toBe("taken");
      expect(check({ queue }, { description: { version: "1", largest: {} } })).toBe("taken");
    }
    expect(check({ queue: "nope" })).toBe("taken");
    expect(check({ cluster: "nowhere" })).toBe("taken");
  });

  it("a queue with max 0 takes tasks only while somebody's pilots are there", () => {
    expect(check({ queue: "none" }, { description: null })).toContain("max: 0");
    expect(check({ queue: "none" }, { served: true })).toBe("taken");
    expect(check({ queue: "none", job: { keys: {} } })).toBe("taken");
  });

  it("a time-request that no pilot could give is refused", () => {
    expect(check({ queue: "good", timeRequest: 1800 })).toBe("taken");
    expect(check({ queue: "good", timeRequest: 3600 })).toMatch(
      /time-request of 1h is longer than the 5\dm.* walltime of 1h/,
    );
    // without a walltime of its own: the partition's
    expect(check({ queue: "any", timeRequest: 7200 })).toBe("taken");
    expect(check({ queue: "any", timeRequest: 7201 })).toContain("what its partition allows");
    expect(check({ queue: "any", timeRequest: 7201 }, { description: null })).toBe("taken");
    expect(check({ queue: "both", timeRequest: 1e6 })).toBe("taken");
  });
});

describe("descriptions", () => {
  it("are kept for ten minutes, asked for again before, and void when their cluster has changed", async () => {
    let now = 0;
    let answer: () => Promise<ClusterDescription> = async () => DESCRIPTION;
    const all = createDescriptions({ describe: () => answer(), now: () => now });
    const hpc = clusters.clusters.get("hpc")!;
    expect([all.of("hpc"), all.isDue("hpc")]).toEqual([undefined, true]);
    await all.ask(hpc);
    expect([all.of("hpc"), all.isDue("hpc")]).toEqual([DESCRIPTION, false]);
    now = 300_000;
    expect([all.of("hpc"), all.isDue("hpc")]).toEqual([DESCRIPTION, true]);
    answer = () => Promise.reject(new Error("silent"));
    await expect(all.ask(hpc)).rejects.toThrow("silent");
    now = 600_000;
    expect(all.of("hpc")).toBe(DESCRIPTION);
    now = 600_001;
    expect(all.of("hpc")).toBeUndefined();
    let give: (description: ClusterDescription) => void = () => undefined;
    answer = () => new Promise((resolve) => (give = resolve));
    const late = all.ask(hpc);
    all.forget("hpc");
    give(DESCRIPTION);
    await late;
    expect(all.of("hpc")).toBeUndefined();
  });
});

describe("Slurm's accounting", () => {
  it("names count only where they are enforced and certain", () => {
    const enforce = (text: string) => enforcedBy(new Map([["AccountingStorageEnforce", text]]));
    expect(enforce("none")).toEqual({ accounts: false, qos: false });
    expect(enforce("associations,limits")).toEqual({ accounts: true, qos: false });
    expect(enforce("associations,limits,qos,safe")).toEqual({ accounts: true, qos: true });
    expect(enforcedBy(new Map())).toEqual({ accounts: false, qos: false });
    expect(parseAssociations("proj|normal,low\nother|low\n")).toEqual({
      accounts: ["proj", "other"],
      qos: ["normal", "low"],
    });
    expect(parseAssociations("proj|normal,+low\n")).toEqual({ accounts: ["proj"], qos: [] });
    expect(parseAssociations("proj|\n\n|x\ngarbage")).toEqual({ accounts: ["proj"], qos: [] });
  });
});
