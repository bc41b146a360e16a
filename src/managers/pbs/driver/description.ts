import { toUnits, type Resources } from "../../../core/resources.ts";
import type { ClusterDescription, Partition } from "../../provider.ts";
import type { PbsAnswers } from "./ask.ts";
import { type Attributes, parseCount, parseSize, parseWalltime, type Records } from "./parse.ts";

interface NodeSize {
  readonly cpus: number;
  readonly memory: number;
  readonly gpus: number;
  readonly gpuType: string;
  /** The queues that it serves; empty: all that are bound to no nodes. */
  readonly queues: readonly string[];
}

const sizeOf = (node: Attributes): NodeSize => ({
  cpus: parseCount(node.get("resources_available.ncpus")),
  memory: parseSize(node.get("resources_available.mem")),
  gpus: parseCount(node.get("resources_available.ngpus")),
  gpuType: node.get("resources_available.gpu_model") ?? node.get("resources_available.gpu_type") ?? "",
  queues: [node.get("queue"), node.get("resources_available.Qlist")]
    .flatMap((names) => names?.split(",") ?? [])
    .map((name) => name.trim())
    .filter((name) => name !== ""),
});

const largestOf = (nodes: readonly NodeSize[], key: "cpus" | "memory" | "gpus"): number =>
  nodes.reduce((most, node) => Math.max(most, node[key]), 0);

const isTrue = (text: string | undefined): boolean => /^true$/i.test(text ?? "");

const descriptionOf = (server: Records, queues: Records, nodes: Records): ClusterDescription => {
  const sizes = [...nodes.values()].map(sizeOf);
  const attributes = [...server.values()][0];
  const defaultQueue = attributes?.get("default_queue");
  const partitions: Partition[] = [];
  for (const [name, queue] of queues) {
    const bound = sizes.filter((node) => node.queues.includes(name));
    const served = bound.length > 0 ? bound : sizes.filter((node) => node.queues.length === 0);
    const limit = parseWalltime(queue.get("resources_max.walltime"));
    partitions.push({
      name,
      isDefault: name === defaultQueue,
      isUp: isTrue(queue.get("enabled")) && isTrue(queue.get("started")),
      nodes: served.length,
      cpusPerNode: largestOf(served, "cpus"),
      memoryPerNode: largestOf(served, "memory"),
      gpusPerNode: largestOf(served, "gpus"),
      gpuTypes: [...new Set(served.map(({ gpuType }) => gpuType).filter((type) => type !== ""))],
      ...(limit === undefined ? {} : { maxWalltime: limit }),
    });
  }
  const [cpus, gpus, mem] = [largestOf(sizes, "cpus"), largestOf(sizes, "gpus"), largestOf(sizes, "memory")];
  const largest: Resources = {
    cpus: toUnits("cpus", cpus),
    ...(mem > 0 ? { mem } : {}),
    ...(gpus > 0 ? { gpus: toUnits("gpus", gpus) } : {}),
  };
  return { version: `PBS ${attributes?.get("pbs_version") ?? "of unknown version"}`, largest, partitions };
};

/** The queues and nodes of a PBS server, from `qstat -B`, `qstat -Q` and `pbsnodes -a`. */
export const describePbs = async ({ all }: PbsAnswers): Promise<ClusterDescription> => {
  const [server, queues, nodes] = await Promise.all([
    all("qstat", ["-B", "-f"], "Server"),
    all("qstat", ["-Q", "-f"], "Queue"),
    all("pbsnodes", ["-a"], "nodes"),
  ]);
  return descriptionOf(server, queues, nodes);
};
