// What was measured, as a table for people, as JSON for programs, and as a section of docs/performance.md.
import { ratios, summary } from "./statistics.mjs";

const number = (value) => {
  if (value >= 1000) return Math.round(value).toLocaleString("en");
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
};
const spread = ({ min, max }) => `${number(min)}–${number(max)}`;

/** A target, either a ratio (`of` another contender) or a number, and whether the median meets it. */
const judge = (experiment, wish) => {
  const other = experiment.others.find(({ key }) => key === wish.of);
  if (wish.of !== undefined && other === undefined)
    return { ...wish, value: null, met: null, text: `not judged: ${wish.of} was skipped` };
  const value = (other === undefined ? summary(experiment.ours) : ratios(experiment.ours, other.values)).median;
  const met = wish.atLeast === undefined ? value <= wish.atMost : value >= wish.atLeast;
  const sign = wish.atLeast === undefined ? `≤ ${number(wish.atMost)}` : `≥ ${number(wish.atLeast)}`;
  return { ...wish, value, met, text: `wanted ${sign}: ${met ? "met" : "missed"}` };
};

/** The numbers of an experiment in the shape that `bench --json` prints, with more fields than the contract has. */
export const document = (experiment) => {
  const find = (key) => experiment.others.find((other) => other.key === key);
  const limit = experiment.limit === undefined ? undefined : find(experiment.limit);
  const targets = experiment.wanted.map((wish) => judge(experiment, wish));
  const [first] = experiment.wanted;
  const ours = summary(experiment.ours);
  const ratioTo = Object.fromEntries(
    experiment.others.map(({ key, values }) => [key, ratios(experiment.ours, values)]),
  );
  return {
    name: experiment.name,
    title: experiment.title,
    unit: experiment.unit,
    better: experiment.better,
    ours: ours.median,
    ...(limit === undefined ? {} : { limit: summary(limit.values).median }),
    peers: Object.fromEntries(
      experiment.others.filter(({ role }) => role === "peer").map(({ key, values }) => [key, summary(values).median]),
    ),
    // Relative to the limit or, without one, to the target.
    ratio: limit === undefined ? wishRatio(ours.median, first) : ratioTo[experiment.limit].median,
    rounds: experiment.ours.length,
    spread: { ours, ...Object.fromEntries(experiment.others.map(({ key, values }) => [key, summary(values)])) },
    labels: Object.fromEntries(experiment.others.map(({ key, label }) => [key, label])),
    ...(limit === undefined ? {} : { limitKey: experiment.limit }),
    parts: experiment.others.filter(({ role }) => role === "part").map(({ key }) => key),
    ratios: ratioTo,
    targets,
    skipped: experiment.skipped,
    ...(experiment.curves === undefined ? {} : { curves: experiment.curves }),
    ...(experiment.curve === undefined ? {} : { curve: experiment.curve }),
    ...(experiment.cpu === undefined ? {} : { cpuMicrosecondsPerTask: experiment.cpu }),
    values: { ours: experiment.ours, ...Object.fromEntries(experiment.others.map(({ key, values }) => [key, values])) },
  };
};

const PRINTED = ["name", "unit", "ours", "limit", "peers", "ratio", "title", "rounds", "spread", "targets", "skipped"];

/** What `--json` prints of it: the contract's fields and what judges them. The file of results has the rest. */
export const printed = (found) =>
  Object.fromEntries(PRINTED.filter((key) => key in found).map((key) => [key, found[key]]));

const wishRatio = (value, wish) =>
  wish === undefined || wish.of !== undefined ? null : value / (wish.atLeast ?? wish.atMost);

/** Rows: who, median, spread, our ratio to it, verdict. */
export const rowsOf = (found) => {
  const verdict = (of) =>
    found.targets
      .filter((target) => target.of === of)
      .map(({ text }) => text)
      .join("; ");
  const rows = [["Slipway", number(found.ours), spread(found.spread.ours), "", verdict(undefined)]];
  for (const [key, label] of Object.entries(found.labels)) {
    const { median, min, max } = found.ratios[key];
    // A part of our own number, or a number beside it, is not a contender.
    const ratio = found.parts.includes(key) ? "" : `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;
    rows.push([label, number(found.spread[key].median), spread(found.spread[key]), ratio, verdict(key)]);
  }
  return rows;
};

export const HEAD = (found) => [`${found.name}: ${found.unit}`, "median", "spread", "Slipway ÷ it", ""];

const WORDS = { server: "server", agent: "agent", spawner: "spawner", tasks: "the tasks", command: "the command" };

export const cpuLine = (found) => {
  if (found.cpuMicrosecondsPerTask === undefined) return undefined;
  const parts = Object.entries(found.cpuMicrosecondsPerTask).map(
    ([key, { median }]) => `${WORDS[key] ?? key} ${median.toFixed(median < 1 ? 2 : median < 10 ? 1 : 0)}`,
  );
  return `CPU µs a task: ${parts.join(", ")}`;
};

const aligned = (rows) => {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i > 0 && i < 4 ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join("  ")
      .trimEnd(),
  );
};

/** The table of one experiment for a terminal. */
export const tableOf = (found) => {
  const lines = [`${found.title} (${found.rounds} rounds)`, ...aligned([HEAD(found), ...rowsOf(found)])];
  const cpu = cpuLine(found);
  if (cpu !== undefined) lines.push(cpu);
  for (const { of, text } of found.targets.filter(({ met }) => met === null)) lines.push(`${of}: ${text}`);
  for (const [key, why] of Object.entries(found.skipped)) lines.push(`skipped: ${key}: ${why}`);
  return lines.join("\n");
};
