import { type Resources, amountOf } from "../core/resources.ts";
import { expectedMs } from "../core/run.ts";
import { type PrefetchPolicy, concurrency, prefetchLoad } from "./capacity.ts";
import { type ShapeQueue, headOf } from "./queues.ts";

/**
 * What no waiting task asks less of, and how far the shortest of them may be prefetched: by these an agent that can
 * take nothing more is known without a look at every shape. Never tighter than the truth at the beginning of a pass.
 */
export interface Bounds {
  /** Whether something may still fit into what is free. */
  fits(free: Resources): boolean;
  /** Whether an agent with such a backlog may be given more of it. */
  takes(capacity: Resources, backlogLoad: number): boolean;
}

export const boundsOf = (order: readonly ShapeQueue[], prefetch: PrefetchPolicy): Bounds => {
  const least: Record<string, number> = { ...order[0]?.shape.resources };
  let load = 0;
  for (const queue of order) {
    const { resources } = queue.shape;
    for (const name in least) least[name] = Math.min(least[name]!, amountOf(resources, name));
    const head = headOf(queue);
    if (head !== undefined) load = Math.max(load, prefetchLoad(prefetch, expectedMs(head.run, head.group), 1));
  }
  return {
    fits: (free) => {
      for (const name in least) if (least[name]! > amountOf(free, name)) return false;
      return true;
    },
    takes: (capacity, backlogLoad) => (load - backlogLoad) * concurrency(capacity, { resources: least }) >= 0.5,
  };
};
