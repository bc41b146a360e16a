import { type Run, shapeOfRow } from "../core/run.ts";
import { Task } from "../core/states.ts";
import type { Expected } from "../learned/expected.ts";
import { type Places, capacityFor } from "./capacity.ts";
import { type Estimate, estimate, roughly } from "./estimate.ts";
import { openWork } from "./open-work.ts";

/** When a run ends, in milliseconds from now, or why nobody can tell. */
export type Eta = { readonly estimate: Estimate } | { readonly reason: string };

/** `rough`: by bounds alone, for when there is no time. */
export const etaOf = (run: Run, now: number, expected: Expected, places: Places, rough = false): Eta => {
  const open = run.groups.filter(({ count, done, failed, canceled }) => done + failed + canceled < count);
  const next = open.find(({ base }) => base !== Task.NEW) ?? open[0];
  if (next === undefined) return { reason: "nothing of it is left" };
  for (const { base, spec } of open) {
    if (base !== Task.NEW) continue;
    for (const each of spec.after)
      if ("run" in each && !places.isOver(each.run)) return { reason: `it waits for run ${each.run}` };
  }
  const knows = run.counts[Task.DONE]! > 0 || open.some((group) => group.expectedMs >= 0);
  if (!knows) return { reason: "nothing like its tasks has ended yet" };
  const capacity = capacityFor(shapeOfRow(next, next.first), places);
  if (typeof capacity === "string") return { reason: capacity };
  const work = openWork(run, now, expected, capacity);
  if (work === undefined) return { reason: "where some of its tasks can run is not known yet" };
  return { estimate: rough ? roughly(work) : estimate(work, run.id) };
};
