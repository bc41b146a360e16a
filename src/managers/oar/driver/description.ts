import { FRACTION } from "../../../core/resources.ts";
import type { Calls } from "../../calls.ts";
import type { ClusterDescription } from "../../provider.ts";
import { parseNodes } from "./parse.ts";

const most = (of: readonly number[]): number => Math.max(0, ...of);

/** The nodes of an OAR, from `oarnodes`. Queues cannot be listed by a user, so none are described. */
export const describeOar = async (
  { call, unreachable }: Calls,
  memoryPerCoreProperty: string | undefined,
): Promise<ClusterDescription> => {
  const [version, answer] = await Promise.all([call("oarstat", ["-V"]), call("oarnodes", ["-J"])]);
  if (answer.code !== 0) throw unreachable(answer);
  const nodes = parseNodes(answer.stdout, memoryPerCoreProperty);
  const gpus = most(nodes.map((node) => node.gpus));
  const memory = most(nodes.map((node) => node.memory));
  return {
    version: `OAR ${/:\s*(\S+)/.exec(version.stdout)?.[1] ?? ""}`.trim(),
    largest: {
      cpus: most(nodes.map(({ cores }) => cores)) * FRACTION,
      ...(memory === 0 ? {} : { mem: memory }),
      ...(gpus === 0 ? {} : { gpus: gpus * FRACTION }),
    },
  };
};
