// Puts a summary of results between the markers of docs/performance.md, and their curves into docs/growth.svg. What was not
// measured stays there as it was.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { machineText } from "./machine.mjs";
import { cpuLine, rowsOf } from "./report.mjs";
import { root } from "./slipway.mjs";
import { chart } from "./svg.mjs";

const BEGIN = "<!-- bench: written by `npm run bench -- --write-docs` -->";
const END = "<!-- /bench -->";
const CURVES = { growth: "tasks in a run", "growth-agents": "connected agents", "growth-shapes": "distinct shapes" };

const escaped = (cell) => cell.replaceAll("|", "\\|");
const line = (cells) => `| ${cells.map(escaped).join(" | ")} |`;

/** When and how it was measured: results of several days and commits may be side by side. */
const measuredText = ({ at, commit, rounds, size, load }, elsewhere) => {
  const words = [`${rounds} round${rounds === 1 ? "" : "s"}, ${at.slice(0, 10)}, commit ${commit}.`];
  if (load > 0.5) words.push(`The machine was not quiet (load ${load}): do not quote these numbers.`);
  if (size !== "full") words.push("A short run of few tasks: do not quote these numbers.");
  if (elsewhere !== undefined) words.push(`On another machine: ${elsewhere}.`);
  return words.join(" ");
};

/** `elsewhere`: the machine, where it is not the one named at the top. */
const sectionOf = (found, elsewhere) => {
  const head = [found.unit, "median", "spread", "Slipway ÷ it", "wanted"];
  const parts = [
    `### ${found.name}: ${found.title}`,
    "",
    line(head),
    line(head.map((_, i) => (i > 0 && i < 4 ? "--:" : "---"))),
    ...rowsOf(found).map(([who, ...rest]) => line([who, ...rest.map((cell) => cell.replace(/^wanted /, ""))])),
  ];
  const cpu = cpuLine(found);
  parts.push("", [...(cpu === undefined ? [] : [`${cpu}.`]), measuredText(found.measured, elsewhere)].join(" "));
  for (const [key, why] of Object.entries(found.skipped)) parts.push("", `Skipped: ${key}: ${why}.`);
  return parts.join("\n");
};

/** Rows of the table of targets. */
const verdictsOf = (experiments) =>
  experiments.flatMap(({ name, labels, unit, targets }) =>
    targets.map(({ of, value, atLeast, atMost, met }) => {
      const wanted = `${atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`}${of === undefined ? ` ${unit}` : ""}`;
      const what = of === undefined ? name : `${name} ÷ ${labels[of] ?? of}`;
      const found = value === null ? "not measured" : Number(value.toPrecision(3)).toLocaleString("en");
      return line([what, wanted, found, met === null ? "" : met ? "met" : "**missed**"]);
    }),
  );

/** Every target in one table: what we want, and what came out. */
const targetsTable = (rows) =>
  ["### Targets", "", line(["what", "wanted", "measured", ""]), line(["---", "---", "--:", "---"]), ...rows].join("\n");

const curvesOf = (experiments) =>
  experiments
    .filter(({ name, curve }) => name in CURVES && curve !== undefined)
    .map(({ name, curve }) => ({ name: CURVES[name], points: curve }));

const PICTURE = "![Cost of a null task as its surroundings grow](growth.svg)";
const CORES_PICTURE = "![Tasks a second on more and more cores, as a ratio to a C loop](process-cores.svg)";
const PICTURES = [PICTURE, CORES_PICTURE];

const coresCurves = (experiments) => experiments.find(({ name }) => name === "process-cores")?.curves ?? [];

/** What an earlier bench wrote: the machine, and by experiment the rows of targets and the section. */
const readSection = (body) => {
  const [head, ...parts] = body
    .split(/^### /m)
    .map((part) => PICTURES.reduce((text, picture) => text.replaceAll(picture, ""), part).trim());
  const targets = parts.find((part) => part.startsWith("Targets\n")) ?? "";
  const rows = targets.split("\n").filter((row) => row.startsWith("|"));
  return {
    head,
    rows: rows.slice(2).map((row) => ({ name: row.slice(1).trim().split(" ")[0], row })),
    sections: parts
      .filter((part) => part !== targets)
      .map((part) => ({ name: part.slice(0, part.indexOf(":")), text: `### ${part}` })),
  };
};

/** Those of before, each with its newer one in its place, then those that are new. */
const renewed = (before, now, nameOf) => {
  const names = new Set(now.map(nameOf));
  const taken = new Set();
  const kept = before.flatMap((each) => {
    const name = nameOf(each);
    if (!names.has(name)) return [each];
    if (taken.has(name)) return [];
    taken.add(name);
    return now.filter((other) => nameOf(other) === name);
  });
  return [...kept, ...now.filter((each) => !taken.has(nameOf(each)))];
};

/** The section with these results; `before` is the one that is there, if it has others that stay. */
export const section = ({ machine, experiments }, before = "") => {
  const old = readSection(before);
  const measured = new Set(experiments.map(({ name }) => name));
  const isPart = old.sections.some(({ name }) => !measured.has(name));
  const here = `On ${machineText(machine)}.`;
  const head = isPart ? old.head : here;
  const elsewhere = head === here ? undefined : machineText(machine);
  const rows = experiments.flatMap((found) => verdictsOf([found]).map((row) => ({ name: found.name, row })));
  const sections = experiments.map((found) => ({ name: found.name, text: sectionOf(found, elsewhere) }));
  const nameOf = ({ name }) => name;
  const drawn = { [PICTURE]: curvesOf(experiments), [CORES_PICTURE]: coresCurves(experiments) };
  const pictures = PICTURES.filter((each) => drawn[each].length > 0 || (isPart && before.includes(each)));
  return [
    head,
    targetsTable((isPart ? renewed(old.rows, rows, nameOf) : rows).map(({ row }) => row)),
    ...pictures,
    ...(isPart ? renewed(old.sections, sections, nameOf) : sections).map(({ text }) => text),
  ].join("\n\n");
};

export const withSection = (text, results) => {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks the markers ${BEGIN} … ${END}`);
  const inside = from + BEGIN.length;
  return `${text.slice(0, inside)}\n\n${section(results, text.slice(inside, to).trim())}\n\n${text.slice(to)}`;
};

export const growthChart = (curves) =>
  chart({
    title: "Cost of a null task as its surroundings grow",
    x: "how many (logarithmic)",
    y: "µs a task (logarithmic)",
    curves,
  });

export const coresChart = (curves) => {
  const all = [...new Set(curves.flatMap(({ points }) => points.map(([cores]) => cores)))].toSorted((a, b) => a - b);
  const lowest = Math.min(...curves.flatMap(({ points }) => points.map(([, ratio]) => ratio)));
  return chart({
    title: "/bin/true on more and more cores, as a ratio to a C loop of the same width",
    x: "cores (logarithmic)",
    y: "ratio (logarithmic)",
    curves,
    xTicks: all.length > 1 ? all : [all[0], all[0] * 2],
    yTicks: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5].filter((tick, i, ticks) => (ticks[i + 1] ?? Infinity) > lowest),
  });
};

export const writeSection = (results) => {
  const path = join(root, "docs", "performance.md");
  writeFileSync(path, withSection(readFileSync(path, "utf8"), results));
  spawnSync(join(root, "node_modules", ".bin", "oxfmt"), [path], { cwd: root, stdio: "ignore" });
  const written = [path];
  const draw = (name, curves, drawing) => {
    if (curves.length === 0) return;
    written.push(join(root, "docs", name));
    writeFileSync(written.at(-1), drawing(curves));
  };
  draw("growth.svg", curvesOf(results.experiments), growthChart);
  draw("process-cores.svg", coresCurves(results.experiments), coresChart);
  return written;
};
