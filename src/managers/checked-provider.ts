import type { Resources } from "../core/resources.ts";
import { SlipwayError } from "../errors.ts";
import { CommandError } from "./commands.ts";
import type {
  ArrayPlace,
  ClusterDescription,
  FoundJob,
  JobOutcome,
  JobStatus,
  Partition,
  Provider,
} from "./provider.ts";

/**
 * A driver from outside, whose answers are looked at before anybody believes them: what it says of a job is written into
 * the journal. What makes no sense is not an answer; a submission with such an answer may have been accepted.
 */

const STATES: readonly string[] = ["queued", "held", "active", "suspended", "ended", "unknown"];
const OUTCOMES: readonly string[] = [
  "done",
  "failed",
  "cancelled",
  "timeout",
  "out-of-memory",
  "lost",
  "preempted",
  "start-failed",
  "unknown",
] satisfies readonly JobOutcome[];
const LONGEST = 1000;

const isText = (value: unknown): value is string => typeof value === "string";
const isId = (value: unknown): value is string => isText(value) && value !== "" && value.length <= LONGEST;
const isMap = (value: unknown): value is object => typeof value === "object" && value !== null;
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const field = (value: unknown, name: string): unknown =>
  isMap(value) ? (value as Record<string, unknown>)[name] : undefined;

const shown = (value: unknown): string => {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200);
  } catch {
    return typeof value;
  }
};

const statusOf = (given: unknown): JobStatus => {
  const [state, raw, reason, outcome, hosts, exitCode, signal, successor] = (
    ["state", "raw", "reason", "outcome", "hosts", "exitCode", "signal", "successor"] as const
  ).map((name) => field(given, name));
  if (!isText(state) || !STATES.includes(state)) return { state: "unknown", raw: shown(given) };
  const known = isText(outcome) && OUTCOMES.includes(outcome) ? (outcome as JobOutcome) : undefined;
  return {
    state: state as JobStatus["state"],
    raw: isText(raw) ? raw.slice(0, LONGEST) : "",
    ...(isText(reason) ? { reason: reason.slice(0, LONGEST) } : {}),
    ...(state === "ended" ? { outcome: known ?? "unknown" } : {}),
    ...(Array.isArray(hosts) ? { hosts: hosts.filter(isText) } : {}),
    ...(Number.isInteger(exitCode) ? { exitCode: exitCode as number } : {}),
    ...(Number.isInteger(signal) ? { signal: signal as number } : {}),
    ...(isId(successor) ? { successor } : {}),
    ...(field(given, "stuck") === true ? { stuck: true } : {}),
  };
};

const arrayOf = (given: unknown): ArrayPlace | undefined => {
  const [nativeId, element] = [field(given, "nativeId"), field(given, "element")];
  return isId(nativeId) && Number.isInteger(element) && (element as number) >= 0
    ? { nativeId, element: element as number }
    : undefined;
};

const foundOf = (given: unknown): FoundJob[] => {
  const [name, nativeId] = [field(given, "name"), field(given, "nativeId")];
  const array = arrayOf(field(given, "array"));
  return isText(name) && isId(nativeId) ? [{ name, nativeId, ...(array === undefined ? {} : { array }) }] : [];
};

const partitionOf = (given: unknown): Partition => {
  const number = (name: string): number => (isNumber(field(given, name)) ? (field(given, name) as number) : 0);
  const types = field(given, "gpuTypes");
  const walltime = field(given, "maxWalltime");
  return {
    name: String(field(given, "name")),
    isDefault: field(given, "isDefault") === true,
    isUp: field(given, "isUp") !== false,
    nodes: number("nodes"),
    cpusPerNode: number("cpusPerNode"),
    memoryPerNode: number("memoryPerNode"),
    gpusPerNode: number("gpusPerNode"),
    gpuTypes: Array.isArray(types) ? types.filter(isText) : [],
    ...(isNumber(walltime) ? { maxWalltime: walltime } : {}),
  };
};

export const checkedProvider = (given: Provider, cluster: string): Provider => {
  const unreachable = (detail: string, cause?: unknown): SlipwayError =>
    new SlipwayError("cluster-unreachable", { cluster, detail }, cause);
  const wrong = (method: string, answer: unknown): string => `its driver answered ${method} with ${shown(answer)}`;
  const isOurs = (error: unknown): boolean => error instanceof SlipwayError || error instanceof CommandError;
  const failed = (error: unknown): string =>
    `its driver failed: ${(error instanceof Error ? error.message : shown(error)).slice(0, LONGEST)}`;
  const asked = async <T>(ask: () => Promise<T>): Promise<T> => {
    try {
      return await ask();
    } catch (error) {
      throw isOurs(error) ? error : unreachable(failed(error), error);
    }
  };
  const { tryOut, licences } = given;
  return {
    describe: async (): Promise<ClusterDescription> => {
      const answer = await asked(() => given.describe());
      const [version, largest, partitions] = ["version", "largest", "partitions"].map((name) => field(answer, name));
      const most = field(answer, "mostInArray");
      const names = (key: "accounts" | "qos") => {
        const given = field(answer, key);
        return Array.isArray(given) ? { [key]: given.filter(isText) } : {};
      };
      if (!isText(version) || !isMap(largest) || !Object.values(largest).every(isNumber))
        throw unreachable(wrong("describe", answer));
      return {
        version,
        largest: largest as Resources,
        ...(Array.isArray(partitions) ? { partitions: partitions.map(partitionOf) } : {}),
        ...(Number.isInteger(most) && (most as number) > 0 ? { mostInArray: most as number } : {}),
        ...names("accounts"),
        ...names("qos"),
      };
    },
    submit: async (job) => {
      let answer: unknown;
      try {
        answer = await given.submit(job);
      } catch (error) {
        throw isOurs(error) ? error : new CommandError(failed(error), [], true, error);
      }
      const [nativeId, note] = [field(answer, "nativeId"), field(answer, "note")];
      if (!isId(nativeId)) throw new CommandError(wrong("submit", answer), [], true);
      const said = isText(note) ? { note: note.slice(0, LONGEST) } : {};
      if (job.array === undefined) return { nativeId, ...said };
      const elements = field(answer, "elements");
      if (!Array.isArray(elements) || elements.length !== job.array || !elements.every(isId))
        throw new CommandError(wrong("submit", answer), [], true);
      return { nativeId, elements, ...said };
    },
    poll: async (nativeIds) => {
      const answer: unknown = await asked(() => given.poll(nativeIds));
      if (!(answer instanceof Map)) throw unreachable(wrong("poll", answer));
      return new Map(nativeIds.map((id) => [id, statusOf(answer.get(id))]));
    },
    cancel: (nativeIds) => asked(async () => given.cancel(nativeIds)),
    list: async (namePrefix) => {
      const answer: unknown = await asked(() => given.list(namePrefix));
      if (!Array.isArray(answer)) throw unreachable(wrong("list", answer));
      return answer.flatMap(foundOf);
    },
    ...(typeof licences === "function"
      ? {
          licences: async () => {
            const answer: unknown = await asked(() => licences.call(given));
            if (!Array.isArray(answer)) throw unreachable(wrong("licences", answer));
            return answer.filter(isText);
          },
        }
      : {}),
    ...(typeof tryOut === "function"
      ? { tryOut: (job) => asked(async () => String(await tryOut.call(given, job))) }
      : {}),
  };
};
