import type { WrapView as WrapFleet } from "../../api/schemas.ts";
import { formatSize } from "../../core/quantities.ts";
import type { WrapView } from "../../wrap/holder/registry.ts";
import type { WrapPilot } from "../wraps-here.ts";
import { stateColumn, type Style } from "./style.ts";
import { facts, table } from "./table.ts";
import { count, duration, plural, printable, secondsBetween } from "./text.ts";

const stateText = (state: WrapView["state"], style: Style): string =>
  state === "running" ? style.green(state) : state === "lost" ? style.red(state) : state;

const ageOf = (wrap: WrapView, now: number): string => {
  const seconds = secondsBetween(wrap.started, now);
  return seconds === undefined ? "-" : duration(seconds);
};

export const wrapsTable = (wraps: readonly WrapView[], style: Style, now: number, width?: number): string =>
  table(
    wraps,
    [
      { title: "ID", value: (wrap) => wrap.id },
      { title: "CLUSTER", value: (wrap) => wrap.target, shrinksTo: 12 },
      {
        title: "STATE",
        value: (wrap) => wrap.state,
        paint: (text, wrap) => text.replace(wrap.state, stateText(wrap.state, style)),
      },
      { title: "ADDRESS", value: (wrap) => wrap.head?.address ?? "-" },
      { title: "WORKERS", value: (wrap) => count(wrap.workers?.length ?? 0), right: true },
      { title: "WORK", value: (wrap) => count(wrap.work ?? 0), right: true },
      { title: "CLIENTS", value: (wrap) => count(wrap.clients ?? 0), right: true },
      { title: "AGE", value: (wrap) => ageOf(wrap, now), right: true },
      { title: "PROBLEM", value: (wrap) => wrap.problem ?? "", shrinksTo: 12 },
    ],
    width,
  );

/** ` (3 processing, 7 queued)`. */
const tasksText = (tasks: WrapFleet["tasks"]): string => {
  const some = Object.entries(tasks).filter(([, amount]) => amount > 0);
  return some.length === 0
    ? ""
    : ` (${some.map(([state, amount]) => `${count(amount)} ${printable(state)}`).join(", ")})`;
};

/** `410M of 2G`. */
export const memoryText = ({ used, limit }: WrapFleet["memory"]): string =>
  limit === 0 ? formatSize(used) : `${formatSize(used)} of ${formatSize(limit)}`;

/** Dask clusters as fleets. */
export const wrapFleets = (wraps: readonly WrapFleet[], style: Style, width?: number): string =>
  table(
    wraps,
    [
      { title: "WRAP", value: (wrap) => wrap.id },
      { title: "CLUSTER", value: (wrap) => wrap.target, shrinksTo: 12 },
      {
        title: "STATE",
        value: (wrap) => wrap.state,
        paint: (text, wrap) => text.replace(wrap.state, stateText(wrap.state, style)),
      },
      {
        title: "WORKERS",
        value: ({ workers, wanted }) => `${count(workers.length)} of ${count(Math.max(wanted, workers.length))}`,
        right: true,
      },
      { title: "MAX", value: (wrap) => count(wrap.maximum), right: true },
      { title: "MEMORY", value: (wrap) => (wrap.workers.length === 0 ? "-" : memoryText(wrap.memory)), right: true },
      { title: "TASKS", value: (wrap) => count(wrap.work), right: true },
      { title: "CLIENTS", value: (wrap) => count(wrap.clients), right: true },
      { title: "DASHBOARD", value: (wrap) => wrap.dashboard ?? "-" },
      { title: "PROBLEM", value: (wrap) => wrap.problem ?? "", shrinksTo: 12 },
    ],
    width,
  );

/** What brings workers to Dask clusters. */
export const wrapPilotsTable = (pilots: readonly WrapPilot[], style: Style, width?: number): string =>
  table(
    pilots,
    [
      { title: "PILOT", value: (pilot) => pilot.id },
      { title: "CLUSTER", value: (pilot) => pilot.cluster, shrinksTo: 10 },
      { title: "QUEUE", value: (pilot) => pilot.queue || "-", shrinksTo: 8 },
      stateColumn(style),
      { title: "JOB", value: (pilot) => pilot.nativeId ?? "-" },
      { title: "WORKERS", value: (pilot) => count(pilot.workers), right: true },
      { title: "REASON", value: (pilot) => pilot.waiting ?? pilot.reason ?? "", shrinksTo: 12 },
    ],
    width,
  );

export const wrapDetails = (wrap: WrapView, shown: WrapFleet, log: string, style: Style, now: number): string => {
  const { head, jobs = [], workers = [] } = wrap;
  const waiting = jobs.filter(({ connected }) => !connected).map(({ id }) => id);
  const rows: [string, string | undefined][] = [
    ["wrapper", `${wrap.id}  ${stateText(wrap.state, style)}, ${ageOf(wrap, now)}`],
    ["cluster", printable(wrap.target)],
    ["address", head?.address ?? "-"],
    ["dashboard", shown.dashboard ?? "-"],
    [
      "jobs",
      `${jobs.length}${waiting.length === 0 ? "" : `, not connected: ${waiting.join(", ")}`} (${wrap.minimum ?? 0} to ${wrap.maximum ?? 0})`,
    ],
    [
      "workers",
      workers.length === 0
        ? "none"
        : workers.map(({ address, threads }) => `${address} (${threads} threads)`).join(", "),
    ],
    ["memory", workers.length === 0 ? undefined : memoryText(shown.memory)],
    ["work", `${plural(shown.work, "task")}${tasksText(shown.tasks)}, ${plural(shown.clients, "client")}`],
    ["process", `pid ${wrap.holder.pid} on ${wrap.holder.host}`],
    ["status file", printable(wrap.statusFile)],
    ["log", `${printable(log)} (where it was started with --start)`],
    ...(wrap.problem === undefined ? [] : ([["problem", printable(wrap.problem)]] as [string, string][])),
  ];
  return facts(rows);
};
