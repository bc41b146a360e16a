import { followerOf, mayBeFollowed, mayGoBehind, neverLost, rowsAfter } from "../core/ahead.ts";
import { type Group, type Run, type Shape, expectedMs, groupOf, sameShape, shapeOfRow } from "../core/run.ts";
import type { Row } from "../core/ids.ts";
import type { AgentLoad } from "./agent-load.ts";
import { type AgentPool, secondsLeft } from "./agent-pool.ts";
import type { PrefetchPolicy } from "./capacity.ts";
import type { Order } from "./order.ts";
import type { Waiting } from "./waiting.ts";

/**
 * Which tasks are handed ahead: to the agent of the one task that each still waits for, so that it begins there without a
 * round trip (decision 0034). At most one lies behind each task, of the same shape and priority: it takes over what that
 * one held, and no account changes. None goes ahead where something else waits for the slot.
 */

/** A task that an agent has. */
export interface Head {
  readonly run: Run;
  readonly row: Row;
  readonly agent: AgentLoad;
}

/** No more than this many lie behind one task, however short they are. */
const MOST_BEHIND = 512;

export interface Around {
  readonly pool: AgentPool;
  readonly waiting: Waiting;
  readonly order: Order;
  readonly prefetch: PrefetchPolicy;
  readonly now: number;
}

/** The task that should come next behind one, of all that could. */
const nextBehind = (order: Order, run: Run, last: Group, row: Row, shape: Shape): Row | undefined => {
  let best: Row | undefined;
  let most = -1;
  for (const after of rowsAfter(run, last, row)) {
    const group = groupOf(run.groups, after);
    if (group.spec.priority !== last.spec.priority || !mayGoBehind(run, row, group, after)) continue;
    if (!sameShape(shapeOfRow(group, after), shape)) continue;
    const { pressure } = order.rankOf(run, group);
    if (pressure > most) [best, most] = [after, pressure];
  }
  return best;
};

/** Whether something that this agent could run waits and goes first. */
const isPassed = ({ pool, waiting, order }: Around, agent: AgentLoad, run: Run, group: Group): boolean => {
  if (waiting.total === 0) return false;
  const first = waiting.first((place) => pool.belongs(agent, place))?.batch;
  if (first === undefined) return false;
  const above = first.shelf.lane.priority - group.spec.priority;
  if (above !== 0) return above > 0;
  const { start, pressure } = order.rankOf(run, group);
  return first.start === start ? first.pressure >= pressure : first.start < start;
};

/** How many tasks of a shape an agent's pilot leaves time for, one after the other. */
const mostInTime = ({ now }: Around, agent: AgentLoad, { timeRequest }: Shape): number =>
  timeRequest === 0 ? Infinity : Math.floor(secondsLeft(agent, now) / timeRequest);

/** Whether nothing may be handed to an agent ahead. */
export const takesNothing = ({ paused, ahead, backlog }: AgentLoad): boolean => paused || !ahead || backlog > 0;

/**
 * The rows to hand ahead behind a task, in order. Like a backlog they are bounded in expected seconds, and refilled when
 * half of that is left.
 */
export const rowsBehind = (around: Around, { run, row, agent }: Head, isNew: boolean): Row[] => {
  if (takesNothing(agent)) return [];
  const { id } = agent.offer;
  let last = groupOf(run.groups, row);
  let lastRow = row;
  const shape = shapeOfRow(last, row);
  if (last.dependents.length === 0 || shape.ranks !== undefined || !neverLost(run, row)) return [];
  if (!isNew && !mayBeFollowed(run, row, id)) return [];
  const budget = around.prefetch.seconds * 1000;
  const most = Math.min(MOST_BEHIND, mostInTime(around, agent, shape) - 1);
  let depth = 0;
  let ms = 0;
  const lengthen = (next: Row): void => {
    last = groupOf(run.groups, next);
    lastRow = next;
    const expected = expectedMs(run, last);
    ms += expected < 0 ? Infinity : expected;
    depth += 1;
  };
  for (;;) {
    const next = followerOf(run, last, lastRow, id);
    if (next === undefined) break;
    lengthen(next);
  }
  if (depth > 0 && (depth > most / 2 || ms > budget / 2)) return [];
  const rows: Row[] = [];
  while (depth < most && (depth === 0 || ms < budget)) {
    const next = nextBehind(around.order, run, last, lastRow, shape);
    if (next === undefined) break;
    const group = groupOf(run.groups, next);
    // a round trip is nothing to a long one
    if (expectedMs(run, group) > around.prefetch.longSeconds * 1000) break;
    if (isPassed(around, agent, run, group)) break;
    rows.push(next);
    lengthen(next);
  }
  return rows;
};
