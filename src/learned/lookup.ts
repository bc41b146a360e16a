import type { Group } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import { newLanes } from "../core/hash.ts";
import { type RunKeys, identityOf } from "./keys.ts";
import type { Learned } from "./learned.ts";

/** What was learned about one task, one template, one group: milliseconds, -1 where nothing is known. */
export interface Lookup {
  ownMs(of: RunKeys, group: Group, row: Row): number;
  /** Of several tasks; undefined where it is known of less than half of them. */
  ownTimes(of: RunKeys, group: Group, rows: readonly Row[]): number[] | undefined;
  templateMs(number: number, group: Group): number;
  /** One number for a whole group, from `most` of its tasks at most; else its time-request. */
  groupMs(of: RunKeys, group: Group, most: number): number;
}

export const createLookup = ({ identities, templates }: Learned): Lookup => {
  const hash = newLanes();

  const ownMs = (of: RunKeys, group: Group, row: Row): number => {
    identityOf(of, group, row, hash);
    const entry = identities.find(hash.lo, hash.hi);
    return entry < 0 ? -1 : identities.tookMs(entry);
  };

  /** What a template says about one task: of a single task the last time is its own, of an array's the average. */
  const templateMs = (number: number, group: Group): number => {
    const took = templates.get(number)?.took;
    if (took === undefined) return -1;
    return group.spec.items.kind === "one" ? took.last : took.mean;
  };

  const requestMs = ({ spec }: Group): number => (spec.timeRequest === undefined ? -1 : spec.timeRequest * 1000);

  /** The mean over tasks spread evenly over the group; those never seen count as their template says. */
  const sampledMs = (of: RunKeys, group: Group, most: number): number => {
    const like = templateMs(of.numbers[group.index]!, group);
    const count = Math.min(most, group.count);
    let sum = 0;
    let own = 0;
    for (let i = 0; i < count; i += 1) {
      const ms = ownMs(of, group, group.first + Math.floor((i * group.count) / count));
      if (ms >= 0) [sum, own] = [sum + ms, own + 1];
    }
    if (own === 0) return like;
    return like < 0 ? sum / own : (sum + (count - own) * like) / count;
  };

  const groupMs = (of: RunKeys, group: Group, most: number): number => {
    const single = group.spec.items.kind === "one" ? templateMs(of.numbers[group.index]!, group) : -1;
    const ms = single >= 0 ? single : sampledMs(of, group, most);
    return ms >= 0 ? ms : requestMs(group);
  };

  const ownTimes = (of: RunKeys, group: Group, rows: readonly Row[]): number[] | undefined => {
    const known = rows.map((row) => ownMs(of, group, row)).filter((ms) => ms >= 0);
    return known.length > 0 && known.length * 2 >= rows.length ? known : undefined;
  };

  return { ownMs, ownTimes, templateMs, groupMs };
};
