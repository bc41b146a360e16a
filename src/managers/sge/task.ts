import { FRACTION } from "../../core/resources.ts";
import { SlipwayError } from "../../errors.ts";
import type { RefuseKey, TaskAsk, TaskDialect } from "../task-dialect.ts";
import { cutBytes, lookAlike } from "../task-job-name.ts";
import { readTaskKeys } from "../task-keys.ts";
import { sgeDirectives } from "./directives.ts";
import { requestsOf, sgeProblem, type SgeQueue } from "./keys.ts";

/** A task as a job of Grid Engine. */

const KEYS = ["hard", "soft", "prio"] as const;
const [LEAST_PRIO, MOST_PRIO] = [-1023, 1024];

/** Options of qsub that would make another job of it, or hide what Slipway must see. */
const NOT_OF_TASKS: ReadonlySet<string> = new Set(
  "@ b C clear cwd e h help hold_jid hold_jid_ad i inherit j N now o r S shell sync t tc terse verify w wd".split(" "),
);

const isPrio = (text: string): boolean =>
  /^-?\d{1,4}$/.test(text) && Number(text) >= LEAST_PRIO && Number(text) <= MOST_PRIO;

const read = (keys: Readonly<Record<string, string>>, refuse: RefuseKey): Record<string, string> => {
  const found = readTaskKeys(
    keys,
    (key) => ((KEYS as readonly string[]).includes(key) ? key : undefined),
    KEYS,
    "Grid Engine",
    refuse,
  );
  if (found["prio"] !== undefined && !isPrio(found["prio"].trim()))
    refuse("prio", `must be a whole number between ${LEAST_PRIO} and ${MOST_PRIO}`, "Users may only lower it below 0.");
  for (const key of ["hard", "soft"] as const) {
    const text = found[key] ?? "";
    const option = [...text.matchAll(/(?:^|\s)-([@A-Za-z_]+)/g)].find(([, name]) => NOT_OF_TASKS.has(name!))?.[1];
    if (text.startsWith("-") && option !== undefined)
      refuse(key, `-${option} is Slipway's own`, "Leave it out: requests such as -l and -q belong here.");
    const wrong = requestsOf(text).find((request) => !request.startsWith("-") && !/^[\w.-]+(=[^\s,]*)?$/.test(request));
    if (text !== "" && wrong !== undefined)
      refuse(
        key,
        `"${wrong.slice(0, 80)}" is not a resource request`,
        "Write NAME=VALUE, or options that begin with -.",
      );
  }
  return found;
};

/** Each rank has its own slots, as each node of a pilot has. */
const directives = (ask: TaskAsk<SgeQueue>): string[] => {
  const { own, keys, others } = ask;
  const copies = ask.ranks?.count ?? ask.nodes;
  const named = Object.entries(others).filter(([, units]) => units > 0);
  const job = {
    ...ask,
    nodes: copies,
    ...(ask.cores === undefined ? {} : { cores: Math.max(1, Math.ceil(ask.cores)) }),
    ...(ask.gpus === undefined ? {} : { gpus: Math.ceil(ask.gpus) }),
    own: {
      ...own,
      ...(keys["prio"] === undefined ? {} : { defaultPrio: Number(keys["prio"]) }),
      hard: [...(own.hard ?? []), ...requestsOf(keys["hard"] ?? "")],
      soft: [...(own.soft ?? []), ...requestsOf(keys["soft"] ?? "")],
      requests: {
        ...own.requests,
        ...Object.fromEntries(named.map(([name, units]) => [name, String(units / FRACTION)])),
      },
    },
  };
  const problem = sgeProblem({ ...job, nodes: 1 });
  if (problem !== undefined) {
    const key = problem.key === "memory" ? "mem" : problem.key === "cores" ? "cpus" : problem.key;
    throw new SlipwayError("bad-value", { where: "Grid Engine", ...problem, key });
  }
  // one file for each element
  const file = (path: string): string => (ask.array === undefined ? path : `${path}.$TASK_ID`);
  return sgeDirectives({ ...job, stdout: file(ask.stdout), stderr: file(ask.stderr) });
};

const MOST_IN_NAME = 200;
const isAllowed = (char: string): boolean => /[A-Za-z0-9._+=,;|&#%!()~^-]/.test(char);

/** It begins with a letter or `_`: digits are forbidden there, and a dash begins an option. */
const jobName = (text: string): string =>
  cutBytes(lookAlike(text, isAllowed).replace(/^(?![A-Za-z_])/, "_"), MOST_IN_NAME);

export const sgeTask: TaskDialect<SgeQueue> = {
  keys: KEYS,
  read,
  backend: (text, refuse) => {
    const said = text.trim();
    const help = /^(-h|--help)$/.test(said);
    const isNumber = /^[+-]?\d+$/.test(said);
    if (isNumber && !isPrio(said.replace(/^\+/, "")))
      refuse(said.slice(0, 60), `is no priority: it is between ${LEAST_PRIO} and ${MOST_PRIO}`);
    return {
      help,
      resources: {},
      keys: isNumber ? { prio: String(Number(said)) } : {},
      notices: isNumber || help || said === "" ? [] : ["Grid Engine takes only a priority (-b -10): -b is ignored"],
    };
  },
  usage: [
    '-b "PRIORITY": for Grid Engine, one whole number',
    `  PRIORITY    ${LEAST_PRIO} to ${MOST_PRIO}, as of qsub -p; users may only lower it below 0`,
    "  -h, --help  print this",
    "anything else is ignored",
    "",
  ].join("\n"),
  directives,
  jobName,
  mostInName: MOST_IN_NAME,
  array: { variable: "SGE_TASK_ID", first: 1 },
  ranks: "mpiexec",
  variables:
    /^(SGE_|(ARC|JOB_ID|JOB_NAME|JOB_SCRIPT|NHOSTS|NQUEUES|NSLOTS|PE|PE_HOSTFILE|QUEUE|REQNAME|REQUEST|RESTARTED)$)/,
};
