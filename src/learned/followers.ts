import type { Group, Run } from "../core/run.ts";
import type { RunKeys } from "./keys.ts";

/** Groups of runs under way, by the number of their template. */
export interface Followers {
  add(run: Run, of: RunKeys): void;
  remove(run: Run, of: RunKeys): void;
  of(template: number): readonly Followed[];
}

export interface Followed {
  readonly run: Run;
  readonly group: Group;
}

export const createFollowers = (): Followers => {
  const byTemplate = new Map<number, Followed[]>();
  return {
    add: (run, { numbers }) => {
      for (const group of run.groups) {
        const number = numbers[group.index]!;
        const others = byTemplate.get(number);
        if (others === undefined) byTemplate.set(number, [{ run, group }]);
        else others.push({ run, group });
      }
    },
    remove: (run, { numbers }) => {
      for (const number of new Set(numbers)) {
        const others = byTemplate.get(number)?.filter((each) => each.run !== run) ?? [];
        if (others.length === 0) byTemplate.delete(number);
        else byTemplate.set(number, others);
      }
    },
    of: (number) => byTemplate.get(number) ?? [],
  };
};
