import { givesUp, pauseLeft } from "./failures.ts";
import type { FleetSnapshot } from "./snapshot.ts";
import { STRATEGIES } from "./strategies.ts";

/** How many pilots a fleet should have. Pure: a snapshot in, a decision out. */

export interface FleetDecision {
  readonly start: number;
  readonly stop: readonly number[];
  readonly suggested: ReadonlyMap<number, number>;
  /** Why no pilot is started although tasks wait. */
  readonly problem: string | null;
  /** The tasks that only this fleet could run must fail. */
  readonly giveUp: "failures" | "gone" | null;
}

const plural = (count: number): string => `${count} pilot${count === 1 ? "" : "s"}`;

export const decide = (fleet: FleetSnapshot): FleetDecision => {
  const { policy, pilots, first, starts } = fleet;
  const calm: FleetDecision = { start: 0, stop: [], suggested: new Map(), problem: null, giveUp: null };
  if (fleet.stopping) return calm;
  const waits = fleet.demand.some(({ waiting }) => waiting > 0);
  if (waits && givesUp(policy, starts)) return { ...calm, giveUp: "failures" };
  const none = policy.strategy === "none";
  if (none && !first && waits && pilots.length === 0)
    return {
      ...calm,
      problem: "all its pilots have ended and its strategy is none; `slipway pilots add` starts one",
      giveUp: policy.whenGone === "fail" ? "gone" : null,
    };
  const { start, stop, suggested = new Map() } = STRATEGIES[policy.strategy](fleet);
  // until an agent has reported what a node has, nobody knows how many are needed
  const wanted = fleet.known ? start : Math.min(start, pilots.length === 0 ? 1 : 0);
  const least = first ? Math.max(policy.init, policy.min) : none ? 0 : policy.min;
  const missing = Math.min(Math.max(wanted, least - pilots.length), policy.max - pilots.length);
  if (missing <= 0) return { ...calm, stop, suggested };
  const pause = first ? 0 : pauseLeft(starts);
  if (pause === 0) return { ...calm, start: missing, suggested };
  const problem = `${plural(starts.inARow)} in a row did not start; next try in ${Math.ceil(pause)} s`;
  return { ...calm, suggested, problem };
};
