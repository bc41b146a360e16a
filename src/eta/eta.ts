import { type Group, type Run, shapeOfRow } from "../core/run.ts";
import { Task } from "../core/states.ts";
import type { Expected } from "../learned/expected.ts";
import { type Places, capacityFor } from "./capacity.ts";
import { type Estimate, estimateSteps } from "./estimate.ts";
import { openWork } from "./open-work.ts";
import { inOrder, isOpen } from "./order.ts";
import { roughly } from "./rough.ts";
import { PIECE, type Steps, whole } from "./steps.ts";

/** When a run ends, in milliseconds from now, or why nobody can tell. */
export type Eta = { readonly estimate: Estimate } | { readonly reason: string };

/** A graph of more open groups is not replayed: it would take too long, and its bounds are close to the truth. */
const MOST_GROUPS = 1500;

/** `rough`: by bounds alone, for when there is no time. */
export function* etaSteps(run: Run, now: number, expected: Expected, places: Places, rough = false): Steps<Eta> {
  const open: Group[] = [];
  for (let at = 0; at < run.groups.length; at += 1) {
    if (at % PIECE === 0) yield;
    const group = run.groups[at]!;
    if (isOpen(group)) open.push(group);
  }
  const next = open.find(({ base }) => base !== Task.NEW) ?? open[0];
  if (next === undefined) return { reason: "nothing of it is left" };
  for (let at = 0; at < open.length; at += 1) {
    if (at % PIECE === 0) yield;
    const { base, spec } = open[at]!;
    if (base !== Task.NEW) continue;
    for (const each of spec.after)
      if ("run" in each && !places.isOver(each.run)) return { reason: `it waits for run ${each.run}` };
  }
  const knows = run.counts[Task.DONE]! > run.skipped || open.some((group) => group.expectedMs >= 0);
  if (!knows) return { reason: "nothing like its tasks has ended yet" };
  const capacity = capacityFor(shapeOfRow(next, next.first), places);
  if (typeof capacity === "string") return { reason: capacity };
  const ordered = yield* inOrder(run);
  if (rough || open.length > MOST_GROUPS) return { estimate: yield* roughly(run, ordered, expected, capacity) };
  const work = openWork(run, ordered, now, expected, capacity);
  if (work === undefined) return { reason: "where some of its tasks can run is not known yet" };
  return { estimate: yield* estimateSteps(work, run.id) };
}

export const etaOf = (...about: Parameters<typeof etaSteps>): Eta => whole(etaSteps(...about));
