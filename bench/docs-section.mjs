// Puts a summary of results between the markers of docs/performance.md, and their curves into docs/growth.svg.
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
const measuredText = ({ at, commit, rounds, size, load }) => {
  const words = [`${rounds} round${rounds === 1 ? "" : "s"}, ${at.slice(0, 10)}, commit ${commit}.`];
  if (load > 0.5) words.push(`The machine was not quiet (load ${load}): do not quote these numbers.`);
  if (size !== "full") words.push("A short run of few tasks: do not quote these numbers.");
  return words.join(" ");
};

const sectionOf = (found) => {
  const head = [found.unit, "median", "spread", "Slipway ÷ it", "wanted"];
  const parts = [
    `### ${found.name}: ${found.title}`,
    "",
    line(head),
    line(head.map((_, i) => (i > 0 && i < 4 ? "--:" : "---"))),
    ...rowsOf(found).map(([who, ...rest]) => line([who, ...rest.map((cell) => cell.replace(/^wanted /, ""))])),
  ];
  const cpu = cpuLine(found);
  parts.push("", [...(cpu === undefined ? [] : [`${cpu}.`]), measuredText(found.measured)].join(" "));
  for (const [key, why] of Object.entries(found.skipped)) parts.push("", `Skipped: ${key}: ${why}.`);
  return parts.join("\n");
};

/** Every target in one table: what we want, and what came out. */
const verdicts = (experiments) => {
  const judged = experiments.flatMap(({ name, labels, unit, targets }) =>
    targets.map(({ of, value, atLeast, atMost, met }) => {
      const wanted = `${atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`}${of === undefined ? ` ${unit}` : ""}`;
      const what = of === undefined ? name : `${name} ÷ ${labels[of] ?? of}`;
      const found = value === null ? "not measured" : Number(value.toPrecision(3)).toLocaleString("en");
      return line([what, wanted, found, met === null ? "" : met ? "met" : "**missed**"]);
    }),
  );
  return [
    "### Targets",
    "",
    line(["what", "wanted", "measured", ""]),
    line(["---", "---", "--:", "---"]),
    ...judged,
  ].join("\n");
};

const curvesOf = (experiments) =>
  experiments
    .filter(({ name, curve }) => name in CURVES && curve !== undefined)
    .map(({ name, curve }) => ({ name: CURVES[name], points: curve }));

export const section = ({ machine, experiments }) =>
  [
    `On ${machineText(machine)}.`,
    verdicts(experiments),
    ...(curvesOf(experiments).length > 0 ? ["![Cost of a null task as its surroundings grow](growth.svg)"] : []),
    ...experiments.map(sectionOf),
  ].join("\n\n");

export const withSection = (text, body) => {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks the markers ${BEGIN} … ${END}`);
  return `${text.slice(0, from + BEGIN.length)}\n\n${body}\n\n${text.slice(to)}`;
};

export const growthChart = (curves) =>
  chart({
    title: "Cost of a null task as its surroundings grow",
    x: "how many (logarithmic)",
    y: "µs a task (logarithmic)",
    curves,
  });

export const writeSection = (results) => {
  const path = join(root, "docs", "performance.md");
  writeFileSync(path, withSection(readFileSync(path, "utf8"), section(results)));
  spawnSync(join(root, "node_modules", ".bin", "oxfmt"), [path], { cwd: root, stdio: "ignore" });
  const curves = curvesOf(results.experiments);
  if (curves.length === 0) return [path];
  const drawing = join(root, "docs", "growth.svg");
  writeFileSync(drawing, growthChart(curves));
  return [path, drawing];
};
