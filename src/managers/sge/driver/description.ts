import { FRACTION } from "../../../core/resources.ts";
import type { Calls } from "../../calls.ts";
import type { ClusterDescription } from "../../provider.ts";
import { parseHosts, parseMostInArray, parseQueueLimits, partitionsOf } from "./parse.ts";

const most = (of: readonly number[]): number => Math.max(0, ...of);

/** The queues and hosts of a Grid Engine, from `qhost -F -q` and `qconf`. */
export const describeSge = async ({ call, ask }: Calls): Promise<ClusterDescription> => {
  const version = (await call("qstat", ["-help"])).stdout.split("\n", 1)[0]!.trim();
  const hosts = parseHosts(await ask("qhost", ["-F", "-q", "-xml"]));
  const names = [...new Set(hosts.flatMap(({ queues }) => queues.map(({ name }) => name)))];
  const limits = names.length === 0 ? "" : await ask("qconf", ["-sq", names.join(",")]);
  const { stdout: settings } = await call("qconf", ["-sconf"]);
  const mostInArray = parseMostInArray(settings);
  const partitions = partitionsOf(hosts, parseQueueLimits(limits));
  const cpus = most(partitions.map(({ cpusPerNode }) => cpusPerNode));
  const gpus = most(hosts.map((host) => host.gpus));
  return {
    version: version === "" ? "Grid Engine" : version,
    largest: {
      cpus: cpus * FRACTION,
      mem: most(hosts.map(({ memory }) => memory)),
      ...(gpus === 0 ? {} : { gpus: gpus * FRACTION }),
    },
    partitions,
    ...(mostInArray === undefined ? {} : { mostInArray }),
  };
};
