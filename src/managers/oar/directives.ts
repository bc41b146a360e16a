import { SlipwayError } from "../../errors.ts";
import { withoutSkipped, type PilotAsk } from "../manager.ts";
import type { OarQueue } from "./keys.ts";

/**
 * A pilot's job in OAR's language. `oarsub -S` reads one option per `#OAR` line and takes the rest of the line as it is:
 * nothing is quoted, and nothing may be.
 */

const refuse = (key: string, detail: string, remedy: string): never => {
  throw new SlipwayError("bad-value", { where: "OAR", key, detail, remedy });
};

/** A value that OAR puts between apostrophes for its database, without looking at what it contains. */
const value = (key: string, text: string): string => {
  if (text.includes("'"))
    refuse(key, "contains an apostrophe, which OAR does not accept", "Use a name without it; paths count too.");
  return text;
};

/** h:mm:ss, as OAR reads it. */
const duration = (seconds: number): string => {
  const whole = Math.ceil(seconds);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
};

const resources = ({ own: oar, ...ask }: PilotAsk<OarQueue>): string => {
  const cores = ask.cores === undefined || ask.exclusive === true ? "" : `/core=${ask.cores}`;
  const spec = oar.resourceSpec ?? `/nodes=${ask.nodes}${cores}`;
  return ask.walltime === undefined || /\bwalltime=/.test(spec) ? spec : `${spec},walltime=${duration(ask.walltime)}`;
};

/** Memory is not a quantity here: OAR chooses nodes whose cores have enough of it. */
const property = ({ own: oar, ...ask }: PilotAsk<OarQueue>): string | undefined => {
  const { memoryPerCorePropertyName: name } = oar;
  const parts = oar.property === undefined ? [] : [oar.property];
  if (ask.memory !== undefined && name !== null) {
    if (name === undefined)
      refuse(
        "memory",
        "OAR knows memory only as a property of its resources",
        "Add memory-per-core-property-name: NAME (`oarnodes` shows the properties), or none to ask for no memory.",
      );
    const perCore = Math.ceil(ask.memory / (1024 * 1024) / Math.max(1, ask.cores ?? 1));
    parts.push(`${name} >= ${perCore}`);
  }
  return parts.length > 1 ? parts.map((part) => `(${part})`).join(" AND ") : parts[0];
};

/** Directive lines of a pilot's batch script. Throws `bad-value` for what OAR cannot be asked. */
export const oarDirectives = (ask: PilotAsk<OarQueue>): string[] => {
  const filter = property(ask);
  const lines = [
    `-n ${value("name", ask.name)}`,
    `-l ${resources(ask)}`,
    ...(filter === undefined ? [] : [`-p ${filter}`]),
    `-O ${value("stdout", ask.stdout)}`,
    `-E ${value("stderr", ask.stderr)}`,
    ...(ask.partition === undefined ? [] : [`-q ${value("partition", ask.partition)}`]),
    ...(ask.account === undefined ? [] : [`--project ${value("account", ask.account)}`]),
    ...ask.options,
  ];
  return withoutSkipped(lines, ask.skipOptions).map((line) => {
    if (/[\n\r\0]/.test(line)) refuse("options", "contains a line break", "Write it on one line.");
    return `#OAR ${line}`;
  });
};
