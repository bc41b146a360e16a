import { SlipwayError } from "../../errors.ts";
import { withoutSkipped, type PilotAsk } from "../manager.ts";
import type { SgeQueue } from "./keys.ts";

/**
 * A pilot's job in Grid Engine's language. With a cpu resource, a node is one slot that asks for so much of it; without
 * one, a slot of the parallel environment is a core, and what counts per slot is divided by the cores of a node.
 */

const refuse = (key: string, detail: string, remedy: string): never => {
  throw new SlipwayError("bad-value", { where: "Grid Engine", key, detail, remedy });
};

/** A word of a `#$` line: split at blanks that are not quoted; quotes inside of quotes are lost. */
const word = (key: string, value: string): string => {
  if (/[\n\r\0]/.test(value)) refuse(key, "contains a line break", "Write it on one line.");
  if (/['"]/.test(value))
    refuse(key, "contains quotes, which Grid Engine's #$ lines cannot express", "Remove them; paths count too.");
  return /^[\w./:=,@%+*$-]+$/.test(value) ? value : `"${value}"`;
};

const megabytes = (bytes: number): number => Math.ceil(bytes / (1024 * 1024));

/** `name=value`, or options as they are when they start with a dash. */
const request = (text: string): string => (text.startsWith("-") ? text : `-l ${text}`);

const slotLines = ({ own: sge, ...ask }: PilotAsk<SgeQueue>): string[] => {
  const slots = ask.nodes * (sge.cpuResource == null ? (ask.cores ?? 1) : 1);
  if (sge.parallelEnvironment !== undefined)
    return [`-pe ${word("parallel-environment", sge.parallelEnvironment)} ${slots}`];
  if (slots > 1)
    refuse(
      ask.nodes > 1 ? "nodes" : "cores",
      `${slots} slots need a parallel environment`,
      "Add parallel-environment: NAME (`qconf -spl` lists them).",
    );
  return [];
};

const resourceLines = ({ own: sge, ...ask }: PilotAsk<SgeQueue>): string[] => {
  // memory counts per slot; temporary space and GPUs go as they are
  const share = sge.cpuResource == null && sge.parallelEnvironment !== undefined ? (ask.cores ?? 1) : 1;
  const asked = (resource: string | null | undefined, amount: number | undefined): string[] =>
    resource == null || amount === undefined || amount === 0 ? [] : [`-l ${resource}=${amount}`];
  const memory = ask.memory === undefined ? undefined : Math.ceil(megabytes(ask.memory) / share);
  return [
    ...asked(sge.cpuResource, ask.cores),
    ...asked(sge.memResource, memory),
    ...asked(sge.tmpResource, ask.tmp === undefined ? undefined : megabytes(ask.tmp)),
    ...asked(sge.gpuResource, ask.gpus),
    ...(ask.exclusive === true ? ["-l exclusive=true"] : []),
  ];
};

/** Directive lines of a pilot's batch script. Throws `bad-value` for what Grid Engine cannot be asked. */
export const sgeDirectives = (ask: PilotAsk<SgeQueue>): string[] => {
  const { own: sge } = ask;
  const lines = [
    // the name also goes to qsub as an option, whatever its characters
    ...(/['"]/.test(ask.name) ? [] : [`-N ${word("name", ask.name)}`]),
    `-o ${word("stdout", ask.stdout)}`,
    `-e ${word("stderr", ask.stderr)}`,
    "-cwd",
    // the queue's own shell is csh where the site did not say otherwise
    "-S /bin/bash",
    "-r n",
    ...(ask.walltime === undefined ? [] : [`-l h_rt=${Math.ceil(ask.walltime)}`]),
    ...(ask.partition === undefined ? [] : [`-q ${word("partition", ask.partition)}`]),
    ...(ask.account === undefined ? [] : [`-P ${word("account", ask.account)}`]),
    ...(ask.reservation === undefined ? [] : [`-ar ${word("reservation", ask.reservation)}`]),
    ...(sge.defaultPrio === undefined ? [] : [`-p ${sge.defaultPrio}`]),
    ...slotLines(ask),
    ...resourceLines(ask),
    ...[...(sge.hard ?? []), ...Object.entries(sge.requests ?? {}).map(([name, value]) => `${name}=${value}`)].map(
      (text) => `-hard ${request(text)}`,
    ),
    // what follows is hard again
    ...(sge.soft ?? []).map((text) => `-soft ${request(text)} -hard`),
    ...ask.options,
  ];
  return withoutSkipped(lines, ask.skipOptions).map((line) => {
    if (/[\n\r\0]/.test(line)) refuse("options", "contains a line break", "Write it on one line.");
    return `#$ ${line}`;
  });
};
