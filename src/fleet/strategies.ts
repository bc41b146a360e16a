import {
  type FleetPolicy,
  type FleetSnapshot,
  type Horizon,
  NOTHING,
  type Scaling,
  type Strategy,
  horizons,
  inOrderOfLeaving,
  roundDown,
  roundUp,
} from "./snapshot.ts";

/**
 * The strategies. Let a = waiting and placed work in pilots (Parsl's A/k), B = pilots pending or active, p = parallelism.
 *
 *   none      `init` at the first look, nothing after
 *   simple    1. a = 0: above `min`, after `idle` seconds without work, all but `min` go
 *             2. B/a < p: ⌈a·p − B⌉ more, up to `max`
 *             3. B = 0 (p is 0): one
 *   auto      as simple, and 4. B > a: ⌊B − a·p⌋ go, not below `min` nor the last one: pending ones at once, others
 *             after `idle` seconds without a task
 *   adaptive  ⌈seconds of work / target-duration⌉ pilots, at most ⌈a⌉, at least one while tasks wait; one that was
 *             superfluous `wait-count` times in a row goes
 *
 * Better than the originals: a fleet also grows to `min`, and `init` never exceeds `max` (decide.ts); work is counted
 * per shape; a pilot with less time left than a task requests does not count for that task (horizons).
 */

const shortage = ({ load, pilots }: Horizon, { parallelism }: FleetPolicy): number => {
  if (load === 0) return 0;
  if (pilots.length / load < parallelism) return roundUp(load * parallelism - pilots.length);
  return pilots.length === 0 ? 1 : 0;
};

const grow = (fleet: FleetSnapshot, all: readonly Horizon[]): number => {
  const missing = Math.max(...all.map((horizon) => shortage(horizon, fleet.policy)));
  return Math.max(0, Math.min(missing, fleet.policy.max - fleet.pilots.length));
};

/** All pilots above `min`, once the whole fleet has been idle long enough. */
const leaveIdle = ({ pilots, policy, idleSeconds }: FleetSnapshot): Scaling => {
  const spare = pilots.length - policy.min;
  if (spare <= 0 || idleSeconds < policy.idle) return NOTHING;
  const stop = inOrderOfLeaving(pilots).slice(0, spare);
  return { start: 0, stop: stop.map(({ id }) => id) };
};

const simple: Strategy = (fleet) => {
  const all = horizons(fleet);
  return all[0]!.load === 0 ? leaveIdle(fleet) : { start: grow(fleet, all), stop: [] };
};

const auto: Strategy = (fleet) => {
  const all = horizons(fleet);
  const { load } = all[0]!;
  const { policy, pilots } = fleet;
  if (load === 0) return leaveIdle(fleet);
  const start = grow(fleet, all);
  // one stays while there is work, even without any parallelism
  const kept = Math.max(policy.min, 1);
  const tooMany = pilots.length > load ? roundDown(pilots.length - load * policy.parallelism) : 0;
  const spare = Math.min(tooMany, pilots.length - kept);
  // a surplus at one horizon must not worsen a shortage at another
  if (start > 0 || spare <= 0 || all.some((horizon) => shortage(horizon, policy) > 0)) return { start, stop: [] };
  const leaving = inOrderOfLeaving(pilots).filter(
    ({ pending, used, idleSeconds }) => pending || (used === 0 && idleSeconds >= policy.idle),
  );
  return { start, stop: leaving.slice(0, spare).map(({ id }) => id) };
};

const adaptive: Strategy = (fleet) => {
  const { policy, pilots } = fleet;
  const targetOf = ({ seconds, load, waiting, pilots: there }: Horizon): number =>
    Math.max(
      Math.min(roundUp(seconds / policy.targetDuration), roundUp(load)),
      waiting > 0 && there.length === 0 ? 1 : 0,
    );
  const all = horizons(fleet);
  const missing = Math.max(...all.map((horizon) => targetOf(horizon) - horizon.pilots.length));
  const start = Math.max(0, Math.min(missing, policy.max - pilots.length));
  const target = Math.min(policy.max, Math.max(policy.min, targetOf(all[0]!)));
  const spare = missing > 0 ? 0 : pilots.length - target;
  const suggested = new Map(
    inOrderOfLeaving(pilots)
      .slice(0, Math.max(0, spare))
      .map(({ id }) => [id, (fleet.suggested.get(id) ?? 0) + 1]),
  );
  const stop = [...suggested].filter(([, times]) => times >= policy.waitCount).map(([id]) => id);
  return { start, stop, suggested };
};

export const STRATEGIES: Readonly<Record<FleetPolicy["strategy"], Strategy>> = {
  none: () => NOTHING,
  simple,
  auto,
  adaptive,
};
