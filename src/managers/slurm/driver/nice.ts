import type { Calls } from "../../calls.ts";
import { chunksOf } from "../../chunks.ts";
import type { NiceRules, Provider } from "../../provider.ts";
import { isId } from "./array-ids.ts";
import { MOST_CHARACTERS } from "./ask.ts";
import { parseConfig, parseParameters, parsePriorities, PRIORITY_FORMAT } from "./parse-config.ts";
import { wordsOf } from "./parse.ts";

/** A user may lower the place of waiting jobs among all others by their nice value. */

/** What scontrol says of a job whose place no longer matters. */
const IS_OVER =
  /Invalid job id|already (finished|done|completing)|no longer pending|not pending|job.*(running|completing|has started)/i;

/** The lowest, so that a nice value below it leaves any job a priority of its own. */
const lowest = (priorities: readonly number[]): number | undefined =>
  priorities.length === 0 ? undefined : priorities.reduce((least, one) => Math.min(least, one));

const niceRules = async ({ ask }: Calls): Promise<NiceRules> => {
  const config = parseConfig(await ask("scontrol", ["show", "config"]));
  const words = ["--noheader", "--array", "--states=PENDING,RUNNING", `--Format=${PRIORITY_FORMAT}`];
  const seen = parsePriorities(await ask("squeue", ["--me", ...words]));
  const waiting = seen.filter(({ isWaiting }) => isWaiting);
  const priority = lowest((waiting.length > 0 ? waiting : seen).map((job) => job.priority));
  return {
    ...(priority === undefined ? {} : { priority }),
    parameters: parseParameters(config.get("PriorityParameters") ?? ""),
  };
};

type Changes = Parameters<NonNullable<Provider["renice"]>>[0];

const renice = async (calls: Calls, changes: Changes): Promise<void> => {
  const byNice = new Map<number, string[]>();
  for (const { nativeId, nice } of changes)
    if (isId(nativeId)) byNice.set(nice, [...(byNice.get(nice) ?? []), nativeId]);
  for (const [nice, ids] of byNice)
    for (const chunk of chunksOf(ids, { characters: MOST_CHARACTERS })) {
      const result = await calls.call("scontrol", ["update", `JobId=${chunk.join()}`, `Nice=${nice}`]);
      const troubles = `${result.stderr}\n${result.stdout}`
        .split("\n")
        .filter((line) => line.trim() !== "" && !IS_OVER.test(line));
      if (result.code !== 0 && troubles.length > 0) throw calls.unreachable(wordsOf(troubles.join("\n")));
    }
};

export const createNice = (calls: Calls): Required<Pick<Provider, "niceRules" | "renice">> => ({
  niceRules: () => niceRules(calls),
  renice: (changes) => renice(calls, changes),
});
