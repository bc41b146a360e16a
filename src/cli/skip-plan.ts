import { MOST_FILES_ASKED } from "../api/outputs.ts";
import type { BuiltRun } from "../config/build-run.ts";
import type { PackedItems } from "../core/items.ts";
import { createRun } from "../core/run.ts";
import type { RunSpec } from "../core/spec.ts";
import type { Success } from "../core/successes.ts";
import { SlipwayError } from "../errors.ts";
import type { Preview } from "../preview/preview.ts";
import { lookFiles } from "../skips/look-files.ts";
import { MOST_PLANNED, planSkips } from "../skips/plan.ts";
import type { Context } from "./context.ts";

/** Which tasks a run would skip: by what the server remembers, or its journal, and by the files as they are seen here. */

export type ItemLists = ReadonlyMap<number, PackedItems>;

const asSuccess = ({ fingerprint, began, ended }: { fingerprint: string; began: number; ended: number }): Success => ({
  hi: Number.parseInt(fingerprint.slice(0, 8), 16) | 0,
  lo: Number.parseInt(fingerprint.slice(8), 16) | 0,
  began,
  ended,
});

/** Without a server and a journal nothing is remembered. */
const knownOf =
  ({ reader }: Pick<Context, "reader">) =>
  async (files: readonly string[]): Promise<(Success | undefined)[]> => {
    const all: (Success | undefined)[] = [];
    for (let at = 0; at < files.length; at += MOST_FILES_ASKED) {
      const part = files.slice(at, at + MOST_FILES_ASKED);
      try {
        const { known } = await reader.knownOutputs(part);
        all.push(...known.map((each) => (each === null ? undefined : asSuccess(each))));
      } catch (error) {
        if (!(error instanceof SlipwayError) || error.code !== "no-server") throw error;
        all.push(...part.map(() => undefined));
      }
    }
    return all;
  };

/** The run as it would be taken in: the length of a list is known when all its items are. */
const runOf = ({ spec }: BuiltRun, items: ItemLists) => {
  const groups = spec.groups.map((group, index): RunSpec["groups"][number] =>
    group.items.kind === "list" ? { ...group, items: { kind: "list", count: items.get(index)?.length ?? 0 } } : group,
  );
  const inputs = new Map([...items].map(([index, list]) => [index, { items: list, rowShapes: undefined }]));
  // no run ever has this id
  return createRun(Number.MAX_SAFE_INTEGER, "", { ...spec, groups }, 0, inputs);
};

export const withSkips = async (
  context: Pick<Context, "reader">,
  built: BuiltRun,
  preview: Preview,
  items: ItemLists,
): Promise<Preview> => {
  if (built.spec.groups.every(({ outputs }) => outputs === undefined)) return preview;
  if ((preview.tasks ?? 0) > MOST_PLANNED) {
    const notice = `more than ${MOST_PLANNED} tasks: which of them would be skipped is not looked at in advance`;
    return { ...preview, notices: [...preview.notices, notice] };
  }
  const plans = await planSkips(runOf(built, items), { known: knownOf(context), look: lookFiles });
  const groups = preview.groups.map((group, index) => {
    const skips = plans.get(index);
    return skips === undefined ? group : { ...group, skips };
  });
  return { ...preview, groups };
};
