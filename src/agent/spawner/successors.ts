import type { StartRequest } from "./protocol.ts";

/**
 * Starts that wait for another task to end (native/successors.c is the same in C). If one is dropped while it waits,
 * those behind it take its place.
 */
export const createSuccessors = () => {
  const byAfter = new Map<number, StartRequest[]>();
  const afterOf = new Map<number, number>();
  const take = (after: number): StartRequest[] => {
    const found = byAfter.get(after) ?? [];
    byAfter.delete(after);
    for (const { id } of found) afterOf.delete(id);
    return found;
  };
  const add = (request: StartRequest, after: number): void => {
    afterOf.set(request.id, after);
    byAfter.set(after, [...(byAfter.get(after) ?? []), request]);
  };
  return {
    has: (id: number): boolean => afterOf.has(id),
    add,
    take,
    drop: (id: number): boolean => {
      const after = afterOf.get(id);
      if (after === undefined) return false;
      afterOf.delete(id);
      byAfter.set(
        after,
        (byAfter.get(after) ?? []).filter((request) => request.id !== id),
      );
      for (const heir of take(id)) add(heir, after);
      return true;
    },
  };
};
