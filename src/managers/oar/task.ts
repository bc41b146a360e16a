import { SlipwayError } from "../../errors.ts";
import { key, amount, readBackend, usageOf, type BackendOption } from "../backend-options.ts";
import type { RefuseKey, TaskAsk, TaskDialect } from "../task-dialect.ts";
import { cutBytes, lookAlike } from "../task-job-name.ts";
import { readTaskKeys } from "../task-keys.ts";
import { oarDirectives } from "./directives.ts";
import type { OarQueue } from "./keys.ts";

/** A task as a job of OAR. */

const KEYS = ["partition", "properties", "types"] as const;

const OPTIONS: readonly BackendOption[] = [
  { letter: "p", name: "property", value: "SQL", about: "properties of the resources", take: key("properties") },
  { letter: "t", name: "type", value: "TYPES", about: "types of the job, separated by blanks", take: key("types") },
  { letter: "q", name: "queue", value: "NAME", about: "queue", take: key("partition") },
  { name: "cores", value: "N", about: "cores, instead of the task's CPUs", take: amount("cpus") },
  { name: "mem", value: "SIZE", about: "memory, instead of the task's", take: amount("mem") },
];

const read = (keys: Readonly<Record<string, string>>, refuse: RefuseKey): Record<string, string> => {
  const isKey = (written: string): string | undefined =>
    (KEYS as readonly string[]).includes(written) ? written : undefined;
  const found = readTaskKeys(keys, isKey, KEYS, "OAR", refuse);
  for (const type of typesOf(found["types"]))
    if (!/^[\w.-]+(=[\w.,:/@*-]+)?$/.test(type))
      refuse(
        "types",
        `"${type.slice(0, 80)}" is not a type of jobs`,
        "Write names, or NAME=VALUE, separated by blanks.",
      );
  return found;
};

const typesOf = (text = ""): string[] => text.split(/\s+/).filter((type) => type !== "");

/** A rank is wholly on one node: with several cores each has a node to itself, unless the task says on how many they are. */
const specOf = ({ ranks, nodes, cores = 1, gpus = 0 }: TaskAsk<OarQueue>, isWhole: boolean): string => {
  const each = Math.max(1, Math.ceil(cores));
  const devices = Math.ceil(gpus);
  if (ranks !== undefined && ranks.nodes === undefined && each === 1 && devices === 0 && !isWhole)
    return `/core=${ranks.count}`;
  const on = ranks === undefined ? nodes : (ranks.nodes ?? ranks.count);
  const perNode = ranks === undefined ? 1 : Math.ceil(ranks.count / on);
  if (isWhole) return `/nodes=${on}`;
  if (devices === 0) return `/nodes=${on}/core=${each * perNode}`;
  // cores are counted below each GPU
  return `/nodes=${on}/gpu=${devices * perNode}/core=${Math.ceil(each / devices)}`;
};

const both = (...parts: readonly (string | undefined)[]): string | undefined => {
  const given = parts.filter((part) => part !== undefined);
  return given.length > 1 ? given.map((part) => `(${part})`).join(" AND ") : given[0];
};

const directives = (ask: TaskAsk<OarQueue>): string[] => {
  const { own, keys } = ask;
  const [other] = Object.entries(ask.others).find(([, units]) => units > 0) ?? [];
  if (other !== undefined)
    throw new SlipwayError("bad-value", {
      where: "OAR",
      key: other,
      detail: "OAR counts no resources by such names",
      remedy: "Say in properties what the task needs, or run it through a pilot.",
    });
  const property = both(own.property, keys["properties"]);
  const { property: _, ...rest } = own;
  // OAR's only pattern that differs from one element to the next
  const file = (path: string): string => (ask.array === undefined ? path : `${path}.%jobid%`);
  const partition = keys["partition"] ?? ask.partition;
  const { gpus: __, ...without } = ask;
  return oarDirectives({
    ...without,
    ...(partition === undefined ? {} : { partition }),
    stdout: file(ask.stdout),
    stderr: file(ask.stderr),
    own: {
      ...rest,
      ...(property === undefined ? {} : { property }),
      resourceSpec: specOf(ask, ask.exclusive === true),
    },
    options: [...ask.options, ...typesOf(keys["types"]).map((type) => `-t ${type}`)],
  });
};

/** What its database keeps of a name. */
const MOST_IN_NAME = 100;
const isAllowed = (char: string): boolean => !/['\p{Cc}\p{Surrogate}\u2028\u2029]/u.test(char);

export const oarTask: TaskDialect<OarQueue> = {
  keys: KEYS,
  read,
  backend: (text, refuse) => ({ ...readBackend(text, OPTIONS, refuse), notices: [] }),
  usage: usageOf("OAR", OPTIONS),
  directives,
  jobName: (text) => cutBytes(lookAlike(text, isAllowed).replace(/^[\s-]/, "_"), MOST_IN_NAME) || "_",
  mostInName: MOST_IN_NAME,
  array: { variable: "OAR_ARRAY_INDEX", first: 1 },
  ranks: "mpiexec",
  variables: /^OAR_/,
};
