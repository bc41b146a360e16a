import type { EfficiencyView } from "../api/schemas.ts";
import { peakOf } from "../core/peak.ts";
import { amountOf, fromUnits } from "../core/resources.ts";
import { type Group, type Run, shapeOfRow } from "../core/run.ts";
import { Task } from "../core/states.ts";
import { Flag, peek } from "../core/table.ts";
import type { Row } from "../core/ids.ts";

/** What the tasks of a run that ended well asked for, what they used, and what would have done. */

/** Mean and largest of what is known. */
const createTally = () => {
  let [known, sum, largest] = [0, 0, 0];
  return {
    add: (value: number): void => {
      known += 1;
      sum += value;
      largest = Math.max(largest, value);
    },
    get mean() {
      return known === 0 ? null : sum / known;
    },
    get largest() {
      return known === 0 ? null : largest;
    },
  };
};

const doneRows = function* ({ table }: Run, { first, count }: Group): Generator<Row> {
  for (let row = first; row < first + count;) {
    const page = peek(table, row);
    const end = Math.min(first + count, (Math.floor(row / table.pageRows) + 1) * table.pageRows);
    if (page === undefined) row = end;
    for (; row < end; row += 1) {
      const slot = row % table.pageRows;
      if (page!.state[slot] === Task.DONE && (page!.flags[slot]! & Flag.SKIPPED) === 0) yield row;
    }
  }
};

const MIB = 2 ** 20;
/** To the hundredth. */
const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value * 100) / 100);

/** Whole cores for each rank; less than one, as it was asked for, where that did. */
const enoughCores = (used: number, asked: number): number | null => {
  if (used === 0) return null;
  return used <= asked ? Math.min(Math.ceil(used), asked) : Math.ceil(used);
};

const groupEfficiency = (run: Run, group: Group): EfficiencyView["groups"][number] => {
  const { spec, cpu, memory } = group;
  const ranks = spec.ranks?.count ?? 1;
  const [asked, mem, peak, time, took] = Array.from({ length: 5 }, createTally) as ReturnType<typeof createTally>[];
  let tasks = 0;
  for (const row of doneRows(run, group)) {
    const page = peek(run.table, row)!;
    const slot = row % run.table.pageRows;
    const { resources, timeRequest } = shapeOfRow(group, row);
    const bytes = amountOf(resources, "mem");
    const seen = peakOf(run, row);
    tasks += 1;
    asked!.add(fromUnits("cpus", amountOf(resources, "cpus")) * ranks);
    if (bytes > 0) mem!.add(bytes);
    if (seen !== undefined) peak!.add(seen.bytes);
    if (timeRequest > 0) time!.add(timeRequest);
    took!.add(Math.max(0, page.finished[slot]! - page.started[slot]!) / 1000);
  }
  return {
    name: spec.name,
    tasks,
    ranks,
    cores: {
      requested: rounded(asked!.mean),
      used: cpu.tookMs > 0 ? rounded(cpu.cpuMs / cpu.tookMs) : null,
      enough: enoughCores(cpu.mostCores / ranks, (asked!.largest ?? 0) / ranks),
    },
    memory: {
      requested: mem!.mean === null ? null : Math.round(mem!.mean),
      used: peak!.mean === null ? null : Math.round(peak!.mean),
      enough: peak!.largest === null ? null : Math.ceil(peak!.largest / MIB) * MIB,
    },
    time: {
      requested: rounded(time!.mean),
      used: rounded(took!.mean),
      enough: took!.largest === null ? null : Math.ceil(took!.largest),
    },
    killed: [...memory.values()].reduce((sum, { kills }) => sum + kills, 0),
  };
};

/** At most this many groups are shown; a file of 100,000 entries has as many. */
const MOST_GROUPS = 1000;

export const efficiencyView = (run: Run): EfficiencyView => ({
  run: run.id,
  groups: run.groups.slice(0, MOST_GROUPS).map((group) => groupEfficiency(run, group)),
  groupsLeftOut: Math.max(0, run.groups.length - MOST_GROUPS),
});
