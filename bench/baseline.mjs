// What was once measured on a quiet machine, and may not get worse: bench/baseline.json. `--guard` compares, before a
// release; `--write-baseline` puts what was just measured in the place of what the file has. Ratios to the machine's limit
// travel between machines; other numbers are compared only on the machine that they are from.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { median, quantile } from "./statistics.mjs";
import { root } from "./slipway.mjs";

export const BASELINE = join(root, "bench", "baseline.json");

/** Round by round, what is guarded: the ratio to the limit if there is one, else the number itself. */
const guarded = ({ name, better, unit, values, limitKey }) => ({
  name,
  better,
  ...(limitKey === undefined
    ? { of: unit, rounds: values.ours }
    : { of: `ratio to ${limitKey}`, rounds: values.ours.map((value, i) => value / values[limitKey][i]) }),
});

const isRatio = ({ of }) => of.startsWith("ratio to ");
const machineOf = ({ cpu, cores }) => `${cores} × ${cpu}`;

/** The quartile on the worse side: what one round in four was at least as bad as. */
const worseQuartile = ({ better, rounds }) => quantile(rounds, better === "less" ? 0.75 : 0.25);

export const readBaseline = (path = BASELINE) =>
  existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { entries: {} };

/** The baseline with these results in it. */
export const withResults = (baseline, { machine, experiments }) => {
  const entries = { ...baseline.entries };
  for (const found of experiments) {
    const each = guarded(found);
    entries[each.name] = {
      of: each.of,
      better: each.better,
      median: median(each.rounds),
      worseQuartile: worseQuartile(each),
      rounds: each.rounds.length,
      machine: machineOf(machine),
      load: found.measured.load,
      commit: found.measured.commit,
      at: found.measured.at.slice(0, 10),
    };
  }
  return { entries: Object.fromEntries(Object.entries(entries).toSorted(([a], [b]) => (a < b ? -1 : 1))) };
};

export const writeBaseline = (results, path = BASELINE) =>
  writeFileSync(path, `${JSON.stringify(withResults(readBaseline(path), results), null, 2)}\n`);

/** One line for each experiment: better, worse than the quartile, or not comparable and why. */
export const compare = (baseline, { machine, experiments }) =>
  experiments.map((found) => {
    const each = guarded(found);
    const entry = baseline.entries[each.name];
    const now = median(each.rounds);
    const line = (verdict, worse = false) => ({ name: each.name, worse, text: `${each.name}: ${verdict}` });
    if (entry === undefined) return line("not in the baseline");
    if (entry.of !== each.of) return line(`the baseline has ${entry.of}, this is ${each.of}`);
    if (!isRatio(each) && entry.machine !== machineOf(machine)) return line(`the baseline is of ${entry.machine}`);
    const worse = each.better === "less" ? now > entry.worseQuartile : now < entry.worseQuartile;
    const than = `${worse ? "WORSE than" : "within"} the baseline's quartile, ${entry.worseQuartile.toPrecision(3)}`;
    return line(`${now.toPrecision(3)} (${each.of}), ${than} (median ${entry.median.toPrecision(3)})`, worse);
  });
