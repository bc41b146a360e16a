import type { FleetDecision } from "./decide.ts";
import type { FleetSnapshot } from "./snapshot.ts";

/** What was decided about a fleet, in a sentence for people. */

export interface PilotSize {
  /** Cores of a whole pilot; undefined: nobody knows yet. */
  readonly cores: number | undefined;
}

const count = (number: number, what: string): string =>
  `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

/** `12 tasks wait for 24 cores` */
const waitingText = ({ demand }: Pick<FleetSnapshot, "demand">): string => {
  const tasks = demand.reduce((sum, { waiting }) => sum + waiting, 0);
  if (tasks === 0) return "no task waits";
  const cores = demand.reduce((sum, each) => sum + each.waiting * (each.cores ?? 0), 0);
  const amount = Math.round(cores * 100) / 100;
  return `${count(tasks, "task")} ${tasks === 1 ? "waits" : "wait"}${amount > 0 ? ` for ${count(amount, "core")}` : ""}`;
};

/** `1 pilot of 16 requested` */
const requestText = (start: number, { cores }: PilotSize): string =>
  `${count(start, "pilot")}${cores === undefined ? "" : ` of ${count(Math.round(cores * 100) / 100, "core")}`} requested`;

/** `start` of them were asked for; it may be less than what was decided. */
export const decisionText = (
  fleet: Pick<FleetSnapshot, "demand" | "policy" | "pilots" | "first" | "known">,
  decision: Pick<FleetDecision, "stop" | "problem" | "giveUp">,
  start: number,
  size: PilotSize,
): string => {
  const { policy, pilots, first } = fleet;
  const there = pilots.length === 0 ? [] : [`${count(pilots.length, "pilot")} already there`];
  const least = first ? Math.max(policy.init, policy.min) : policy.min;
  const isLeast = start > 0 && fleet.demand.length === 0 && least > pilots.length;
  const parts = [
    waitingText(fleet),
    ...there,
    ...(isLeast ? [`there should be at least ${least}${first ? " at the start" : ""}`] : []),
  ];
  if (start > 0) parts.push(requestText(start, size));
  else if (decision.giveUp !== null) parts.push("given up: its pilots do not start");
  else if (decision.problem !== null) parts.push(`none requested: ${decision.problem}`);
  else if (fleet.demand.length > 0)
    parts.push(
      pilots.length >= policy.max
        ? "none requested: the limit is reached"
        : fleet.known || pilots.length === 0
          ? "none requested: those that are there will do"
          : "none requested: the first has to show what a node has",
    );
  if (decision.stop.length > 0) parts.push(`${count(decision.stop.length, "pilot")} let go`);
  return `${parts.join("; ")}; limit ${policy.max}`;
};
