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
      /** Those that other runs have too. */
      const shared = new Set<number>();
      for (const number of numbers) {
        const all = byTemplate.get(number);
        if (all === undefined || shared.has(number)) continue;
        // a graph has thousands of templates of its own
        if (all.every((each) => each.run === run)) byTemplate.delete(number);
        else {
          shared.add(number);
          const others = all.filter((each) => each.run !== run);
          byTemplate.set(number, others);
        }
      }
    },
    of: (number) => byTemplate.get(number) ?? [],
  };
};
