import type { LinkContext } from "./context.ts";
import { saidOfLost } from "./lost-attempts.ts";

/** When an agent is given up. Silence alone is not death (rule 5): its pilot has ended, or its lease is over. */

/** No manager lets a pilot outlive its walltime by more than this. */
const OVERDUE_MS = 120_000;

/** Agents that are surely gone. */
export const loseAgents = (context: LinkContext, ids: readonly number[], reason: string, orderly = false): void => {
  const { engine, links, outputs } = context;
  const { state, scheduler } = engine;
  const living = ids.filter((id) => state.agents.get(id)?.ended === 0);
  if (living.length === 0) return;
  const started = saidOfLost(state, living, (agent, run, row) => links.get(agent)?.tails.get(`${run}.${row}`));
  for (const id of living) {
    const link = links.get(id);
    links.remove(id);
    link?.channel?.close();
  }
  engine.commit({
    type: "agents.lost",
    at: engine.clock(),
    agents: living,
    reason,
    orderly,
    ...(started.length > 0 ? { started } : {}),
  });
  for (const id of living) {
    scheduler.removeAgent(id);
    outputs.gone(id);
    context.cutShort.forget(id);
    context.listeners.gone(id);
  }
};

/** Gives up agents that have been silent for longer than their lease, or whose pilot must have ended long ago. */
export const loseSilent = (context: LinkContext, ids: readonly number[], leaseMs: number): void => {
  const { engine, links } = context;
  for (const id of ids) {
    const link = links.get(id);
    if (link?.suspectSince === undefined) continue;
    const silent = performance.now() - link.suspectSince;
    if (silent > leaseMs || engine.clock() > link.endsAt + OVERDUE_MS)
      loseAgents(context, [id], `silent for ${Math.round(silent / 1000)} s`);
  }
};
