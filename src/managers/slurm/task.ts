import { FRACTION, type Resources } from "../../core/resources.ts";
import { amount, key, readBackend, usageOf, type BackendOption } from "../backend-options.ts";
import type { TaskAsk, TaskDialect } from "../task-dialect.ts";
import { cutBytes, lookAlike } from "../task-job-name.ts";
import { fileName, gresOf, megabytes, slurmLines, type SizeOptions } from "./directives.ts";
import type { SlurmPart, SlurmQueue } from "./keys.ts";
import { readSlurmTask, SLURM_TASK_KEYS, slurmTaskParts } from "./task-keys.ts";

/** A task as a job of Slurm. */

const OPTIONS: readonly BackendOption[] = [
  { letter: "c", name: "cpus-per-task", value: "N", about: "CPUs, instead of the task's", take: amount("cpus") },
  { name: "mem", value: "SIZE", about: "memory, instead of the task's", take: amount("mem") },
  { name: "tmp", value: "SIZE", about: "temporary space, instead of the task's", take: amount("tmp") },
  { letter: "C", name: "constraint", value: "LIST", about: "features of nodes", take: key("features") },
  { letter: "x", name: "exclude", value: "NODES", about: "not on these nodes", take: key("excludes") },
  { name: "gres", value: "LIST", about: "generic resources", take: key("gres") },
  { letter: "L", name: "licenses", value: "LIST", about: "licences", take: key("licence") },
  { letter: "w", name: "nodelist", value: "NODES", about: "on these nodes", take: key("nodelist") },
  { letter: "p", name: "partition", value: "NAME", about: "partition", take: key("partition") },
  { letter: "q", name: "qos", value: "NAME", about: "quality of service", take: key("qos") },
  { name: "reservation", value: "NAME", about: "reservation", take: key("reserv") },
];

/** `name:2`, of those for which it is so. */
const counted = (others: Resources, isMeant: (name: string) => boolean): string[] =>
  Object.entries(others)
    .filter(([name, units]) => units > 0 && isMeant(name))
    .map(([name, units]) => `${name}:${Math.ceil(units / FRACTION)}`);

const listed = (...items: readonly (string | undefined)[]): string | undefined =>
  items.filter((item) => item !== undefined && item !== "").join(",") || undefined;

/** Part 0 with what the task asks for by other names, and where the queue says that its jobs go. */
const partsOf = (ask: TaskAsk<SlurmQueue>): SlurmPart[] => {
  const [first = {}, ...rest] = slurmTaskParts(ask.keys);
  const { excludes, nodes } = ask.own.parts?.[0] ?? {};
  const { licences, others } = ask;
  const licence = listed(first.licence, ...counted(others, (name) => licences.has(name)));
  const gres = listed(first.gres, ...counted(others, (name) => !licences.has(name)));
  return [
    {
      ...(excludes === undefined ? {} : { excludes }),
      ...(nodes === undefined ? {} : { nodes }),
      ...first,
      ...(licence === undefined ? {} : { licence }),
      ...(gres === undefined ? {} : { gres }),
    },
    ...rest,
  ];
};

/** Ranks are in part 0, where the command runs; what is asked for is that of each. */
const sizeOf = (ask: TaskAsk<SlurmQueue>, part: SlurmPart, at: number): SizeOptions => {
  const { ranks } = ask;
  const cores = ask.cores === undefined ? undefined : Math.max(1, Math.ceil(ask.cores));
  const gpus = ask.gpus === undefined ? undefined : Math.ceil(ask.gpus);
  if (ranks === undefined || at > 0)
    return [
      ["nodes", ask.nodes],
      ["ntasks-per-node", 1],
      ["cpus-per-task", cores],
      ["mem", megabytes(ask.memory)],
      ["tmp", megabytes(ask.tmp)],
      ["gres", gresOf(gpus, part)],
    ];
  const perNode = ranks.nodes === undefined ? undefined : Math.ceil(ranks.count / ranks.nodes);
  const perCpu = ask.memory === undefined ? undefined : ask.memory / (cores ?? 1);
  const isNamed = gresOf(1, part) === part.gres;
  return [
    ["nodes", ranks.nodes],
    ["ntasks", ranks.count],
    ["ntasks-per-node", perNode],
    ["cpus-per-task", cores ?? 1],
    ["mem-per-cpu", megabytes(perCpu)],
    // of a node: how many ranks it has is known only where the task says so
    ["tmp", megabytes(ask.tmp === undefined ? undefined : ask.tmp * (perNode ?? 1))],
    ["gpus-per-task", isNamed || !gpus ? undefined : gpus],
    ["gres", part.gres],
  ];
};

const isAllowed = (char: string): boolean => !/[\p{Cc}\p{Surrogate}\u2028\u2029]/u.test(char);
const MOST_IN_NAME = 200;

export const slurmTask: TaskDialect<SlurmQueue> = {
  keys: SLURM_TASK_KEYS,
  read: readSlurmTask,
  backend: (text, refuse) => ({ ...readBackend(text, OPTIONS, refuse), notices: [] }),
  usage: usageOf("Slurm", OPTIONS),
  directives: (ask) => {
    // one file for each element
    const file = (path: string): string => (ask.array === undefined ? fileName(path) : `${fileName(path)}.%a`);
    return slurmLines(ask, {
      parts: partsOf(ask),
      files: { stdout: file(ask.stdout), stderr: file(ask.stderr) },
      size: (part, at) => sizeOf(ask, part, at),
      more: ask.nice === undefined ? [] : [["nice", ask.nice]],
    });
  },
  jobName: (text) => cutBytes(lookAlike(text, isAllowed), MOST_IN_NAME) || "_",
  mostInName: MOST_IN_NAME,
  array: {
    variable: "SLURM_ARRAY_TASK_ID",
    first: 0,
    // Slurm has no arrays of heterogeneous jobs
    allows: ({ keys }) => slurmTaskParts(keys).length === 1,
  },
  ranks: "srun",
  variables: /^SLURMD?_/,
};
