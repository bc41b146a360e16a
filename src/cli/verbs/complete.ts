import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Client } from "../../client/index.ts";
import { readEndpoint } from "../../protocol/endpoint.ts";
import { homeOf } from "../context.ts";
import { homeIn } from "../hints.ts";
import type { CandidateKind } from "../render/completion.ts";

/**
 * What shells ask for while a command line is being typed: names that a running server knows. Nobody waits for it, and
 * without a server, or with any trouble, there is nothing to say.
 */

interface Candidate {
  readonly name: string;
  readonly about: string;
}

const PATIENCE_MS = 1500;
const MOST = 200;
/** What needs no quotes in any shell. */
const PLAIN = /^[\w@%+,./-]+$/;

/** The value of an option among words, however it is written; bash takes `=` for a word of its own. */
const optionIn = (words: readonly string[], option: string): string | undefined => {
  for (const [i, word] of words.entries()) {
    if (word === option) return words[i + 1] === "=" ? words[i + 2] : words[i + 1];
    if (word.startsWith(`${option}=`)) return word.slice(option.length + 1);
  }
  return undefined;
};

const runs = async (client: Client): Promise<Candidate[]> =>
  (await client.runs({ limit: MOST })).map(({ id, name, state }) => ({ name: String(id), about: `${name}, ${state}` }));

const clusters = async (client: Client): Promise<Candidate[]> =>
  (await client.clusters()).map(({ name, type }) => ({ name, about: type }));

const queues = async (client: Client, words: readonly string[]): Promise<Candidate[]> => {
  const all = await client.clusters();
  const named = optionIn(words, "--cluster");
  const meant = all.filter(({ name, default: isDefault }) =>
    named === undefined || named === "" ? isDefault : name === named,
  );
  return (meant.length > 0 ? meant : all).flatMap(({ name, queues: own }) =>
    own.map((queue) => ({ name: queue, about: `of ${name}` })),
  );
};

const pilots = async (client: Client): Promise<Candidate[]> =>
  (await client.pilots())
    .filter(({ ended }) => ended === null)
    .map(({ id, cluster, queue, state }) => ({ name: id, about: `${cluster}/${queue}, ${state}` }));

/** Of the run that is named on the line. */
const groups = async (client: Client, words: readonly string[]): Promise<Candidate[]> => {
  const run = words.find((word) => /^\d{1,15}$/.test(word));
  if (run === undefined) return [];
  return ((await client.run(Number(run))).groups ?? []).map(({ name }) => ({ name, about: `of run ${run}` }));
};

const KIND_WORDS = ["run", "pilot", "launch", "job", "fleet", "cluster"];

/** Whatever `why` takes. */
const things = async (client: Client, words: readonly string[]): Promise<Candidate[]> => {
  const kind = words.findLast((word) => KIND_WORDS.includes(word));
  if (kind === "pilot") return pilots(client);
  if (kind === "run") return runs(client);
  const found = await client.clusters();
  const fleets = found.flatMap(({ name, queues: own }) =>
    own.map((queue) => ({ name: `${name}/${queue}`, about: "a fleet" })),
  );
  const named = found.map(({ name }) => ({ name, about: "a cluster" }));
  if (kind === "fleet") return fleets;
  if (kind === "cluster") return named;
  if (kind !== undefined) return [];
  const kinds = KIND_WORDS.map((name) => ({ name, about: "and its name" }));
  return [...(await runs(client)), ...named, ...fleets, ...kinds];
};

const ASK: Readonly<Record<CandidateKind, (client: Client, words: readonly string[]) => Promise<Candidate[]>>> = {
  runs,
  clusters,
  queues,
  pilots,
  groups,
  things,
};

/** One candidate a line, with what it is behind a tab. Never fails, never says anything else. */
export const completions = async (kind: string, words: readonly string[]): Promise<string> => {
  if (!Object.hasOwn(ASK, kind)) return "";
  const given = homeIn(words) ?? optionIn(words, "--home");
  const home = homeOf(given === undefined || given === "" ? undefined : given, process.env);
  const isThere = await readEndpoint(home).catch(() => undefined);
  if (isThere === undefined) return "";
  const client = connect({ home });
  try {
    const late = sleep(PATIENCE_MS, [], { ref: false });
    const found = await Promise.race([ASK[kind as CandidateKind](client, words), late]);
    return found
      .filter(({ name }) => PLAIN.test(name))
      .slice(0, MOST)
      .map(({ name, about }) => `${name}\t${about.replaceAll(/[^\P{C}]|[\t\n\r]/gu, " ").slice(0, 60)}\n`)
      .join("");
  } catch {
    return "";
  } finally {
    client.close();
  }
};
