import { expect, it } from "vitest";
import { BUILT_IN } from "../../../src/config/cluster-keys.ts";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { oneQueue } from "../../../src/config/one-queue.ts";
import { type OwnPlan, ownPlanOf } from "../../../src/wrap/plan/own-plan.ts";
import { clusterFile } from "../../../src/wrap/pool/cluster-file.ts";

const HOME = `
default: hpc
clusters:
  hpc:
    type: slurm
    grace: 30s
    config: /etc/slurm/one.conf
    account: physics
    environment: { A: "1", B: 007 }
    fleet: { max: 4, period: 2s, idle: 1h }
    queues:
      cpu: { partition: qcpu, cores: 64, memory: 240G, walltime: 04:00:00, environment: { B: two } }
      gpu: { template: cpu, partition: qgpu, gpus: 8, fleet: { min: 2, max: 7 } }
  other: { type: pbs, queues: { q: { fleet: { init: 3 } } } }
`;
const OVER = "clusters: { hpc: { queues: { gpu: { walltime: 1h } } } }";
const loaded = {
  layers: [readClustersFile(HOME, "/h/clusters.yaml"), readClustersFile(OVER, "/c.yaml")],
  keys: BUILT_IN,
};
const planFor = (parameters: object, cluster?: string, queue?: string) => {
  const chosen = oneQueue(loaded, cluster, queue);
  const { walltime, cores, memory, nodes, fleet } = chosen.queue;
  const facts = { walltime, cores, memory, nodes, max: fleet.max };
  const ports = { scheduler: 1, dashboard: 2 };
  return { chosen, plan: ownPlanOf(parameters, { queue: facts, ports }).plan };
};
const read = (chosen: ReturnType<typeof oneQueue>, plan: OwnPlan) =>
  combineClusters([readClustersFile(clusterFile(chosen, plan, "dask-0a1b2c3d"), "wrap")]).clusters;

it("the default cluster and its first queue, or those that are named; a stranger is told what there is", () => {
  expect([oneQueue(loaded).cluster.name, oneQueue(loaded).queue.name]).toEqual(["hpc", "cpu"]);
  expect(oneQueue(loaded, "hpc", "gpu").queue).toMatchObject({ gpus: 8, partition: "qgpu", walltime: 3600 });
  expect(() => oneQueue(loaded, "hpc", "gpus")).toThrow(/no queue 'gpus'.*gpu.*cpu, gpu/);
  expect(() => oneQueue(loaded, "nowhere")).toThrow(/no cluster 'nowhere'/);
  expect(oneQueue({ layers: [], keys: BUILT_IN }, "local")).toMatchObject({ own: { type: "local" }, job: {} });
});

it("written as a file of its own, the queue means the same, and nothing else is in it", () => {
  const { chosen, plan } = planFor({}, "hpc", "gpu");
  const clusters = read(chosen, plan);
  expect([...clusters.keys()]).toEqual(["local", "hpc"]);
  const { queues, ...cluster } = clusters.get("hpc")!;
  expect(cluster).toMatchObject({ type: "slurm", grace: 30, config: "/etc/slurm/one.conf" });
  expect([...queues.keys()]).toEqual(["gpu"]);
  const { fleet, jobNamePrefix, ...job } = queues.get("gpu")!;
  const { fleet: _, ...before } = chosen.queue;
  expect(job).toEqual(before);
  expect(job.environment).toEqual({ A: "1", B: "two" });
  expect(jobNamePrefix).toBe("dask-0a1b2c3d");
  // no pilot without a worker, and none that stays when it has none
  expect(fleet).toMatchObject({ strategy: "auto", init: 0, min: 0, parallelism: 1, idle: 10, period: 2 });
  // what its own fleet allows is how far the pool goes
  expect(plan.maximum).toBe(7);
});

it("parameters win over the queue", () => {
  const { chosen, plan } = planFor({
    partition: "debug",
    project: "capsid",
    walltime: "00:10:00",
    cores: 2,
    memory: "1GiB",
    job_extra_directives: ["--exclusive"],
    job_script_prologue: ["module load python"],
    maximum_jobs: 20,
  });
  expect(read(chosen, plan).get("hpc")!.queues.get("cpu")).toMatchObject({
    partition: "debug",
    account: "capsid",
    walltime: 600,
    cores: 2,
    memory: 2 ** 30,
    options: ["--exclusive"],
    prologue: ["module load python"],
  });
  expect(plan.maximum).toBe(20);
});
