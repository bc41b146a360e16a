import { type Resources, toUnits } from "../../../core/resources.ts";
import type { Calls } from "../../calls.ts";
import type { ClusterDescription, Partition } from "../../provider.ts";
import { mostInArray, parseConfig } from "./parse-config.ts";
import { parseSinfo, SINFO_FORMAT } from "./parse.ts";

/** The most of each resource that some node has; no single node need have it all. */
const largestOf = (partitions: readonly Partition[]): Resources => {
  const most = (amount: (partition: Partition) => number): number => Math.max(0, ...partitions.map(amount));
  const gpus = most(({ gpusPerNode }) => gpusPerNode);
  return {
    cpus: toUnits(
      "cpus",
      most(({ cpusPerNode }) => cpusPerNode),
    ),
    mem: most(({ memoryPerNode }) => memoryPerNode),
    ...(gpus === 0 ? {} : { gpus: toUnits("gpus", gpus) }),
  };
};

/** The partitions of a Slurm, from `sinfo`, and how large an array may be. */
export const describeSlurm = async ({ ask, call }: Calls): Promise<ClusterDescription> => {
  const version = (await ask("sinfo", ["--version"])).trim();
  const partitions = parseSinfo(await ask("sinfo", ["--noheader", "--exact", "-o", SINFO_FORMAT]));
  // what it says is not needed to work, and it may not be installed here
  const config = await call("scontrol", ["show", "config"]).catch(() => undefined);
  const most = config?.code === 0 ? mostInArray(parseConfig(config.stdout)) : undefined;
  return {
    version,
    largest: largestOf(partitions),
    partitions,
    ...(most === undefined ? {} : { mostInArray: most }),
  };
};
