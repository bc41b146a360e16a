import { setImmediate as nextTurn } from "node:timers/promises";
import type { Service } from "../../api/service.ts";
import { type Lanes, createLanes, updateLanes } from "../../core/lanes.ts";
import type { Run } from "../../core/run.ts";
import { agentOf } from "../../core/task-job.ts";
import { timelineOf, timelineText } from "../../views/timeline.ts";
import type { ServiceContext } from "./context.ts";
import { inTurns } from "./turns.ts";

/** When tasks ran. Lanes are kept with their run: the next question only places what is new. */
export const createTimelineService = ({
  engine: { state, clock },
  shelf,
}: Pick<ServiceContext, "engine" | "shelf">): Pick<Service, "timeline"> => {
  const kept = new WeakMap<Run, { readonly lanes: Lanes; busy: Promise<unknown> }>();

  /** One after the other: two who ask at once must not place the same attempt twice. */
  const lanesOf = async (run: Run, signal: AbortSignal): Promise<Lanes> => {
    let known = kept.get(run);
    if (known === undefined) kept.set(run, (known = { lanes: createLanes(run.total), busy: Promise.resolve() }));
    const { lanes } = known;
    const hosts = new Map<number, string>();
    const hostOf = (agent: number): string => {
      let host = hosts.get(agent);
      if (host === undefined) hosts.set(agent, (host = agentOf(state, run, agent)?.host || "unknown"));
      return host;
    };
    const mine = known.busy.then(() => inTurns(updateLanes(run, lanes, hostOf)));
    known.busy = mine.catch(() => undefined);
    await mine;
    signal.throwIfAborted();
    return lanes;
  };

  async function* pieces(run: Run, query: Parameters<Service["timeline"]>[1], signal: AbortSignal) {
    const lanes = await lanesOf(run, signal);
    const found = await inTurns(timelineOf(run, lanes, query, clock()), signal);
    for (const piece of timelineText(found)) {
      yield piece;
      await nextTurn();
    }
  }

  return { timeline: async (id, query, signal) => pieces(await shelf.whole(id), query, signal) };
};
