import { SlipwayError } from "../errors.ts";
import type { RunId } from "../core/ids.ts";

/** What a user names on the command line: a run (`3`) or one of its tasks (`3.17`). */
export interface Target {
  readonly run: RunId;
  readonly task?: number;
}

const PATTERN = /^(\d{1,15})(?:\.(\d{1,15}))?$/;

/** `or`: what else it might have been. */
export const parseTarget = (text: string, or?: string): Target => {
  const match = PATTERN.exec(text);
  if (match === null)
    throw new SlipwayError("usage", {
      detail: `'${text}' is neither a run (3) nor a task of one (3.17)${or === undefined ? "" : `, nor ${or}`}`,
    });
  const run = Number(match[1]);
  return match[2] === undefined ? { run } : { run, task: Number(match[2]) };
};

/** Tasks per run, in the order given; a run named whole is not narrowed by its own tasks. */
export const targetsByRun = (targets: readonly string[]): Map<number, number[] | undefined> => {
  const runs = new Map<number, number[] | undefined>();
  for (const { run, task } of targets.map((text) => parseTarget(text))) {
    const known = runs.get(run);
    if (task === undefined) runs.set(run, undefined);
    else if (known !== undefined) known.push(task);
    else if (!runs.has(run)) runs.set(run, [task]);
  }
  return runs;
};

export const parseRun = (text: string): number => {
  const { run, task } = parseTarget(text);
  if (task !== undefined)
    throw new SlipwayError("usage", { detail: `'${text}' is a task; this command takes a run (${run})` });
  return run;
};

/** A number on the command line, with the option's name in the error. */
export const parseWhole = (option: string, text: string, least: number, most: number): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most)
    throw new SlipwayError("usage", { detail: `${option}: '${text}' is not a whole number from ${least} to ${most}` });
  return value;
};
