import { nearest } from "../config/nearest.ts";
import { statesMeant, wordsOf } from "../core/state-words.ts";
import { SlipwayError } from "../errors.ts";

/** Gathers `--state a,b --state c`. */
export const collectWords = (value: string, before: readonly string[] | undefined): string[] => [
  ...(before ?? []),
  ...value.split(","),
];

/** The states of `among` that `--state` names, by the words of people or by their names in JSON; `what` they are. */
export const parseStates = <S extends string>(given: readonly string[], among: readonly S[], what: string): S[] => {
  const wanted = new Set<S>();
  for (const text of given) {
    const meant = statesMeant(text, among);
    if (meant.length === 0) {
      const words = wordsOf(among);
      const near = nearest(text.trim().toLowerCase(), words);
      const hint = near === undefined ? "" : `; did you mean ${near}?`;
      throw new SlipwayError("usage", {
        detail: `--state: '${text.slice(0, 60)}' is not ${what}; it takes ${words.join(", ")}${hint}`,
      });
    }
    for (const state of meant) wanted.add(state);
  }
  return [...wanted];
};
