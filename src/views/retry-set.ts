import type { TaskView } from "../api/schemas.ts";
import { fromUnits } from "../core/resources.ts";
import type { RetrySet } from "../core/retry-set.ts";

/** What `retry --set` gave, as people read it. */
export const setView = (set: RetrySet | undefined): NonNullable<TaskView["set"]> | null => {
  if (set === undefined) return null;
  const { resources, ...times } = set;
  if (resources === undefined) return times;
  const amounts = Object.entries(resources).map(([name, units]) => [name, fromUnits(name, units)]);
  return { resources: Object.fromEntries(amounts) as Record<string, number>, ...times };
};
