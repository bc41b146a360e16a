// Puts a summary of the last run between the markers of docs/performance.md.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isBusy, machineText } from "./machine.mjs";
import { cpuLine, rowsOf } from "./report.mjs";
import { root } from "./slipway.mjs";

const BEGIN = "<!-- bench: written by `npm run bench -- --write-docs` -->";
const END = "<!-- /bench -->";

const escaped = (cell) => cell.replaceAll("|", "\\|");
const line = (cells) => `| ${cells.map(escaped).join(" | ")} |`;

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
  if (cpu !== undefined) parts.push("", `${cpu}.`);
  for (const [key, why] of Object.entries(found.skipped)) parts.push("", `Skipped: ${key}: ${why}.`);
  return parts.join("\n");
};

export const section = ({ machine, rounds, quick, experiments }) =>
  [
    `On ${machineText(machine)}; ${rounds} rounds, ${machine.at.slice(0, 10)}.`,
    ...(isBusy(machine)
      ? [`The machine was not quiet (load ${machine.loadAtStart}): do not quote these numbers.`]
      : []),
    ...(quick ? ["A quick run of few tasks: do not quote these numbers."] : []),
    ...experiments.map(sectionOf),
  ].join("\n\n");

export const withSection = (text, body) => {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md lacks the markers ${BEGIN} … ${END}`);
  return `${text.slice(0, from + BEGIN.length)}\n\n${body}\n\n${text.slice(to)}`;
};

export const writeSection = (results) => {
  const path = join(root, "docs", "performance.md");
  writeFileSync(path, withSection(readFileSync(path, "utf8"), section(results)));
  spawnSync(join(root, "node_modules", ".bin", "oxfmt"), [path], { cwd: root, stdio: "ignore" });
  return path;
};
