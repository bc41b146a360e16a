import { readdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { itemAt } from "../core/task-template.ts";
import { expandFiles } from "../core/task-files.ts";
import { Ending } from "../core/events.ts";
import type { Row } from "../core/ids.ts";
import { type RunTemplate, indexOf } from "./templates.ts";

/**
 * Whether a task that ended well has made what it declares. The node that ran it looks: it sees its own writes, while others may see
 * an older state of a shared directory for a while. What it started may have written elsewhere: so what is not there is looked for again.
 */

/** How long to look for an output before it counts as missing. */
const PATIENCE_MS = 1000;
const FIRST_MS = 20;

const isThere = async (path: string): Promise<boolean> => {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
};

/** The first that is not there. */
export const missingOutput = async (
  paths: readonly string[],
  patienceMs = PATIENCE_MS,
): Promise<string | undefined> => {
  const until = performance.now() + patienceMs;
  for (const path of paths) {
    for (let wait = FIRST_MS; !(await isThere(path)); wait *= 2) {
      if (performance.now() >= until) return path;
      await delay(Math.min(wait, Math.max(1, until - performance.now())));
      // reading the directory makes NFS ask its server again
      await readdir(dirname(path)).catch(() => undefined);
    }
  }
  return undefined;
};

/** The outputs that an attempt declares. */
export const declaredOutputs = (
  run: RunTemplate,
  index: number,
  row: Row,
  stored: string | undefined,
): readonly string[] => {
  const { source } = run.groups.get(index)!;
  if (source.outputs === undefined || source.executor === "null") return [];
  const item = itemAt(row - source.first, stored, source.json, source.range, source.colsep);
  return expandFiles(source, { run: run.id, task: indexOf(run, row), item, cwd: run.cwd }).outputs;
};

/** What a good end is without one of its outputs. */
export const withoutOutput = (path: string): { ending: number; code: number; detail: string } => ({
  ending: Ending.NO_OUTPUT,
  code: 0,
  detail: `exit code 0, but its output ${path} is not there`,
});
