import type { OverviewView } from "../../api/overview.ts";
import type { RunView } from "../../api/schemas.ts";
import { isFinalRun } from "../../client/outcome.ts";
import { formatResource } from "../../core/quantities.ts";
import { toUnits } from "../../core/resources.ts";
import { bar, progressLine } from "./progress.ts";
import { type Style, stateColored } from "./style.ts";
import { table } from "./table.ts";
import { clipped, columnsOf, count, duration, padded, perSecond, printable, secondsBetween } from "./text.ts";

/** The overview as a screen: never wider nor higher than it is given; what does not fit is counted. */
export interface TopScreen {
  readonly width: number;
  /** Infinity: all of it, to keep. */
  readonly height: number;
  readonly style: Style;
  readonly unicode: boolean;
  /** The server's clock. */
  readonly now: number;
  /** Tasks that ended, each second; undefined while unknown. */
  readonly rate: number | undefined;
  /** What is wrong at the moment. */
  readonly trouble?: string | undefined;
}

const SHOWN = ["cpus", "gpus", "mem"];
const LEAST_BAR = 10;

const headLine = ({ server }: OverviewView, { width, style, now, trouble }: TopScreen): string => {
  const up = secondsBetween(server.started, now);
  const left = `slipway  ${printable(server.host)}${up === undefined ? "" : `  up ${duration(up)}`}`;
  const state = trouble ?? `${server.state}${server.detail === null ? "" : `: ${server.detail}`}`;
  const right = clipped(printable(state), Math.max(0, width - columnsOf(left) - 2));
  const paint = trouble === undefined && server.state === "running" ? style.green : style.red;
  return `${style.bold(left)}${" ".repeat(Math.max(2, width - columnsOf(left) - columnsOf(right)))}${paint(right)}`;
};

/** Parts side by side, as many as fit. */
const joined = (
  parts: readonly { readonly text: string; readonly paint?: (text: string) => string }[],
  width: number,
): string => {
  let used = 0;
  const kept: string[] = [];
  for (const { text, paint = (plain: string) => plain } of parts) {
    const columns = columnsOf(text) + (kept.length === 0 ? 0 : 2);
    if (used + columns > width) break;
    used += columns;
    kept.push(paint(text));
  }
  return kept.join("  ");
};

const tasksLine = ({ tasks, ended }: OverviewView, { width, style, rate }: TopScreen): string =>
  joined(
    [
      { text: `${count(tasks.running)} running`, paint: style.cyan },
      { text: `${count(tasks.ready + tasks.starting + tasks.staging)} ready` },
      { text: `${count(tasks.waiting)} waiting` },
      { text: `${rate === undefined ? "-" : perSecond(rate)} tasks/s`, paint: style.bold },
      { text: `${count(ended.failed)} failed`, paint: ended.failed > 0 ? style.red : style.dim },
      { text: `${count(ended.done)} done`, paint: style.green },
      { text: `${count(ended.cancelled)} cancelled`, paint: style.dim },
    ],
    width,
  );

const useLines = ({ resources }: OverviewView, { width, unicode, style }: TopScreen): string[] => {
  const shown = resources.filter(({ resource, total }) => SHOWN.includes(resource) && total > 0);
  const names = shown.map(({ cluster, resource }) => clipped(printable(`${cluster} ${resource}`), 24));
  const amounts = shown.map(({ resource, used, total }) => {
    const text = (value: number): string => formatResource(resource, toUnits(resource, value));
    return `${text(used)} of ${text(total)}, ${Math.round((100 * used) / total)} %`;
  });
  const most = (texts: readonly string[]): number => texts.reduce((sum, text) => Math.max(sum, columnsOf(text)), 0);
  const room = Math.min(40, width - most(names) - most(amounts) - 6);
  const edge = unicode ? "▕▏" : "[]";
  return shown.map(({ used, total }, at) => {
    const drawn = room < LEAST_BAR ? "" : `${edge[0]}${style.cyan(bar(used / total, room, unicode))}${edge[1]}  `;
    return `${padded(names[at]!, most(names))}  ${drawn}${clipped(amounts[at]!, Math.max(0, width - most(names) - 2))}`;
  });
};

const troubleOf = ({ problem, failure }: OverviewView["fleets"][number]): string => problem ?? failure ?? "";

const fleetLines = ({ fleets }: OverviewView, { width, now }: TopScreen): string[] =>
  fleets.length === 0
    ? []
    : table(
        fleets,
        [
          { title: "FLEET", value: ({ cluster, queue }) => `${cluster}/${queue}`, shrinksTo: 12 },
          { title: "ACTIVE", value: ({ active }) => String(active), right: true },
          { title: "PENDING", value: ({ pending }) => String(pending), right: true },
          { title: "MAX", value: ({ max }) => String(max), right: true },
          { title: "WAITING", value: ({ waiting }) => count(waiting), right: true },
          {
            title: "LEFT",
            value: ({ ends }) => (ends === null ? "-" : duration(Math.max(0, (Date.parse(ends) - now) / 1000))),
            right: true,
          },
          ...(fleets.every(({ problem, failure }) => problem === null && failure === null)
            ? []
            : [{ title: "PROBLEM", value: troubleOf, shrinksTo: 8 }]),
        ],
        width,
      ).split("\n");

const endedTable = (runs: readonly RunView[], style: Style, width: number): string =>
  table(
    runs,
    [
      { title: "RUN", value: ({ id }) => String(id), right: true },
      { title: "NAME", value: ({ name }) => name, shrinksTo: 12 },
      {
        title: "STATE",
        value: ({ state }) => state,
        paint: (text, { state }) => text.replace(state, stateColored(state, style)),
      },
      { title: "TASKS", value: ({ total }) => count(total), right: true },
      { title: "FAILED", value: ({ counts }) => count(counts["FAILED"] ?? 0), right: true },
      {
        title: "TIME",
        value: ({ started, finished }) => {
          const seconds = secondsBetween(started, finished);
          return seconds === undefined ? "-" : duration(seconds);
        },
        right: true,
      },
    ],
    width,
  );

const runLines = ({ runs }: OverviewView, { width, unicode, style }: TopScreen): string[] => {
  const live = runs.filter((run) => !isFinalRun(run));
  const ended = runs.filter(isFinalRun);
  return [
    ...live.map((run) => progressLine(run, { width, unicode, style, rate: undefined })),
    ...(ended.length === 0 ? [] : ["", ...endedTable(ended, style, width).split("\n")]),
  ];
};

/** As many lines as there is room for; the last says how many more there are. */
const within = (lines: readonly string[], most: number, style: Style): string[] => {
  if (lines.length <= most) return [...lines];
  if (most < 1) return [];
  return [...lines.slice(0, most - 1), style.dim(`and ${count(lines.length - most + 1)} more lines`)];
};

// eslint-disable-next-line no-control-regex -- colour codes begin with one
const CODE = /(\u001b\[\d+m)/;

/** No wider than the terminal, colour codes left whole: a line that wraps would move all others. */
const cut = (line: string, width: number): string => {
  if (columnsOf(line) <= width) return line;
  let left = width;
  return line
    .split(CODE)
    .map((part) => {
      if (CODE.test(part)) return part;
      const kept = clipped(part, left, "");
      left -= columnsOf(kept);
      return kept;
    })
    .join("");
};

export const topScreen = (overview: OverviewView, screen: TopScreen): string[] => {
  const { height, style } = screen;
  const head = [headLine(overview, screen), tasksLine(overview, screen)];
  const use = useLines(overview, screen);
  const fleets = fleetLines(overview, screen);
  const runs = runLines(overview, screen);
  const fixed = head.length + (runs.length === 0 ? 0 : 2);
  const lines = [...head, ...within(use, Math.max(0, Math.min(8, height - fixed - 3)), style)];
  if (fleets.length > 0) lines.push("", ...within(fleets, Math.max(0, Math.min(10, height - lines.length - 3)), style));
  lines.push("", ...(runs.length === 0 ? ["no runs"] : within(runs, height - lines.length - 1, style)));
  const shown = lines.slice(0, height === Infinity ? undefined : Math.max(1, height));
  return shown.map((line) => cut(line, screen.width));
};
