import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ClustersConfig, combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { compareClusters } from "../../../src/config/compare-clusters.ts";
import { watchFiles } from "../../../src/watch-files.ts";
import { until } from "../../until.ts";

/** clusters.yaml, read again by a server that runs. */

const config = (file: object): ClustersConfig => combineClusters([readClustersFile(JSON.stringify(file), "c.yaml")]);
const hpc = (queues: object, more: object = {}) => ({ type: "slurm", queues, ...more });

describe("what changes", () => {
  it("is said key by key; queues and clusters come and go", () => {
    const before = config({
      clusters: { hpc: hpc({ cpu: { walltime: "1h", fleet: { max: 2 } }, old: {} }), gone: hpc({ q: {} }) },
    });
    const after = config({
      clusters: { hpc: hpc({ cpu: { walltime: "2h", fleet: { max: 9 } }, fresh: {} }, { bin: "/opt" }), more: hpc({}) },
    });
    const change = compareClusters(before, after);
    expect(change.changes).toEqual([
      "cluster hpc: bin (not set) → /opt",
      "hpc/cpu: walltime 1h → 2h",
      "hpc/cpu: fleet.max 2 → 9",
      "hpc/fresh: added",
      "hpc/old: removed",
      "cluster more: added",
      "cluster gone: removed",
    ]);
    expect(change.gone).toEqual([{ cluster: "hpc", queue: "old" }, { cluster: "gone" }]);
    expect([...change.touched]).toEqual(["hpc", "more", "gone"]);
    expect([...change.reached]).toEqual(["hpc"]);
    expect(change.later).toEqual([]);
    expect(change.config.clusters.get("hpc")?.queues.get("cpu")?.fleet.max).toBe(9);
  });

  it("the same file changes nothing, however it is written", () => {
    const one = { clusters: { hpc: hpc({ cpu: { walltime: "1h" } }) } };
    const same = { clusters: { hpc: hpc({ cpu: { walltime: "60m" } }) } };
    expect(compareClusters(config(one), config(same))).toMatchObject({ changes: [], later: [], gone: [] });
  });

  it("what is counted from a start on stays as it is until the next, and is said", () => {
    const before = config({ clusters: { local: { resources: { cpus: 2 } }, hpc: hpc({}, { licences: { foo: 1 } }) } });
    const after = config({
      default: "hpc",
      limits: { losses: 9 },
      clusters: {
        local: { resources: { cpus: 4 } },
        hpc: hpc({}, { licences: { foo: 2 }, type: "pbs" }),
        lic: hpc({}, { licences: { bar: 1 } }),
      },
    });
    const { changes, later, config: kept } = compareClusters(before, after);
    expect(changes).toEqual([]);
    expect(later).toHaveLength(5);
    expect(later.join("; ")).toMatch(
      /resources\.cpus 2 → 4.*type slurm → pbs.*lic: added.*default local → hpc.*losses 5 → 9/,
    );
    expect(kept).toMatchObject({ default: "local", limits: { losses: 5 } });
    expect(kept.clusters.get("hpc")?.type).toBe("slurm");
    expect(kept.clusters.has("lic")).toBe(false);
  });

  it("a bare number as walltime is warned about, where it is written and for managers with words of their own", () => {
    const read = (text: string): readonly string[] => combineClusters([readClustersFile(text, "c.yaml")]).warnings;
    const [warning, ...more] = read("clusters:\n  hpc:\n    type: slurm\n    queues:\n      q: { walltime: 60 }\n");
    expect(more).toEqual([]);
    expect(warning).toMatch(/^c\.yaml:5:\d+: walltime: 60 is 1m: .*Slurm reads minutes.*60s, or 60m/);
    expect(read("clusters: { hpc: { type: slurm, walltime: 60, queues: { a: {}, b: {} } } }")).toHaveLength(1);
    for (const good of ['"60"', "60s", "01:00:00"])
      expect(read(`clusters: { hpc: { type: slurm, queues: { q: { walltime: ${good} } } } }`)).toEqual([]);
    expect(read("clusters: { local: { walltime: 60 } }")).toEqual([]);
  });
});

describe("files", () => {
  it("are noticed when they are written, replaced, made or removed, and only when they have settled", async () => {
    const root = await mkdtemp(join(tmpdir(), "slipway-watch-"));
    const [file, other] = [join(root, "clusters.yaml"), join(root, "new.yaml")];
    await writeFile(file, "a");
    let seen = 0;
    const watch = watchFiles(
      () => [file, other],
      () => (seen += 1),
      10,
    );
    const noticed = async (what: string, change: () => Promise<unknown>): Promise<void> => {
      const before = seen;
      await change();
      await until(`${what} to be noticed`, () => seen > before);
    };
    try {
      // it has looked once
      await noticed("a file", () => writeFile(other, "x"));
      await noticed("a change", () => writeFile(file, "ab"));
      await noticed("another file in its place", async () => {
        await writeFile(join(root, ".swp"), "ab");
        await rename(join(root, ".swp"), file);
      });
      await noticed("that it is gone", () => rm(file));
    } finally {
      watch.close();
      await rm(root, { recursive: true });
    }
  });
});
