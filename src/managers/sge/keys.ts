import { checkLine, name, requests, whole, words, type Kind } from "../../config/key-table.ts";
import type { QueueJob } from "../../config/queue-job.ts";
import { badValue } from "../../config/source.ts";

import type { Problem } from "../manager.ts";

/** What only Grid Engine understands. */

const SOME_PAIR = /^[\w.-]+(?:=[^\s,]*)?$/;

/** The name of a resource, or `none` where the site has no such thing. */
const resourceName: Kind<string | null> = {
  ...name,
  read: (value: string, source, at) => {
    if (value === "none") return null;
    if (!/^[\w.-]+$/.test(value))
      badValue(source, at, "must be the name of a resource, or none", "`qconf -sc` lists the names.");
    return value;
  },
};

/** `a=1,b=2` as two requests; what begins with a dash is one text of options for qsub. */
export const requestsOf = (text: string): string[] =>
  text.startsWith("-") ? [text] : text.split(/[\s,]+/).filter((word) => word !== "");

const pairs: Kind<readonly string[]> = {
  ...words,
  read: (value: string | string[], source, at) => {
    // an item of a list is a word
    const split = (text: string): string[] => (text.startsWith("-") ? [text] : text.split(","));
    const found = Array.isArray(value)
      ? value.flatMap((text, i) => split(checkLine(source, [...at, i], text)))
      : requestsOf(checkLine(source, at, value));
    for (const word of found)
      if (!word.startsWith("-") && !SOME_PAIR.test(word))
        badValue(source, at, `"${word.slice(0, 80)}" is not a resource request`, "Write each as name=value.");
    return found;
  },
};

export const SGE_KEYS = {
  "parallel-environment": name,
  "cpu-resource": resourceName,
  "mem-resource": resourceName,
  "tmp-resource": resourceName,
  "gpu-resource": resourceName,
  "default-prio": whole(-1023, 1024),
  hard: pairs,
  soft: pairs,
  requests,
} as const;

export const SGE_ALIASES: Readonly<Record<string, string>> = { pe: "parallel-environment" };

export interface SgeQueue {
  readonly parallelEnvironment?: string;
  readonly cpuResource?: string | null;
  readonly memResource?: string | null;
  readonly tmpResource?: string | null;
  readonly gpuResource?: string | null;
  readonly defaultPrio?: number;
  readonly hard?: readonly string[];
  readonly soft?: readonly string[];
  readonly requests?: Readonly<Record<string, string>>;
}

/** A request that no key names a resource for; what is missing, and what to write. */
export const sgeProblem = ({
  own: sge,
  ...asks
}: Pick<QueueJob<SgeQueue>, "own" | "nodes" | "cores" | "memory" | "tmp" | "gpus">): Problem | undefined => {
  const missing = (key: string, resource: string, example: string) => ({
    key,
    detail: `Grid Engine has no standard resource for ${key}: ${resource} must name the site's own`,
    remedy: `Add ${resource}: ${example} (\`qconf -sc\` lists the names), or ${resource}: none to ask for nothing.`,
  });
  if (asks.nodes > 1 && sge.parallelEnvironment === undefined)
    return {
      key: "nodes",
      detail: "several nodes need a parallel environment",
      remedy: "Add parallel-environment: NAME; `qconf -spl` lists the names.",
    };
  if ((asks.cores ?? 1) > 1 && sge.parallelEnvironment === undefined && sge.cpuResource === undefined)
    return {
      key: "cores",
      detail: "more than one core needs a parallel environment or a resource that counts cores",
      remedy: "Add parallel-environment: NAME (`qconf -spl` lists them), or cpu-resource: NAME.",
    };
  if (asks.memory !== undefined && sge.memResource === undefined) return missing("memory", "mem-resource", "h_vmem");
  if (asks.tmp !== undefined && sge.tmpResource === undefined) return missing("tmp", "tmp-resource", "tmp_free");
  if ((asks.gpus ?? 0) > 0 && sge.gpuResource === undefined) return missing("gpus", "gpu-resource", "gpu");
  return undefined;
};
