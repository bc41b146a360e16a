import type { WrapView } from "../../wrap/holder/registry.ts";
import type { Style } from "./style.ts";
import { facts, table } from "./table.ts";
import { count, duration, printable, secondsBetween } from "./text.ts";

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

export const wrapDetails = (wrap: WrapView, log: string, style: Style, now: number): string => {
  const { head, jobs = [], workers = [] } = wrap;
  const waiting = jobs.filter(({ connected }) => !connected).map(({ id }) => id);
  const rows: [string, string][] = [
    ["wrapper", `${wrap.id}  ${stateText(wrap.state, style)}, ${ageOf(wrap, now)}`],
    ["cluster", printable(wrap.target)],
    ["address", head?.address ?? "-"],
    ["dashboard", head?.dashboard_port == null ? "-" : `${head.host}:${head.dashboard_port}`],
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
    ["work", `${count(wrap.work ?? 0)} tasks, ${count(wrap.clients ?? 0)} clients`],
    ["process", `pid ${wrap.holder.pid} on ${wrap.holder.host}`],
    ["status file", printable(wrap.statusFile)],
    ["log", `${printable(log)} (where it was started with --start)`],
    ...(wrap.problem === undefined ? [] : ([["problem", printable(wrap.problem)]] as [string, string][])),
  ];
  return facts(rows);
};
