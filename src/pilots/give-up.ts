import type { FleetDecision } from "../fleet/decide.ts";
import { type Candidate, canRun } from "../fleet/demand.ts";
import type { KeeperContext } from "./context.ts";
import { type FleetNotes, forgetFailures } from "./notes.ts";

const LONGEST_MESSAGE = 4000;

/**
 * Fails waiting tasks that no other fleet of the cluster could run, with what is known of the pilots that did not
 * start. Tasks that come later get a new try.
 */
export const giveUp = (
  { engine, defaultCluster, log }: KeeperContext,
  why: NonNullable<FleetDecision["giveUp"]>,
  mine: Candidate,
  others: readonly Candidate[],
  notes: FleetNotes,
): void => {
  const place = `${mine.cluster}/${mine.queue}`;
  const what =
    why === "gone" ? `all pilots of ${place} have ended` : `no pilot of ${place} starts: ${notes.failures.join("\n")}`;
  const reason = what.length > LONGEST_MESSAGE ? `${what.slice(0, LONGEST_MESSAGE)}…` : what;
  const parts = engine.scheduler.withdraw(
    (shape) => canRun(shape, mine, defaultCluster) && !others.some((other) => canRun(shape, other, defaultCluster)),
  );
  forgetFailures(notes);
  if (parts.length === 0) return;
  log(`waiting tasks were given up: ${reason}`);
  engine.commit({ type: "tasks.failed", at: engine.clock(), reason, parts });
};
