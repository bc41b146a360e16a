/**
 * How many pilots a fleet should have. Pure: a snapshot in, a decision out. `simple` is all that one machine needs:
 * start while tasks wait, up to max; let idle ones go down to min. The strategies for clusters join it here.
 */
export interface FleetSnapshot {
  readonly waiting: number;
  /** Pilots that are queued or active. */
  readonly live: number;
  /** Live pilots without a task, longest idle first, with the seconds they have been so. */
  readonly idle: readonly { readonly pilot: number; readonly seconds: number }[];
  readonly min: number;
  readonly max: number;
  readonly idleSeconds: number;
  /** Pilots in a row that ended without an agent ever joining, and the seconds since the last one. */
  readonly startFailures: number;
  readonly sinceFailure: number;
  readonly stopping: boolean;
}

export interface FleetDecision {
  readonly start: number;
  readonly drain: readonly number[];
  /** Why nothing is started although tasks wait. */
  readonly problem: string | null;
}

/** Seconds to wait after n failed starts in a row: never a hot loop of submissions. */
export const backoff = (failures: number): number => (failures === 0 ? 0 : Math.min(300, 2 ** Math.min(failures, 9)));

export const decide = (fleet: FleetSnapshot): FleetDecision => {
  const nothing = { start: 0, drain: [], problem: null };
  if (fleet.stopping) return nothing;
  const wanted = Math.max(fleet.min, fleet.waiting > 0 ? 1 : 0);
  if (fleet.live < wanted) {
    const pause = backoff(fleet.startFailures) - fleet.sinceFailure;
    if (pause > 0)
      return {
        ...nothing,
        problem: `${fleet.startFailures} pilot${fleet.startFailures === 1 ? "" : "s"} in a row did not start; next try in ${Math.ceil(pause)} s`,
      };
    return { ...nothing, start: Math.min(wanted, fleet.max) - fleet.live };
  }
  if (fleet.waiting > 0) return nothing;
  const spare = fleet.live - fleet.min;
  const drain = fleet.idle.filter(({ seconds }) => seconds >= fleet.idleSeconds).slice(0, Math.max(0, spare));
  return { ...nothing, drain: drain.map(({ pilot }) => pilot) };
};
