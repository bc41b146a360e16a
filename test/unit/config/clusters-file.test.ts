import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clusterNamed, combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { loadClusters } from "../../../src/config/load-clusters.ts";

const read = (...texts: string[]) => combineClusters(texts.map((text, i) => readClustersFile(text, `c${i}.yaml`)));

const EXAMPLE = `
default: local
clusters:
  local: { type: local, resources: { cpu: 8, mem: 16G, licence: 2 } }
  hpc:
    type: slurm
    launcher: srun
    queues:
      cpu: { partition: qcpu, nodes: 1, cores: 64, memory: 240G, walltime: 04:00:00,
             fleet: { strategy: auto, init: 0, min: 0, max: 10, parallelism: 1, idle: 2m } }
      gpu: { template: cpu, partition: qgpu, gpus: 8 }
    prologue: ["module load python"]
`;

describe("tasks as jobs of their own", () => {
  const of = (text: string) => clusterNamed(read(`clusters: { x: { ${text} } }`), "x");

  it("row 001-49, row 001-62: at most 10 of a kind wait in the manager, unless n_max_queued_jobs says otherwise", () => {
    for (const type of ["slurm", "sge", "pbs", "oar", "local", "simulated"]) {
      expect(of(`type: ${type}`).nMaxQueuedJobs).toBe(10);
      expect(of(`type: ${type}, n_max_queued_jobs: 50`).nMaxQueuedJobs).toBe(50);
      expect(of(`type: ${type}, n-max-queued-jobs: 1`).nMaxQueuedJobs).toBe(1);
    }
    for (const value of ["0", "1.5", "many"])
      expect(() => of(`type: sge, n_max_queued_jobs: ${value}`)).toThrow("n_max");
  });

  it("row 001-51, row 001-63: repo_key may be any line, also an empty one", () => {
    expect(of("type: sge").repoKey).toBeUndefined();
    expect(of("type: sge, repo_key: 'my repo:'").repoKey).toBe("my repo:");
    expect(of("type: slurm, repo-key: ''").repoKey).toBe("");
    expect(() => of('type: slurm, repo-key: "a\\nb"')).toThrow("line break");
    expect(() => of(`type: slurm, repo-key: ${"x".repeat(51)}`)).toThrow("at most 50");
  });

  it("row 001-61, row 001-64: use_nice and lib_slurm are Slurm's; the latter is accepted with a notice", () => {
    const { own, manager } = of("type: slurm, use_nice: true, lib_slurm: libslurm.so");
    expect(own).toEqual({ useNice: true, libSlurm: "libslurm.so" });
    expect(manager.notices?.(own)).toEqual([expect.stringContaining("lib-slurm is not needed")]);
    expect(manager.notices?.(of("type: slurm").own)).toEqual([]);
    expect(() => of("type: sge, use_nice: true")).toThrow(/is a key of slurm clusters/);
  });

  it("row 001-56: hard and soft of a queue take options of qsub as one text", () => {
    const { own } = clusterNamed(
      read("clusters: { x: { type: sge, hard: '-q fast.q', soft: ['a=1,b=2', '-l c=3 -q slow.q'] } }"),
      "x",
    ).queues.get("default")!;
    expect(own).toMatchObject({ hard: ["-q fast.q"], soft: ["a=1", "b=2", "-l c=3 -q slow.q"] });
  });
});

describe("licences", () => {
  const hpc = (text: string) => `clusters: { hpc: { type: slurm, ${text} } }`;

  it("are the cluster's: amounts by name, put together name by name; without them there are none", () => {
    const { licences } = clusterNamed(
      read(hpc("licences: { matlab: 5, idl: 1 }"), "clusters: { hpc: { licences: { idl: 2 } } }"),
      "hpc",
    );
    expect(licences).toEqual({ matlab: 50_000, idl: 20_000 });
    expect(clusterNamed(read(EXAMPLE), "hpc").licences).toEqual({});
  });

  it.each([
    ["licences: { cpus: 5 }", "clusters.hpc.licences.cpus", /belongs to a node/],
    ["licences: { mem: 5G }", "clusters.hpc.licences.mem", /belongs to a node/],
    ["licences: { x: 5 }, resources: { x: 1 }", "clusters.hpc.licences.x", /given in resources too/],
    ["licences: { x: 5 }, queues: { q: { resources: { x: 1 } } }", "clusters.hpc.licences.x", /given in resources too/],
    ["licences: { x: -5 }", "clusters.hpc.licences.x", /./],
    ["licences: 5", "clusters.hpc.licences", /must be a map/],
  ])("%s is refused where it stands", (text, key, detail) => {
    expect(() => read(hpc(text))).toThrow(
      expect.objectContaining({ code: "bad-value", facts: expect.objectContaining({ key }) }),
    );
    expect(() => read(hpc(text))).toThrow(detail);
  });
});

describe("clusters.yaml", () => {
  it("row 001-27: reads the example of the contract", () => {
    const config = read(EXAMPLE);
    expect(config.default).toBe("local");
    expect(clusterNamed(config)).toMatchObject({
      name: "local",
      type: "local",
      resources: { cpus: 80_000, mem: 16 * 2 ** 30, licence: 20_000 },
      grace: 5,
      pin: false,
      executor: "process",
    });
    const hpc = clusterNamed(config, "hpc");
    expect(hpc.type).toBe("slurm");
    expect(hpc.queues.get("gpu")).toEqual({
      name: "gpu",
      partition: "qgpu",
      nodes: 1,
      cores: 64,
      gpus: 8,
      memory: 240 * 2 ** 30,
      walltime: 14_400,
      resources: {},
      options: [],
      skipOptions: [],
      prologue: ["module load python"],
      epilogue: [],
      environment: {},
      cleanup: "never",
      launcher: { name: "srun", overrides: [], prefix: [] },
      own: {},
      fleet: {
        strategy: "auto",
        init: 0,
        min: 0,
        max: 10,
        parallelism: 1,
        idle: 120,
        period: 5,
        errorHandler: "pause",
        window: 3,
        whenGone: "wait",
        unknownTaskDuration: 60,
        targetDuration: 600,
        waitCount: 3,
      },
      signal: "SIGTERM",
      signalBefore: 30,
    });
  });

  it("row 001-28: local always exists, with one pilot at a time", () => {
    for (const config of [read(), read(""), read("clusters: {}"), read("limits: {tasks-per-run: 5}")]) {
      expect(config.default).toBe("local");
      expect(clusterNamed(config).type).toBe("local");
      expect(clusterNamed(config).resources).toEqual({});
      expect([...clusterNamed(config).queues.values()]).toMatchObject([{ name: "default", fleet: { max: 1 } }]);
    }
    const output = { outputPerTask: 2 ** 30, outputPerRun: 50 * 2 ** 30 };
    expect(read().limits).toEqual({ tasksPerRun: 10_000_000, losses: 5, ...output });
    expect(read("limits: {tasks-per-run: 5, losses: 2}").limits).toEqual({ tasksPerRun: 5, losses: 2, ...output });
    expect(read("limits: {output-per-task: 100M, output-per-run: 0}").limits).toMatchObject({
      outputPerTask: 100 * 2 ** 20,
      outputPerRun: 0,
    });
    expect([read(), read("keep-history: true")].map(({ keepHistory }) => keepHistory)).toEqual([false, true]);
    expect(
      read("clusters: {local: {grace: 30, pin: true, executor: null, scratch: /fast}}").clusters.get("local"),
    ).toMatchObject({
      type: "local",
      grace: 30,
      pin: true,
      executor: "null",
      scratch: "/fast",
    });
  });

  it("later layers win key by key", () => {
    const config = read(
      EXAMPLE,
      "default: hpc\nclusters: {hpc: {queues: {cpu: {walltime: 1h, fleet: {max: 3}}}}, local: {resources: {gpus: 1}}}",
      "clusters: {hpc: {launcher: mpiexec}}",
    );
    expect(config.default).toBe("hpc");
    const hpc = clusterNamed(config);
    expect(hpc.queues.get("cpu")).toMatchObject({
      partition: "qcpu",
      launcher: { name: "mpiexec" },
      walltime: 3600,
      fleet: { max: 3, idle: 120 },
    });
    expect(hpc.queues.get("gpu")).toMatchObject({ partition: "qgpu", walltime: 3600, fleet: { max: 3 } });
    expect(clusterNamed(config, "local").resources).toMatchObject({ cpus: 80_000, gpus: 10_000 });
    expect(read(EXAMPLE, "clusters: {hpc: {type: pbs}}").clusters.get("hpc")!.queues.has("cpu")).toBe(false);
    expect(config.files).toEqual(["c0.yaml", "c1.yaml", "c2.yaml"]);
  });

  it.each([
    ["clusters: [", /^c0\.yaml:1:\d+: not valid YAML/],
    ["- a", /^c0\.yaml:1:1: .*must be a map/],
    ["clutsers: {}", /^c0\.yaml:1:1: unknown key 'clutsers'; did you mean 'clusters'\?/],
    ["clusters:\n  a: {tpye: slurm}", /^c0\.yaml:2:7: unknown key 'tpye'; did you mean 'type'\?/],
    ["clusters: {a: {type: slurm, queues: {q: {wall: 1}}}}", /unknown key 'wall'/],
    ["clusters: {a: {type: slurm, queues: {q: {partitoin: 1}}}}", /did you mean 'partition'\?/],
    ["clusters: {a: {type: slurm, queues: {q: {fleet: {mx: 1}}}}}", /unknown key 'mx'; did you mean 'max'\?/],
    ["limits: {tasks: 1}", /unknown key 'tasks'/],
    ["clusters: {a: {type: lsf}}", /type: must be one of slurm, .*, not "lsf"/],
    ["clusters: {a: {launcher: srun}}", /clusters\.a: has no type/],
    ["clusters: {local: {type: slurm}}", /local is always of type local/],
    ["clusters: {local: {resources: {cpu: -1}}}", /must not be negative/],
    ["clusters: {local: {resources: {cpu: 1, cpus: 2}}}", /cpus is given twice/],
    ["clusters: {local: {resources: {mem: 9999T}}}", /1024 TiB/],
    ["clusters: {local: {grace: soon}}", /grace: "soon" is not a valid duration/],
    ["clusters: {a: {type: pbs, queues: {q: {walltime: 0}}}}", /walltime: must be more than 0/],
    ["clusters: {a: {type: pbs, queues: {q: {walltime: 04:00}}}}", /ambiguous/],
    ["clusters: {a: {type: pbs, queues: {q: {nodes: 0}}}}", /nodes: must be between 1/],
    ["clusters: {a: {type: pbs, queues: {q: {fleet: {parallelism: 2}}}}}", /parallelism: must be between 0 and 1/],
    ["clusters: {a: {type: pbs, queues: {q: {fleet: {min: 5, max: 2}}}}}", /needs min ≤ max/],
    ["clusters: {a: {type: pbs, queues: {q: {template: r}, rr: {}}}}", /no queue of this cluster is named 'r'/],
    ["clusters: {a: {type: pbs, queues: {q: {template: r}, r: {template: q}}}}", /cycle: q → r → q/],
    ["clusters: {a: {type: pbs, queues: {q: {template: q}}}}", /cycle: q → q/],
    ["default: nowhere", /^c0\.yaml:1:10: default: there is no cluster 'nowhere'/],
    ["limits: {tasks-per-run: 0}", /between 1/],
    ["limits: {output-per-task: lots}", /limits.output-per-task.*is not a valid size/],
    ["limits: {output-per-run: -1}", /limits.output-per-run.*negative/],
    ["limits: {output-per-run: [1G]}", /must be a size/],
    ["limits: {output-per-tusk: 1G}", /unknown key 'output-per-tusk'.*output-per-task/],
  ])("refuses %j", (text, message) => expect(() => read(text)).toThrow(message));

  it("an unknown cluster is named with the nearest", () => {
    expect(() => clusterNamed(read(EXAMPLE), "hcp")).toThrow(/no cluster 'hcp'; did you mean 'hpc'\?/);
  });
});

const grace = (seconds: number) => `clusters: {local: {grace: ${seconds}}}`;

describe("loadClusters", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "slipway-clusters-"));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  it("reads home, then beside the file, then the named file", async () => {
    expect((await loadClusters({ home })).files).toEqual([]);
    const work = join(home, "work");
    mkdirSync(work);
    writeFileSync(join(home, "clusters.yaml"), `${grace(1)}\nlimits: {losses: 9}\n`);
    expect(clusterNamed(await loadClusters({ home })).grace).toBe(1);
    writeFileSync(join(work, "clusters.yaml"), grace(2));
    const foundPath = join(work, "clusters.yaml");
    expect(clusterNamed(await loadClusters({ home, foundPath })).grace).toBe(2);
    const explicitPath = join(home, "mine.yaml");
    await expect(loadClusters({ home, explicitPath })).rejects.toThrow(/mine\.yaml: there is no such file/);
    writeFileSync(explicitPath, grace(3));
    const config = await loadClusters({ home, foundPath, explicitPath });
    expect(clusterNamed(config).grace).toBe(3);
    expect(config.limits.losses).toBe(9);
    expect(config.files).toHaveLength(3);
    expect((await loadClusters({ home, explicitPath: join(home, "clusters.yaml") })).files).toHaveLength(1);
  });
});
