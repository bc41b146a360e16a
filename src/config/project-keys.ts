import { BUILT_IN } from "./cluster-keys.ts";
import { BUILT_IN_FORMAT } from "./clusters-schema.ts";
import { RUN_KEYS, TASK_KEYS } from "./run-schema.ts";
import { badValue, type Path, type Source } from "./source.ts";

/**
 * What slipway.yaml and .slipway.yaml may say. They come with whatever directory somebody works in, so with other people's
 * repositories too: only what is listed here is taken, and nothing of it starts a program, names a file or a directory,
 * or is read by a program as one. A key that clusters.yaml gets one day is refused here until somebody adds it.
 */

/** Of tasks: where they go, what they need, how often they are tried. */
export const TASK_SETTINGS = [
  "cluster",
  "queue",
  "local",
  "cpus",
  "gpus",
  "mem",
  "tmp",
  "resources",
  "time-limit",
  "time-request",
  "priority",
  "retries",
  "retry-delay",
  "mem-retry",
  "pin",
  "env",
] as const;

/** Of a run. */
export const RUN_SETTINGS = ["max-fails"] as const;

/** Of a queue, or of all of a cluster's. */
export const QUEUE_OVERRIDES = [
  "partition",
  "account",
  "qos",
  "constraint",
  "reservation",
  "nodes",
  "cores",
  "memory",
  "gpus",
  "tmp",
  "resources",
  "walltime",
  "exclusive",
  "signal",
  "signal-before",
] as const;

/** Of a cluster alone. */
export const CLUSTER_OVERRIDES = ["grace", "pin"] as const;

/** Variables that are numbers or words for libraries; no value of theirs makes anything load or run a file. */
export const ENV_NAMES: readonly string[] = [
  "OMP_NUM_THREADS OMP_DYNAMIC OMP_MAX_ACTIVE_LEVELS OMP_PLACES OMP_PROC_BIND OMP_SCHEDULE OMP_STACKSIZE",
  "OMP_THREAD_LIMIT OMP_WAIT_POLICY MKL_NUM_THREADS MKL_DYNAMIC OPENBLAS_NUM_THREADS GOTO_NUM_THREADS",
  "BLIS_NUM_THREADS VECLIB_MAXIMUM_THREADS NUMEXPR_NUM_THREADS NUMEXPR_MAX_THREADS NUMBA_NUM_THREADS",
  "JULIA_NUM_THREADS RAYON_NUM_THREADS GOMAXPROCS TF_NUM_INTRAOP_THREADS TF_NUM_INTEROP_THREADS",
  "MALLOC_ARENA_MAX PYTHONHASHSEED PYTHONUNBUFFERED CUDA_DEVICE_ORDER",
].flatMap((line) => line.split(" "));

/** What a project's own variables begin with: no program that others wrote looks at such a name. */
export const ENV_PREFIX = "PROJECT_";

const isEnvAllowed = (name: string): boolean => ENV_NAMES.includes(name) || name.startsWith(ENV_PREFIX);

/** Text that becomes a word of a manager's options: nothing in it could end the word, or begin another option. */
const PLAIN_WORD = /^[A-Za-z0-9_(![][A-Za-z0-9_.,:@+&|!*()[\]=-]{0,199}$/;

type Names = readonly string[];

/** The name of a key of queues, however it was written. */
export const queueKey = (written: string): string => {
  const dashed = Object.hasOwn(BUILT_IN.queue, written) ? written : written.replaceAll("_", "-");
  return Object.hasOwn(BUILT_IN.aliases, dashed) ? BUILT_IN.aliases[dashed]! : dashed;
};

const includes = (names: Names, key: string): boolean => names.includes(key);

/** Every spelling of the keys of queues that may be overridden. */
export const QUEUE_SPELLINGS: readonly string[] = Object.keys(BUILT_IN_FORMAT.QueueInput.shape).filter(
  (key) => Object.hasOwn(BUILT_IN.queue, key.replaceAll("_", "-")) && includes(QUEUE_OVERRIDES, queueKey(key)),
);

const ANYBODYS =
  "is not allowed here: anybody may have written this file, so Slipway reads only plain parameters from it";
const IN_CLUSTERS =
  "If you want it, write it in clusters.yaml of your home (~/.slipway), or name a file with --clusters.";
const IN_RUN = "Write it in the run's own file, or give it as an option.";

/** Keys that would be right in another file. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  default: "Write cluster: NAME to choose where tasks go.",
  tasks: "This name is that of a project's settings: give the run file another one, such as run.yaml.",
  defaults: "Write its keys at the top: here they are defaults of every run.",
  modules: IN_CLUSTERS,
  limits: IN_CLUSTERS,
  "keep-history": IN_CLUSTERS,
  page: IN_CLUSTERS,
};

const entriesOf = (value: unknown): [string, unknown][] =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [];

const refuseOthers = (
  source: Source,
  path: Path,
  value: unknown,
  allowed: Names,
  known: Names,
  remedy: (key: string) => string,
): void => {
  for (const [key] of entriesOf(value))
    if (!includes(allowed, key) && includes(known, key)) {
      const { where } = source.locate([...path, key], "key");
      badValue({ locate: (at) => ({ ...source.locate(at), where }) }, [...path, key], ANYBODYS, remedy(key));
    }
};

const refuseWords = (source: Source, path: Path, value: unknown): void => {
  for (const [key, text] of entriesOf(value)) {
    const isWord = ["partition", "account", "qos", "constraint", "reservation"].includes(queueKey(key));
    if (isWord && typeof text === "string" && !PLAIN_WORD.test(text))
      badValue(source, [...path, key], "must be one word of letters, digits and _.,:@+&|!*()[]=-", IN_CLUSTERS);
  }
};

const { QueueInput, ClusterInput } = BUILT_IN_FORMAT;
const QUEUE_KNOWN = Object.keys(QueueInput.shape);
const CLUSTER_KNOWN = Object.keys(ClusterInput.shape);
export const LEVEL_KEYS: Names = [...TASK_SETTINGS, ...RUN_SETTINGS, "clusters", "stages"];
const LEVEL_KNOWN: Names = [...TASK_KEYS, ...RUN_KEYS, ...CLUSTER_KNOWN, ...Object.keys(ELSEWHERE)];
export const CLUSTER_LEVEL_KEYS: Names = [...CLUSTER_OVERRIDES, ...QUEUE_SPELLINGS, "fleet", "queues"];
export const QUEUE_LEVEL_KEYS: Names = [...QUEUE_SPELLINGS, "fleet"];

const DECLARED = "Clusters and queues are declared in clusters.yaml; here only their parameters are overridden.";
const clusterRemedy = (key: string): string => (key === "type" || key === "template" ? DECLARED : IN_CLUSTERS);

/** Refuses what must not stand in a project's file, at the place of the key. What no file knows is left to the schema. */
export const refuseUntrusted = (source: Source, path: Path, value: unknown): void => {
  const remedy = (key: string): string =>
    Object.hasOwn(ELSEWHERE, key)
      ? ELSEWHERE[key]!
      : includes(TASK_KEYS, key) || includes(RUN_KEYS, key)
        ? IN_RUN
        : includes(CLUSTER_LEVEL_KEYS, key)
          ? `Write it under clusters: { NAME: { queues: { QUEUE: { ${key}: … } } } }.`
          : IN_CLUSTERS;
  refuseOthers(source, path, value, LEVEL_KEYS, LEVEL_KNOWN, remedy);
  const level = Object.fromEntries(entriesOf(value));
  for (const [name] of entriesOf(level["env"]))
    if (!isEnvAllowed(name))
      badValue(
        source,
        [...path, "env", name],
        ANYBODYS,
        `Write it as env in the run's own file, or give --env ${name}=…; variables of a project begin with ${ENV_PREFIX}.`,
      );
  for (const [name, cluster] of entriesOf(level["clusters"])) {
    const at = [...path, "clusters", name];
    refuseOthers(source, at, cluster, CLUSTER_LEVEL_KEYS, CLUSTER_KNOWN, clusterRemedy);
    refuseWords(source, at, cluster);
    for (const [queue, keys] of entriesOf(Object.fromEntries(entriesOf(cluster))["queues"])) {
      refuseOthers(source, [...at, "queues", queue], keys, QUEUE_LEVEL_KEYS, QUEUE_KNOWN, clusterRemedy);
      refuseWords(source, [...at, "queues", queue], keys);
    }
  }
  for (const [name, stage] of entriesOf(level["stages"])) refuseUntrusted(source, [...path, "stages", name], stage);
};
