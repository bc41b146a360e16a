import type { Calls } from "../../calls.ts";
import type { CommandResult } from "../../commands.ts";
import { FINISHED, UNKNOWN_JOB } from "./failures.ts";
import { type Attributes, parseJson, parseText, type Records } from "./parse.ts";

/** What we ask PBS for: listings of its jobs, queues and nodes. */
export interface PbsAnswers {
  /** All of a section, or these of it; throws when the server did not answer. */
  all(name: "qstat" | "pbsnodes", words: readonly string[], section: string, ids?: readonly string[]): Promise<Records>;
  /** Those of these jobs that PBS still knows, perhaps with others, by what `sequenceOf` makes of their ids. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, Attributes>>;
  /** Those of them, and perhaps others, that have not ended. */
  living(ids: readonly string[]): Promise<ReadonlyMap<string, Attributes>>;
}

/** Each unknown id takes qstat a moment: beyond this many, list everything instead. */
const MOST_IDS = 50;

const NO_HISTORY = /maintain job history|job_history_enable/i;

/** `12.head` and `12` are the same job, as are `12.head` and `12.head.site`. */
export const sequenceOf = (id: string): string => id.split(".")[0]!;

interface Listing {
  readonly records: Records;
  readonly result: CommandResult;
}

const bySequence = ({ records }: Listing): Map<string, Attributes> =>
  new Map([...records].map(([id, attributes]) => [sequenceOf(id), attributes]));

/** The jobs that a command knew nothing about. */
const deniedBy = ({ stderr }: CommandResult): Set<string> =>
  new Set(Array.from(stderr.matchAll(/\b\d+(?:\[\d*\])?(?=[.\s:]|$)/g), ([id]) => id));

export const createPbsAnswers = ({ call, unreachable }: Calls): PbsAnswers => {
  /** What this installation turned out not to do; a restarted server finds out again. */
  const lacks = { severalIds: false, history: false };

  /** One listing, as JSON or, where that cannot be read, as text. Throws when the server did not answer. */
  const listing = async (
    name: string,
    words: readonly string[],
    section: string,
    ids: readonly string[] = [],
  ): Promise<Listing> => {
    const ask = async (format: readonly string[]): Promise<CommandResult> => {
      const result = await call(name, [...words, ...format, ...ids]);
      const { code, stderr } = result;
      const isAnswer = code === 0 || code === FINISHED || code === UNKNOWN_JOB || NO_HISTORY.test(stderr);
      if (!isAnswer) throw unreachable(result);
      return result;
    };
    const result = await ask(["-F", "json"]);
    const records = parseJson(result.stdout, section);
    if (records !== undefined) return { records, result };
    const plain = await ask([]);
    return { records: parseText(plain.stdout), result: plain };
  };

  const living = (ids: readonly string[] = []): Promise<Listing> => listing("qstat", ["-f"], "Jobs", ids);

  /** A server that keeps no history (the default) answers `-x` without its living jobs, and without an error. */
  const withHistory = async (ids: readonly string[] = []): Promise<Listing> => {
    if (!lacks.history) {
      const answer = await listing("qstat", ["-x", "-f"], "Jobs", ids);
      if (!NO_HISTORY.test(answer.result.stderr)) return answer;
      lacks.history = true;
    }
    return living(ids);
  };

  /** Asks for these by their ids; undefined where that is not done, or does not work. */
  const named = async (
    ids: readonly string[],
    ask: (ids: readonly string[]) => Promise<Listing>,
  ): Promise<Map<string, Attributes> | undefined> => {
    if (ids.length > MOST_IDS || (ids.length > 1 && lacks.severalIds)) return undefined;
    const answer = await ask(ids);
    const found = bySequence(answer);
    const denied = deniedBy(answer.result);
    if (ids.length === 1 || ids.every((id) => found.has(sequenceOf(id)) || denied.has(sequenceOf(id)))) return found;
    // a build that prints only the first of several
    lacks.severalIds = true;
    return undefined;
  };

  /** Among all jobs; the history, which may be long, is searched only for what is not among the living. */
  const findAmongAll = async (ids: readonly string[]): Promise<Map<string, Attributes>> => {
    const found = bySequence(await living());
    const missing = ids.filter((id) => !found.has(sequenceOf(id)));
    if (missing.length === 0 || lacks.history) return found;
    const past = (await named(missing, withHistory)) ?? bySequence(await withHistory());
    return new Map([...past, ...found]);
  };

  return {
    all: async (...words) => (await listing(...words)).records,
    find: async (ids) => (ids.length === 0 ? new Map() : ((await named(ids, withHistory)) ?? findAmongAll(ids))),
    living: async (ids) => (await named(ids, living)) ?? bySequence(await living()),
  };
};
