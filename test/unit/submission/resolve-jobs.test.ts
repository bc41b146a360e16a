import type { ClusterDescription } from "../../../src/managers/provider.ts";
import { describe, expect, it } from "vitest";
import { type ClustersConfig, combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import type { TaskDialect } from "../../../src/managers/task-dialect.ts";
import { createFitCheck } from "../../../src/submission/fits.ts";
import { createTaskJobs } from "../../../src/config/resolve-jobs.ts";
import { refused } from "../../refusal.ts";
import { group, spec } from "../core/model.ts";

/** A manager's language that is easy to follow: `where` is its one key, and `-c N` its one option. */
const dialect: TaskDialect = {
  keys: ["where"],
  read: (keys, refuse) =>
    Object.fromEntries(
      Object.entries(keys).map(([key, value]) => [
        key === "nodes" ? "where" : key === "where" ? key : refuse(key, "is no key of mine", "Use where."),
        value,
      ]),
    ),
  backend: (text, refuse) => {
    const [option, value = ""] = text.split(" ");
    if (option === "-h") return { help: true, resources: {}, keys: {}, notices: [] };
    if (option === "-c") return { help: false, resources: { cpus: Number(value) * 10_000 }, keys: {}, notices: [] };
    if (option === "-w") return { help: false, resources: {}, keys: { where: value }, notices: [] };
    if (option === "hm") return { help: false, resources: {}, keys: {}, notices: ["hm is ignored"] };
    return refuse(option!, "is not one of -c -w");
  },
  usage: "",
  directives: () => [],
  jobName: (text) => text,
  mostInName: 100,
  ranks: "srun",
  variables: /^X_/,
};

const configured = combineClusters([
  readClustersFile(
    "default: hpc\nclusters: { hpc: { type: slurm, cores: 4 }, old: { type: slurm }, sim: { type: simulated } }",
    "c.yaml",
  ),
]);
/** `hpc` speaks the language above, `old` has none. */
const clusters: ClustersConfig = {
  ...configured,
  clusters: new Map(
    [...configured.clusters].map(([name, cluster]) => {
      const { batch } = cluster.manager;
      if (batch === undefined) return [name, cluster];
      const { task: _task, ...without } = batch;
      const spoken = name === "hpc" ? { ...without, task: dialect } : without;
      return [name, { ...cluster, manager: { ...cluster.manager, batch: spoken } }];
    }),
  ),
};
const resolve = createTaskJobs(clusters);
const one = (change: Partial<GroupSpec>, backend?: string) => {
  const backends = new Map(backend === undefined ? [] : [[0, backend] as const]);
  const { spec: resolved, notices } = resolve(spec([group("a", 1, { job: { keys: {} }, ...change })]), backends);
  return { group: resolved.groups[0]!, notices };
};

describe("tasks as jobs, in the words of their cluster's manager", () => {
  it("have their keys under the manager's own names, of the default cluster if they name none", () => {
    expect(one({ job: { keys: { nodes: "n1" } } }).group.job).toEqual({ keys: { where: "n1" } });
    expect(one({ cluster: "hpc", job: { keys: { where: "n2" } } }).group.job).toEqual({ keys: { where: "n2" } });
    const pilots = group("b", 1);
    expect(resolve(spec([pilots]), new Map()).spec.groups[0]).toBe(pilots);
  });

  it("row 001-80: backend says more than the task itself, amounts and keys", () => {
    expect(one({ job: { keys: { where: "n1" } } }, "-w n9").group.job).toEqual({ keys: { where: "n9" } });
    const change = {
      resources: { cpus: 10_000, mem: 5 },
      itemResources: { cpus: "{item}", mem: "{item}G" },
      attemptResources: { cpus: "{attempt}" },
    };
    const { group: larger } = one(change, "-c 3");
    expect([larger.resources, larger.itemResources, larger.attemptResources]).toEqual([
      { cpus: 30_000, mem: 5 },
      { mem: "{item}G" },
      undefined,
    ]);
  });

  it("rows 001-42 and 001-48: what the manager ignores comes back as a notice", () => {
    expect(one({}, "hm").notices).toEqual(["tasks.a: Slurm: hm is ignored"]);
    expect(one({}, "-c 2").notices).toEqual([]);
  });

  it("sent to this machine, they are jobs here, and what their manager would have understood is ignored and named", () => {
    const redirect = { from: "hpc", cause: "gone", here: {} };
    const { group: here, notices } = one({ cluster: "local", redirect, job: { keys: { odd: "x", where: "y" } } }, "-z");
    expect([here.job, here.resources]).toEqual([{ keys: {} }, group("a", 1).resources]);
    expect(notices).toEqual(["tasks.a runs on this machine, where odd, where and backend are ignored"]);
    expect(one({ cluster: "local", redirect }).notices).toEqual([]);
  });

  it.each<[Partial<GroupSpec>, string | undefined, string, RegExp]>([
    [{ job: { keys: { odd: "x" } } }, undefined, "odd", /is no key of mine/],
    [{}, "-z", "backend", /-z: is not one of -c -w/],
    [{}, "-h", "backend", /asks for usage/],
    [{ cluster: "old" }, undefined, "via", /'old' is of type slurm, which takes no tasks as jobs/],
    [{ cluster: "sim", job: { keys: { qos: "x" } } }, undefined, "qos", /means nothing to cluster 'sim'/],
    [{ cluster: "local" }, "-c 1", "backend", /means nothing to cluster 'local'/],
  ])("refuses %j with backend %j", (change, backend, key, message) => {
    const error = refused(() => one(change, backend));
    expect([error.code, error.facts["where"], error.facts["key"]]).toEqual(["bad-value", "tasks.a", key]);
    expect(error.message).toMatch(message);
  });

  const checkOf = (described?: ClusterDescription) =>
    createFitCheck({
      state: { runs: new Map(), archived: new Map() },
      clusters,
      largest: new Map([...clusters.clusters.keys()].map((name) => [name, { cpus: 40_000 }])),
      shared: [],
      described: () => described,
    });

  it("that no node of their manager can hold are refused, as far as it has described its nodes", () => {
    const { checkFits } = checkOf({ version: "", largest: { cpus: 160_000, mem: 0 } });
    const job = (change: Partial<GroupSpec> = {}): GroupSpec => group("a", 1, { job: { keys: {} }, ...change });
    checkFits(job(), { cpus: 160_000, mem: 1e15, gpus: 10_000, foo: 10_000 }, "'a'");
    const error = refused(() => checkFits(job(), { cpus: 170_000 }, "'a'"));
    expect(error).toMatchObject({ code: "job-cannot-fit", facts: { task: "'a'", resource: "cpus", largest: "16" } });
    expect(error.message).toMatch(/asks for cpus 17 as a job of its own; a node of cluster \S+ has at most 16/);
    const ranks = { count: 9, nodes: 2, by: "agents" } as const;
    checkFits(job({ ranks }), { cpus: 30_000 }, "'a'");
    expect(refused(() => checkFits(job({ ranks }), { cpus: 40_000 }, "'a'")).message).toMatch(
      /ranks 9 .*; cluster \S+ has at most 8/,
    );
  });

  it("may be larger than a pilot of their queue: their manager judges them", () => {
    const { checkFits } = checkOf();
    const large = { cpus: 640_000, mem: 1e12 };
    const ranks = { count: 64, nodes: 8, by: "agents" } as const;
    expect(() => checkFits(group("a", 1), large, "'a'")).toThrow(/40|4/);
    checkFits(group("a", 1, { job: { keys: {} }, ranks }), large, "'a'");
    // here and in a simulation the job is a process of this machine
    expect(() => checkFits(group("a", 1, { job: { keys: {} }, cluster: "local" }), large, "'a'")).toThrow(/cpus/);
    const named = group("a", 1, { job: { keys: {} }, cluster: "nowhere" });
    expect(() => checkFits(named, large, "'a'")).toThrow(/nowhere/);
  });
});
