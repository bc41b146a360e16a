import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile, type QueueConfig } from "../../../src/config/clusters-file.ts";
import { SlipwayError } from "../../../src/errors.ts";

const read = (...texts: string[]) => combineClusters(texts.map((text, i) => readClustersFile(text, `c${i}.yaml`)));

const queue = (type: string, body: string, cluster = ""): QueueConfig =>
  read(`clusters:\n  x:\n    type: ${type}\n${cluster}    queues:\n      q: ${body}\n`)
    .clusters.get("x")!
    .queues.get("q")!;

const refusal = (text: string): SlipwayError => {
  try {
    read(text);
  } catch (error) {
    if (error instanceof SlipwayError) return error;
  }
  throw new Error(`was not refused: ${text}`);
};

describe("keys of a queue", () => {
  it("a variable without a value is empty, as in a run file", () => {
    const { environment } = queue("slurm", "{ environment: { A: , B: null, C: ~, D: 'null', E: 07 } }");
    expect(environment).toEqual({ A: "", B: "", C: "", D: "null", E: "07" });
  });

  it("each is read", () => {
    const all = queue(
      "slurm",
      `
        partition: p
        account: a
        qos: high
        constraint: "avx&ib"
        reservation: r
        nodes: 2
        cores: 8
        memory: 4G
        gpus: 1
        tmp: 1G
        walltime: 1h
        exclusive: true
        options: ["--mail-type=END", --comment=x]
        skip-options: [--mem]
        prologue: |
          module load node
          umask 027
        epilogue: echo bye
        environment: { A: 1, B: "it's $HOME" }
        launcher: { name: srun, overrides: "--mpi=none -v", prefix: [numactl, --all], program: /opt/srun }
        scratch: $TMPDIR/x
        log-directory: /logs
        shebang: "#!/bin/bash -l"
        job-name-prefix: mine
        node: /opt/node/bin/node
        cleanup: success
`,
    );
    expect(all).toMatchObject({
      partition: "p",
      account: "a",
      qos: "high",
      constraint: "avx&ib",
      reservation: "r",
      nodes: 2,
      cores: 8,
      memory: 4 * 2 ** 30,
      gpus: 1,
      tmp: 2 ** 30,
      walltime: 3600,
      exclusive: true,
      options: ["--mail-type=END", "--comment=x"],
      skipOptions: ["--mem"],
      prologue: ["module load node", "umask 027"],
      epilogue: ["echo bye"],
      environment: { A: "1", B: "it's $HOME" },
      launcher: { name: "srun", overrides: ["--mpi=none", "-v"], prefix: ["numactl", "--all"], program: "/opt/srun" },
      scratch: "$TMPDIR/x",
      logDirectory: "/logs",
      shebang: "#!/bin/bash -l",
      jobNamePrefix: "mine",
      node: "/opt/node/bin/node",
      cleanup: "success",
    });
  });

  it("a queue wins over its template, a template over the cluster; maps are merged name by name", () => {
    const config = read(`
clusters:
  x:
    type: pbs
    nodes: 1
    account: all
    walltime: 1h
    environment: { A: cluster, B: cluster, C: cluster }
    resources: { licence: 1, seat: 1 }
    queues:
      base: { walltime: 2h, cores: 2, environment: { B: base, C: base }, prologue: [one] }
      q: { template: base, cores: 4, environment: { C: queue }, resources: { seat: 2 } }
`);
    expect(config.clusters.get("x")!.queues.get("q")).toMatchObject({
      account: "all",
      walltime: 7200,
      cores: 4,
      environment: { A: "cluster", B: "base", C: "queue" },
      resources: { licence: 10_000, seat: 20_000 },
      prologue: ["one"],
    });
  });

  it("managers' own words are taken: queue, project, underscores as in the seeds", () => {
    expect(queue("pbs", "{ queue: work, project: p1 }")).toMatchObject({ partition: "work", account: "p1" });
    expect(
      queue("sge", "{ pe: smp, cores: 4, mem_resource: h_vmem, memory: 1G, default_prio: -10, job_name_prefix: x }"),
    ).toMatchObject({
      own: { parallelEnvironment: "smp", memResource: "h_vmem", defaultPrio: -10 },
      jobNamePrefix: "x",
    });
    expect(refusal("clusters: {x: {type: pbs, queues: {q: {queue: a, partition: b}}}}").message).toMatch(
      /c0\.yaml:1:\d+: .*queue: means the same as 'partition', which is given too/,
    );
    expect(refusal("clusters: {x: {type: sge, queues: {q: {mem-resource: a, mem_resource: b}}}}").message).toMatch(
      /mem_resource: means the same as 'mem-resource'/,
    );
  });
});

describe("Slurm", () => {
  it("keys with an index are parts of a heterogeneous job; no index is part 0", () => {
    expect(
      queue("slurm", '{ gres: "gpu:1", gres1: "gpu:a100:2", partition: p, partition1: fat, nodes1: "n[1-2]" }'),
    ).toMatchObject({
      partition: "p",
      own: { parts: [{ gres: "gpu:1" }, { gres: "gpu:a100:2", partition: "fat", nodes: "n[1-2]" }] },
    });
    expect(
      queue("slurm", "{ excludes0: n9, features0: avx, reserv: day, nodes0: n1, licence0: ansys@2 }"),
    ).toMatchObject({
      constraint: "avx",
      reservation: "day",
      own: { parts: [{ excludes: "n9", nodes: "n1", licence: "ansys@2" }] },
    });
    expect(queue("slurm", "{ qos2: low }").own).toEqual({ parts: [{}, {}, { qos: "low" }] });
    expect(queue("slurm", "{}").own).toEqual({});
  });
});

describe("Grid Engine, OAR, PBS", () => {
  it("their own keys are read", () => {
    expect(
      queue(
        "sge",
        "{ hard: [arch=lx-amd64, mem=1G], soft: fast=1, requests: { gpu: 2 }, pe: mpi, nodes: 2, tmp: 1G, tmp_resource: none }",
      ).own,
    ).toEqual({
      hard: ["arch=lx-amd64", "mem=1G"],
      soft: ["fast=1"],
      requests: { gpu: "2" },
      parallelEnvironment: "mpi",
      tmpResource: null,
    });
    expect(
      queue(
        "oar",
        `{ resource-spec: /nodes=1/core=4, property: "cluster='a'", memory_per_core_property_name: memcore, memory: 1G }`,
      ).own,
    ).toEqual({ resourceSpec: "/nodes=1/core=4", property: "cluster='a'", memoryPerCorePropertyName: "memcore" });
    expect(queue("oar", "{ memory: 1G, memory-per-core-property-name: none }").own).toEqual({
      memoryPerCorePropertyName: null,
    });
    expect(queue("pbs", '{ select-options: "mpiprocs=4:arch=linux", place: scatter:excl }').own).toEqual({
      selectOptions: "mpiprocs=4:arch=linux",
      place: "scatter:excl",
    });
    const sge = read("clusters: {g: {type: sge, bin: /opt/sge/bin/lx, root: /opt/sge, cell: default, cluster: p6444}}");
    expect(sge.clusters.get("g")).toMatchObject({
      bin: "/opt/sge/bin/lx",
      own: { root: "/opt/sge", cell: "default", cluster: "p6444" },
    });
  });
});

describe("what is refused names file, line, key and remedy", () => {
  it.each([
    [
      "slurm",
      "place: free",
      /c0\.yaml:5:\d+: clusters\.x\.queues\.q\.place: is a key of pbs clusters; this one is of type slurm/,
      /exclusive/,
    ],
    ["pbs", "gres: gpu:1", /is a key of slurm clusters; this one is of type pbs/, /select-options/],
    ["oar", "constraint: avx", /is a key of slurm and pbs clusters/, /property/],
    ["local", "qos: x", /is a key of slurm clusters; this one is of type local/, /Remove it/],
    ["sge", "memory: 1G", /memory: .*mem-resource must name/, /mem-resource: none/],
    ["sge", "nodes: 2", /parallel environment/, /qconf -spl/],
    ["sge", "cores: 2", /parallel environment/, /cpu-resource/],
    ["sge", "gpus: 1", /gpu-resource/, /none/],
    ["sge", "hard: [a b]", /"a b" is not a resource request/, /name=value/],
    ["oar", "memory: 1G", /memory-per-core-property-name/, /none/],
    ["oar", "gpus: 2", /OAR sites differ/, /resource-spec/],
    ["slurm", "launcher: sru", /no launcher 'sru'; did you mean 'srun'\?/, /Known launchers: single/],
    ["slurm", "launcher: { name: wrapped }", /wrapped needs a prefix/, /prefix:/],
    ["slurm", "launcher: { overrides: x }", /has no name/, /Add name/],
    ["slurm", "launcher: { nam: x }", /unknown key 'nam'; did you mean 'name'\?/, /docs/],
    ["slurm", "launcher: single, nodes: 2", /single starts an agent on one node only/, /Leave launcher out/],
    ["slurm", "launcher: ssh, qos1: a", /ssh reaches only the first part/, /srun/],
    ["slurm", "shebang: /bin/sh", /must begin with #!/, /#!\/bin\/bash/],
    ["slurm", "scratch: tmp", /absolute path/, /\$TMPDIR/],
    ["slurm", "log-directory: $HOME/x", /absolute path/, /Begin it with \//],
    ["slurm", "job-name-prefix: a/b", /cannot begin a job name/, /letters/],
    ["slurm", "cleanup: yes", /must be one of always, success, never/, /Correct/],
    ["slurm", "environment: { 1A: x }", /a variable name/, /Correct/],
    ["slurm", 'constraint: "a\\nb"', /line break/, /one line/],
    ["slurm", "walltme: 1h", /unknown key 'walltme'; did you mean 'walltime'\?/, /docs/],
    ["slurm", "nodes: n1", /must be a whole number/, /Correct/],
  ])("%s: %s", (type, key, message, remedy) => {
    const error = refusal(`clusters:\n  x:\n    type: ${type}\n    queues:\n      q: { ${key} }\n`);
    expect(error.message).toMatch(/^c0\.yaml:5:\d+: /);
    expect(error.message).toMatch(message);
    expect(error.hint).toMatch(remedy);
  });

  it("keys of the cluster too, in the file that holds them", () => {
    expect(refusal("clusters: {x: {type: slurm, cell: a}}").message).toMatch(/cell: is a key of sge clusters/);
    expect(refusal("clusters: {x: {type: slurm, place: a}}").message).toMatch(/place: is a key of pbs clusters/);
    expect(() => read("clusters: {x: {type: pbs}}", "clusters:\n  x: {queues: {q: {gres: a}}}")).toThrow(
      /^c1\.yaml:2:/,
    );
  });
});
