import type { ClusterType } from "../config/cluster-keys.ts";
import type { StarterName } from "../config/starter-keys.ts";
import { quoteFor } from "../core/shell-quoting.ts";
import type { PilotAsk } from "./pilot-ask.ts";

/**
 * How many CPUs the manager gave a pilot's job on each of its nodes. Where nothing enforces them, an agent would take
 * the whole node: PBS and Slurm give one CPU to a job that names none. The script leaves what it knows in a file, before
 * anything of the user's runs; the agent's script finds its own host there. Whoever is in doubt says nothing.
 */
export interface HostCpus {
  /** Lines of the pilot's script, in the pilot's directory. */
  readonly script: readonly string[];
  /** Shell text of the count for the node that runs it, given the directory as a word; empty where it is not known. */
  readonly here: (directory: string) => string;
}

const FILE = "cpus";

/** One line is for all hosts. A starter may tell the host's name as $1; else it is that of the node, or its first part. */
const LOOK = [
  `{ only = $2; count[$1] = $2; name = $1; sub(/[.].*/, "", name); same[name]++; short[name] = $2 }`,
  `END { if (NR == 1) print only; else if (host in count) print count[host];`,
  `else { sub(/[.].*/, "", host); if (same[host] == 1) print short[host] } }`,
].join(" ");

const here = (directory: string): string =>
  `$(awk -v host="\${1:-$(hostname)}" '${LOOK}' ${directory}/${FILE} 2>/dev/null)`;

const counted = (each: string, file: string): HostCpus => ({
  script: [`awk '{ cpus[$1] += ${each} } END { for (host in cpus) print host, cpus[host] }' "${file}" >${FILE} || :`],
  here,
});

/** NCPUS is that of one chunk of the first node: all have it alike, and only where each is on a node of its own. */
const pbs = (nodes: number, directives: readonly string[]): HostCpus | undefined => {
  const selects = directives.filter((line) => /\bselect=/.test(line));
  if (selects.length !== 1 || !new RegExp(`\\bselect=${nodes}(:[^+]*)?$`).test(selects[0]!)) return undefined;
  // then it would be the number of threads
  if (selects[0]!.includes("ompthreads")) return undefined;
  const apart = `awk '!seen[$1]++ { hosts++ } END { exit hosts != ${nodes} }' "\${PBS_NODEFILE:-/dev/null}"`;
  return { script: [`if ${apart}; then echo "- \${NCPUS:-}" >${FILE}; fi`], here };
};

const slurm = (starter: StarterName, ask: PilotAsk): HostCpus | undefined => {
  // each step has its own
  if (starter === "srun" || starter === "srun-mpi") return { script: [], here: () => '"${SLURM_CPUS_ON_NODE:-}"' };
  if ((ask.slurm?.parts?.length ?? 1) > 1) return undefined;
  const script = [`if [ "\${SLURM_JOB_NUM_NODES:-}" = 1 ]; then echo "- \${SLURM_CPUS_ON_NODE:-}" >${FILE}; fi`];
  return { script, here };
};

/** A node that the job has alone, whatever it counts there. */
const isAlone = (ask: PilotAsk, directives: readonly string[]): boolean =>
  ask.exclusive === true ||
  /excl/.test(ask.pbs?.place ?? "") ||
  directives.some((line) => /-l.*(\bplace=\S*excl|\bexclusive\b)/.test(line));

export const hostCpus = (
  manager: ClusterType,
  starter: StarterName,
  ask: PilotAsk,
  directives: readonly string[],
): HostCpus | undefined => {
  switch (manager) {
    case "slurm":
      return slurm(starter, ask);
    case "pbs":
      return isAlone(ask, directives) ? undefined : pbs(ask.nodes, directives);
    case "sge":
      if (isAlone(ask, directives) || ask.sge?.cpuResource !== undefined) return undefined;
      return counted("$2", "${PE_HOSTFILE:-/dev/null}");
    case "oar":
      return counted("1", "${OAR_NODEFILE:-/dev/null}");
    default:
      return undefined;
  }
};

/** For the agent's script: the lines that find the count, and the option that tells it, if there is one. */
export const cpusHere = (cpus: HostCpus | undefined, directory: string): { find: string[]; option: string } =>
  cpus === undefined
    ? { find: [], option: "" }
    : {
        find: [`slipway_cpus=${cpus.here(quoteFor(directory, "word"))} || slipway_cpus=`],
        option: ' ${slipway_cpus:+"--cpus=$slipway_cpus"}',
      };
