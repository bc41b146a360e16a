import type { RunId } from "../core/ids.ts";
import type { Shape } from "../core/run.ts";
import type { Capacity } from "./open-work.ts";

/** Where the rest of a run can go: agents that are there, and pilots that wait in the manager. */

export interface Places {
  /** How many tasks of a shape run at once on the agents that are there and take tasks. */
  atOnce(shape: Shape): number;
  /** The fleets that could run a shape. */
  fleets(shape: Shape): readonly FleetFacts[];
  /** Whether another run has ended. */
  isOver(run: RunId): boolean;
  /** Work of other runs that goes first, in milliseconds of the whole capacity. */
  readonly aheadMs: number;
}

export interface FleetFacts {
  /** `cluster/queue`. */
  readonly name: string;
  /** Its pilots start at once: the manager is this machine. */
  readonly here: boolean;
  /** How many tasks of a shape one of its pilots runs at once. */
  atOnce(shape: Shape): number;
  /** For each pilot that waits in the manager: for how many milliseconds it has. */
  readonly pending: readonly number[];
  /** How long pilots of this queue waited until they ran, in milliseconds. */
  readonly waits: readonly number[];
}

/** From fewer pilots nothing is said about how long one waits. */
export const LEAST_WAITS = 5;
/** A pilot that has waited longer than any before may wait this much of it again. */
const AGAIN = 0.5;

/** What may be left of a wait, given how long it has lasted. */
export const waitsLeft = (waits: readonly number[], waited: number): number[] => {
  const longer = waits.filter((each) => each > waited).map((each) => each - waited);
  return longer.length > 0 ? longer : [waited * AGAIN];
};

const arrivalsOf = (fleet: FleetFacts, units: number): Capacity["arrivals"] =>
  fleet.pending.map((waited) => ({ units, waits: waitsLeft(fleet.waits, waited) }));

/** The capacity for a run whose next tasks are of this shape, or why nothing can be said about it. */
export const capacityFor = (shape: Shape, places: Places): Capacity | string => {
  const { aheadMs } = places;
  const fleets = places.fleets(shape);
  const now = places.atOnce(shape);
  if (now > 0) {
    const arrivals = fleets
      .filter(({ waits }) => waits.length >= LEAST_WAITS)
      .flatMap((fleet) => arrivalsOf(fleet, fleet.atOnce(shape) / now));
    const elsewhere = (other: Shape): number =>
      places.fleets(other).reduce((most, fleet) => Math.max(most, fleet.atOnce(other)), 0);
    return { atOnce: (other) => places.atOnce(other) || elsewhere(other), units: 1, arrivals, aheadMs };
  }
  const here = fleets.find((fleet) => fleet.here && fleet.atOnce(shape) > 0);
  if (here !== undefined) return { atOnce: here.atOnce, units: 1, arrivals: [], aheadMs };
  const waiting = fleets.filter(({ pending }) => pending.length > 0);
  if (waiting.length === 0) return "no pilot runs, or waits to run, that could take its tasks";
  const known = waiting.find(({ waits }) => waits.length >= LEAST_WAITS);
  if (known === undefined) {
    const { name, waits } = waiting[0]!;
    return `its pilots wait in the manager, and how long is not known: ${waits.length} of ${name} have started so far, ${LEAST_WAITS} are needed to tell`;
  }
  return { atOnce: known.atOnce, units: 0, arrivals: arrivalsOf(known, 1), aheadMs };
};
