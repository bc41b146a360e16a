import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile, type ClusterConfig } from "../../../src/config/clusters-file.ts";
import type { Manager } from "../../../src/managers/manager.ts";
import { MANAGERS } from "../../../src/managers/managers.ts";
import { createProvider } from "../../../src/managers/registry.ts";
import { simulatedOptions } from "../../../src/managers/simulated/options.ts";
import { knownOf, largestOf } from "../../../src/pilots/largest.ts";

const cluster = (text: string): ClusterConfig =>
  combineClusters([readClustersFile(`clusters: { x: ${text} }`, "c.yaml")]).clusters.get("x")!;

const lines = (text: string): string[] => {
  const { manager, queues } = cluster(text);
  const [queue] = queues.values();
  return manager.batch!.directives({ ...queue!, name: "slipway-1-7", stdout: "/d/stdout", stderr: "/d/stderr" });
};

describe("a queue becomes what its manager is asked", () => {
  it("Slurm", () => {
    const found = lines(
      "{type: slurm, partition: p, account: a, nodes: 2, cores: 4, memory: 1G, gpus: 1, walltime: 90m, exclusive: true, qos: q, options: [--mail-type=END], skip-options: [--no-requeue], gres: 'nvme:1', qos1: low}",
    );
    expect(found).toContain("#SBATCH --partition=p");
    expect(found).toContain("#SBATCH --nodes=2");
    expect(found).toContain("#SBATCH --mail-type=END");
    expect(found).toContain("#SBATCH hetjob");
    expect(found).toContain("#SBATCH --qos=low");
    expect(found.join("\n")).not.toContain("--no-requeue");
  });

  it("PBS, Grid Engine and OAR", () => {
    expect(
      lines("{type: pbs, queue: work, nodes: 2, cores: 4, select-options: 'mpiprocs=1', place: scatter}").join("\n"),
    ).toMatch(/select=2:ncpus=4:mpiprocs=1[\s\S]*place=scatter[\s\S]*-q work/);
    expect(
      lines(
        "{type: sge, pe: mpi, cores: 4, memory: 4G, mem_resource: mem_free, hard: [a=1], requests: {b: 2}, default_prio: -5}",
      ).join("\n"),
    ).toMatch(/-p -5[\s\S]*-pe mpi 4[\s\S]*mem_free=[\s\S]*a=1[\s\S]*b=2/);
    const oar = lines("{type: oar, memory: 1G, memory_per_core_property_name: none, property: \"x='y'\"}");
    expect(oar).toContain("#OAR -p x='y'");
    expect(lines("{type: oar, queue: default, cores: 2, walltime: 1h}").join("\n")).toMatch(/#OAR/);
  });

  it.each(["slurm", "pbs", "sge", "oar", "simulated"] as const)(
    "%s: skip-options leave out what they name; a blank line in them names nothing",
    (type) => {
      const of = (skip: string): string[] => {
        const text = `{type: ${type}, partition: p, walltime: 1h, skip-options: ${skip}}`;
        return type === "simulated" ? simulatedOptions([...cluster(text).queues.values()][0]!) : lines(text);
      };
      const all = of("[]");
      expect(all.length).toBeGreaterThan(2);
      expect(of('["", " ", "\\t"]')).toEqual(all);
      // as a block of text with an empty line is read
      expect(of('"walltime\\n\\np"').length).toBeLessThan(all.length);
      expect(of(JSON.stringify([all[1]!.replace(/^#\S+ /, ""), ""]))).toEqual(all.toSpliced(1, 1));
    },
  );

  it("every row has a driver, and every driver of a manager with scripts can try a job out", () => {
    for (const [type, row] of Object.entries<Manager>(MANAGERS)) {
      const provider = createProvider(cluster(`{type: ${type}}`), { here: { home: "/nowhere", machine: {} } });
      for (const method of ["describe", "submit", "poll", "cancel", "list"] as const)
        expect(provider[method]).toBeTypeOf("function");
      if (row.batch !== undefined) expect(provider.tryOut).toBeTypeOf("function");
    }
  });
});

describe("the most that a task can hope for", () => {
  it("is what the queues declare; what they leave to the manager is not bounded", () => {
    const declared = largestOf(
      cluster(
        "{type: slurm, queues: {a: {cores: 4, memory: 1G, tmp: 1G}, b: {cores: 8, memory: 1G, tmp: 2G, gpus: 2, resources: {licence: 3}}}}",
      ),
    );
    expect(declared).toEqual({ cpus: 80_000, mem: 2 ** 30, tmp: 2 ** 31, gpus: 20_000, licence: 30_000 });
    expect(knownOf(declared)).toEqual(declared);
    const open = largestOf(cluster("{type: slurm, queues: {a: {cores: 4}, b: {gres: 'gpu:2'}}}"));
    expect(knownOf(open)).toEqual({});
    expect(open["gpus"]).toBeGreaterThan(10_000);
    expect(largestOf(cluster("{type: slurm, cores: 4}"))["gpus"]).toBeUndefined();
  });
});
