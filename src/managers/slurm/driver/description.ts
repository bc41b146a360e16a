import { userInfo } from "node:os";
import { type Resources, toUnits } from "../../../core/resources.ts";
import type { Calls } from "../../calls.ts";
import type { ClusterDescription, Partition } from "../../provider.ts";
import { ASSOCIATIONS_FORMAT, enforcedBy, mostInArray, parseAssociations, parseConfig } from "./parse-config.ts";
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

/** The accounts and QOS that our user may name, where Slurm enforces them and its database answers. */
const associationsOf = async (
  { call }: Calls,
  config: ReadonlyMap<string, string>,
): Promise<Pick<ClusterDescription, "accounts" | "qos">> => {
  const enforced = enforcedBy(config);
  if (!enforced.accounts) return {};
  const words = ["--noheader", "--parsable2", "show", "associations"];
  const cluster = config.get("ClusterName");
  const where = [`user=${userInfo().username}`, ...(cluster === undefined ? [] : [`cluster=${cluster}`])];
  const answer = await call("sacctmgr", [...words, ...where, ASSOCIATIONS_FORMAT]).catch(() => undefined);
  if (answer?.code !== 0) return {};
  const { accounts, qos } = parseAssociations(answer.stdout);
  // a user of whom the database knows nothing is judged by Slurm itself
  if (accounts.length === 0) return {};
  return { accounts, ...(enforced.qos && qos.length > 0 ? { qos } : {}) };
};

/** The partitions of a Slurm, from `sinfo`, how large an array may be, and what its accounting lets our user name. */
export const describeSlurm = async (calls: Calls): Promise<ClusterDescription> => {
  const { ask, call } = calls;
  const version = (await ask("sinfo", ["--version"])).trim();
  // also those that are hidden: jobs may be sent to them
  const partitions = parseSinfo(await ask("sinfo", ["--all", "--noheader", "--exact", "-o", SINFO_FORMAT]));
  // what it says is not needed to work, and it may not be installed here
  const config = await call("scontrol", ["show", "config"]).catch(() => undefined);
  const settings = parseConfig(config?.code === 0 ? config.stdout : "");
  const most = mostInArray(settings);
  return {
    version,
    largest: largestOf(partitions),
    partitions,
    ...(most === undefined ? {} : { mostInArray: most }),
    ...(await associationsOf(calls, settings)),
  };
};
