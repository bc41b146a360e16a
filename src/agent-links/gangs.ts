import { Ending, type RanksEnded } from "../core/events.ts";
import { type Gang, gangKey } from "../core/gangs.ts";
import { setOf } from "../core/retry-set.ts";
import { itemsOf, storedAt } from "../core/item-source.ts";
import { groupOf, shapeOfRow } from "../core/run.ts";
import { Flag, touch } from "../core/table.ts";
import type { HeldTasks, RanksDone, RanksEndedMessage } from "../protocol/messages.ts";
import type { AgentLink } from "./link.ts";
import { define } from "./definitions.ts";
import { tellInPassing } from "./in-passing.ts";
import type { Engine } from "../server/engine.ts";
import type { AgentId } from "../core/ids.ts";

/**
 * The server's side of tasks whose ranks run on several agents: gives each its part, learns when parts end, tells the
 * head when the others are done or one of them failed, and ends all parts when the attempt is over. When an agent comes
 * back after its connection broke, everything is sent to it again.
 */
export interface Gangs {
  /** Gives all agents of a task their parts. */
  assign(gang: Gang): void;
  over(gang: Gang): void;
  ended(link: AgentLink, message: RanksEndedMessage): void;
  /** An agent is back, with these parts of attempts that belong to others. */
  welcome(link: AgentLink, parts: readonly HeldTasks[]): void;
}

/** What the head must know: the first failure, or that all others are done. */
const verdict = (gang: Gang): RanksEnded | "done" | undefined => {
  for (const ended of gang.ended.values()) if (ended.ending !== Ending.EXIT || ended.code !== 0) return ended;
  return gang.ended.size === gang.agents.length - 1 ? "done" : undefined;
};

export const createGangs = (engine: Engine, linkOf: (agent: AgentId) => AgentLink | undefined): Gangs => {
  const { state } = engine;

  const nameOf = ({ run, row, attempt }: Pick<Gang, "run" | "row" | "attempt">) => ({ run, row, attempt });

  const sendPart = (gang: Gang, nth: number): void => {
    const link = linkOf(gang.agents[nth]!);
    const run = state.runs.get(gang.run);
    if (link?.channel === undefined || run === undefined) return;
    const group = groupOf(run.groups, gang.row);
    // if it does not know yet that the run was over, it hears that first: later, it would forget what it is told now
    tellInPassing(link);
    define(link, run, group);
    const isAlone = (touch(run.table, gang.row).flags[gang.row % run.table.pageRows]! & Flag.ALONE) !== 0;
    const timeLimit = setOf(group, gang.row)?.timeLimit;
    link.channel.send({
      t: "ranks",
      ...nameOf(gang),
      group: group.index,
      // numbers of a range are counted there
      item:
        group.spec.items.kind === "range" && group.items === undefined
          ? undefined
          : storedAt(itemsOf(group.spec, group.items), gang.row - group.first),
      resources: shapeOfRow(group, gang.row).resources,
      node: nth,
      hosts: gang.agents.map((agent) => state.agents.get(agent)?.host ?? ""),
      ranks: gang.ranks,
      by: group.spec.ranks?.by ?? "agents",
      ...(timeLimit === undefined ? {} : { timeLimit }),
      ...(isAlone ? { alone: true } : {}),
    });
  };

  const tellHead = (gang: Gang): void => {
    const found = verdict(gang);
    if (found === undefined) return;
    const outcome: Pick<RanksDone, "ending" | "code" | "detail"> =
      found === "done" ? { ending: Ending.EXIT, code: 0, detail: "" } : found;
    const { ending, code, detail } = outcome;
    linkOf(gang.agents[0]!)?.channel?.send({ t: "ranks-done", ...nameOf(gang), ending, code, detail });
  };

  return {
    assign: (gang) => {
      for (const nth of gang.agents.keys()) sendPart(gang, nth);
    },

    over: (gang) => {
      for (const agent of gang.agents) linkOf(agent)?.channel?.send({ t: "ranks-over", ...nameOf(gang) });
    },

    ended: (link, { t: _t, ...facts }) => {
      const lsn = engine.commit({ type: "ranks.ended", at: engine.clock(), agent: link.id, ...facts });
      engine.afterDurable(() => {
        linkOf(link.id)?.channel?.send({ t: "ranks-kept", ...nameOf(facts) });
        const gang = state.gangs.get(gangKey(facts.run, facts.row));
        if (gang?.attempt === facts.attempt) tellHead(gang);
      }, lsn);
    },

    welcome: (link, parts) => {
      const here = new Set<string>();
      for (const { run, rows, attempts } of parts)
        for (const [i, row] of rows.entries()) {
          const gang = state.gangs.get(gangKey(run, row));
          const attempt = attempts[i]!;
          if (gang?.attempt === attempt && gang.agents.includes(link.id)) here.add(gangKey(run, row));
          else link.channel?.send({ t: "ranks-over", run, row, attempt });
        }
      for (const gang of state.gangs.values()) {
        const nth = gang.agents.indexOf(link.id);
        if (nth === 0) tellHead(gang);
        else if (nth > 0 && !gang.ended.has(link.id) && !here.has(gangKey(gang.run, gang.row))) sendPart(gang, nth);
      }
    },
  };
};
