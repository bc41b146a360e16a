import { availableParallelism, totalmem } from "node:os";
import type { ClustersConfig } from "../config/clusters-file.ts";
import { createProblems } from "../config/problems.ts";
import { MAX_BYTES, MAX_GPUS } from "../core/quantities.ts";
import { type Resources, toUnits } from "../core/resources.ts";
import { PackedItems, storedJson } from "../core/items.ts";
import { SlipwayError } from "../errors.ts";
import { createPreviewer, type Preview, type Previewer } from "../preview/preview.ts";
import { knownNodes } from "../preview/nodes.ts";
import type { Context } from "./context.ts";
import { itemStreams } from "../config/item-files.ts";
import { type ItemLists, withSkips } from "./skip-plan.ts";
import { previewText } from "./render/preview.ts";
import type { Checked } from "./submission.ts";

/** `run --dry-run` and `validate`: everything that can be known here, by clusters.yaml, without a server. */

/** What this machine has, as far as one can see without an agent: GPUs and space are not looked for. */
const here = (declared: Resources): Resources => ({
  cpus: toUnits("cpus", availableParallelism()),
  mem: totalmem(),
  tmp: MAX_BYTES,
  gpus: toUnits("gpus", MAX_GPUS),
  ...declared,
});

const nodesOf = (clusters: ClustersConfig): ReadonlyMap<string, Resources> => knownNodes(clusters, here);

/** Items that are written in the file. */
const addValues = (previewer: Pick<Previewer, "add">, group: number, values: Iterable<string>): void => {
  let batch: string[] = [];
  for (const value of values) {
    batch.push(value);
    if (batch.length < 5000) continue;
    previewer.add(group, batch);
    batch = [];
  }
  previewer.add(group, batch);
};

/** What a run would be, and all items of its lists. */
const readPreview = async ({ document, built, clusters }: Checked): Promise<{ preview: Preview; items: ItemLists }> => {
  const problems = createProblems();
  const preview = createPreviewer(document, built, { clusters, largest: nodesOf(clusters), shared: [] }, problems);
  const items = new Map<number, PackedItems>();
  const keeps = built.spec.groups.some(({ outputs }) => outputs !== undefined);
  const previewer: Pick<Previewer, "add"> = {
    add: (group, stored) => {
      preview.add(group, stored);
      if (!keeps) return;
      const input = built.items.get(group)!;
      const list = items.get(group) ?? new PackedItems(input.kind === "values" ? input.json : input.kind === "json");
      items.set(group, list);
      for (const item of stored) list.add(item);
    },
  };
  for (const [group, input] of built.items) if (input.kind === "values") addValues(previewer, group, input.values);
  for (const [group, input] of built.items) {
    if (input.kind === "values") continue;
    try {
      for (const stream of await itemStreams(built.spec.groups, new Map([[group, input]])))
        for await (const batch of stream.batches())
          previewer.add(
            group,
            batch.map((item) => (input.kind === "json" ? storedJson(item) : String(item))),
          );
    } catch (error) {
      if (!(error instanceof SlipwayError)) throw error;
      problems.add(error);
    }
  }
  return { preview: preview.end(), items };
};

export const previewOf = async (checked: Checked): Promise<Preview> => (await readPreview(checked)).preview;

/** Prints the plan; problems are thrown, all of them. */
export const dryRun = async (context: Context, checked: Checked): Promise<number> => {
  const read = await readPreview(checked);
  const preview = await withSkips(context, checked.built, read.preview, read.items);
  if (context.json) context.printJson({ valid: true, errors: [], plan: preview });
  else context.out.line(previewText(preview, context.style, context.out.columns()));
  return 0;
};
