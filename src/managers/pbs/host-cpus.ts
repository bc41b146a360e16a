import { alike, isAlone, lookedUp, type HostCpus } from "../host-cpus.ts";
import type { PilotAsk } from "../manager.ts";
import type { PbsQueue } from "./keys.ts";

/** NCPUS is that of one chunk on the first node: right for all nodes, but only if each chunk has its own node. */
export const pbsHostCpus = (ask: PilotAsk<PbsQueue>, directives: readonly string[]): HostCpus | undefined => {
  const { nodes, own } = ask;
  if (isAlone(ask, directives) || /excl/.test(own.place ?? "")) return undefined;
  const selects = directives.filter((line) => /\bselect=/.test(line));
  if (selects.length !== 1 || !new RegExp(`\\bselect=${nodes}(:[^+]*)?$`).test(selects[0]!)) return undefined;
  // then it would be the number of threads
  if (selects[0]!.includes("ompthreads")) return undefined;
  const apart = `awk '!seen[$1]++ { hosts++ } END { exit hosts != ${nodes} }' "\${PBS_NODEFILE:-/dev/null}"`;
  return lookedUp([`if ${apart}; then ${alike("${NCPUS:-}")}; fi`]);
};
