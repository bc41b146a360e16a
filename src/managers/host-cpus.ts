import { quoteFor } from "../core/shell-quoting.ts";
import type { PilotAsk } from "./manager.ts";

/**
 * How many CPUs the manager gave a pilot's job on each of its nodes. Where nothing enforces them, an agent would take
 * the whole node: PBS and Slurm give one CPU to a job that names none. The script leaves what it knows in a file, before
 * anything of the user's runs; the agent's script finds its own host there. In doubt, neither says anything.
 */
export interface HostCpus {
  /** Lines of the pilot's script, in the pilot's directory. */
  readonly script: readonly string[];
  /** Shell text of the count for the node that runs it, given the directory as a word; empty where it is not known. */
  readonly here: (directory: string) => string;
}

const FILE = "cpus";

/** One line is for all hosts. A starter may pass the host's name as $1; else it is that of the node, or its first part. */
const LOOK = [
  `{ only = $2; count[$1] = $2; name = $1; sub(/[.].*/, "", name); same[name]++; short[name] = $2 }`,
  `END { if (NR == 1) print only; else if (host in count) print count[host];`,
  `else { sub(/[.].*/, "", host); if (same[host] == 1) print short[host] } }`,
].join(" ");

const here = (directory: string): string =>
  `$(awk -v host="\${1:-$(hostname)}" '${LOOK}' ${directory}/${FILE} 2>/dev/null)`;

/** The sum of `each` over a host's lines in a file of the manager's. */
export const counted = (each: string, file: string): HostCpus => ({
  script: [`awk '{ cpus[$1] += ${each} } END { for (host in cpus) print host, cpus[host] }' "${file}" >${FILE} || :`],
  here,
});

/** One count for all hosts, as shell text. */
export const alike = (count: string): string => `echo "- ${count}" >${FILE}`;

export const lookedUp = (script: readonly string[]): HostCpus => ({ script, here });

/** A node that the job has to itself, whatever it counts there. */
export const isAlone = (ask: Pick<PilotAsk, "exclusive">, directives: readonly string[]): boolean =>
  ask.exclusive === true || directives.some((line) => /-l.*(\bplace=\S*excl|\bexclusive\b)/.test(line));

/** For the agent's script: the lines that find the count, and the option that passes it on, if it is known. */
export const cpusHere = (cpus: HostCpus | undefined, directory: string): { find: string[]; option: string } =>
  cpus === undefined
    ? { find: [], option: "" }
    : {
        find: [`slipway_cpus=${cpus.here(quoteFor(directory, "word"))} || slipway_cpus=`],
        option: ' ${slipway_cpus:+"--cpus=$slipway_cpus"}',
      };
