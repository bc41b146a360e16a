import type { Duplex } from "node:stream";
import type { ResultColumns, RowRanges } from "../core/events.ts";
import { type Gang, gangKey } from "../core/gangs.ts";
import type { Run } from "../core/run.ts";
import { type LongTimer, repeatTimer } from "../long-timer.ts";
import type { Results } from "../protocol/messages.ts";
import { sendAssignments } from "./assignments.ts";
import type { AgentsListeners, AgentsOptions, LinkContext } from "./context.ts";
import { createCutShort } from "./cut-short.ts";
import { defineSoon, prepareDefinition } from "./definitions.ts";
import { createGangs } from "./gangs.ts";
import { createHandshakes } from "./handshake.ts";
import { hear } from "./hear.ts";
import { LATE_HEARTBEATS, isSilent } from "./heartbeat.ts";
import { hasNews, tellInPassing } from "./in-passing.ts";
import { type AgentLink, type Links, createLinks } from "./link.ts";
import { loseAgents, loseSilent } from "./losing.ts";
import { createOutputLimiter } from "./output-limits.ts";
import { createPilotEnds } from "./pilot-ends.ts";
import { importSpool } from "./results.ts";
import { welcome } from "./welcome.ts";
import type { AgentId, Row, RunId } from "../core/ids.ts";

/**
 * The agents' connections, as the rest of the server sees them. Silence is not death (rule 5): an agent that stops
 * answering is suspect and gets nothing new; its tasks run again only when its pilot is known to have ended or its
 * lease is over.
 */

/** The time between two looks at all agents; the longer one while there is nothing to expect from them. */
const LOOK_MS = 1000;
const CALM_MS = 5000;

export type { AgentsListeners, AgentsOptions } from "./context.ts";
export type { AgentLink } from "./link.ts";

export interface Agents {
  /** Calls `onKnown` when the agent has shown its token. */
  accept(socket: Duplex, onKnown?: () => void): void;
  /** Agents that live, as far as anybody knows: connected or not. */
  readonly size: number;
  link(agent: AgentId): AgentLink | undefined;
  links(): Iterable<AgentLink>;
  assign(agent: AgentId, parts: readonly RowRanges[], ahead?: readonly RowRanges[]): void;
  /** It will be assigned these, unless that never reaches the disk. */
  willAssign(agent: AgentId, parts: readonly RowRanges[], ahead: readonly RowRanges[]): void;
  stop(agent: AgentId, run: Run, row: Row, attempt: number): void;
  takeBack(agent: AgentId, count: number): void;
  /** Agents that have ranks of it end them. */
  gangOver(gang: Gang): void;
  drain(agent: AgentId, now: boolean, reason: string): void;
  forget(run: RunId): void;
  /** After a restart: the agents that the journal knows, suspect until they come back. */
  adopt(): void;
  /** Gives up agents that have been silent for longer than their lease, or whose pilot must have ended long ago. */
  loseSilent(agents: readonly number[], leaseMs: number): void;
  /** Agents that are surely gone. */
  lose(agents: readonly number[], reason: string, orderly?: boolean): void;
  /** The result of a task whose job was ended from outside: what it means is for its manager to say. */
  cutShort(agent: AgentId): ResultColumns | undefined;
  /** Imports the results that an agent left when it ended without a server. */
  importSpool(uuid: string, messages: readonly Results[]): boolean;
  /** While the journal cannot be written, the server reads nothing more from agents. */
  hold(held: boolean): void;
  readonly listeners: AgentsListeners;
  close(): void;
}

const createContext = (options: AgentsOptions): LinkContext => {
  const { engine, limits, clusterOf } = options;
  const outputs = createOutputLimiter({
    state: engine.state,
    limits,
    tell: (message) => {
      // also agents that know the run from the previous server and have heard nothing since
      for (const link of links.values()) link.channel?.send(message);
    },
  });
  const links: Links = createLinks({ engine, limitsOf: outputs.limitsOf, clusterOf });
  const pilotEnds = createPilotEnds(engine.state, links.values, links.drain);
  const nothing = (): void => undefined;
  const listeners = { joined: nothing, suspect: nothing, gone: nothing };
  const cutShort = createCutShort(engine.state, links.get);
  return { ...options, links, outputs, pilotEnds, cutShort, gangs: createGangs(engine, links.get), listeners };
};

export const createAgents = (options: AgentsOptions): Agents => {
  const context = createContext(options);
  const { engine, links, gangs, outputs, listeners, log } = context;
  const { state, scheduler } = engine;
  let held = false;

  const handshakes = createHandshakes({
    token: options.token,
    log,
    onHello: (hello, channel, previous) => {
      watchLinks();
      return welcome(context, hello, channel, previous);
    },
    onMessage: (link, message) => hear(context, link, message),
    onEnd: (link, channel, reason) => {
      // an older connection of an agent that is already back
      if (link.channel !== channel) return;
      links.suspect(link);
      log(`agent ${link.id}: ${reason}`);
      listeners.suspect(link.id);
    },
  });

  /** A server without agents does not wake up for them, and seldom where all are heard from and know all. */
  let watch: { readonly ms: number; readonly timer: LongTimer } | undefined;
  const lookEvery = (ms: number): void => {
    if (watch?.ms === ms) return;
    watch?.timer.stop();
    watch = { ms, timer: repeatTimer(ms, look) };
  };
  const look = (): void => {
    let isLate = false;
    for (const link of links.values()) {
      const silence = link.channel?.silence() ?? 0;
      // it should have asked by now: with that it would have heard
      if (silence > link.heartbeatMs) tellInPassing(link);
      isLate ||= hasNews(link) || silence > LATE_HEARTBEATS * link.heartbeatMs;
      if (!held && isSilent(silence, link.heartbeatMs)) link.channel?.destroy("the agent is silent");
    }
    if (links.size > 0) return lookEvery(isLate ? LOOK_MS : CALM_MS);
    watch?.timer.stop();
    watch = undefined;
  };
  const watchLinks = (): void => {
    if (watch === undefined) lookEvery(CALM_MS);
  };

  return {
    listeners,
    accept: handshakes.accept,
    get size() {
      return links.size;
    },
    link: links.get,
    links: links.values,
    assign: (agent, parts, ahead = []) => {
      const link = links.get(agent);
      // without a connection they stay assigned: the next hello shows that they never arrived
      if (link?.channel !== undefined) {
        tellInPassing(link);
        sendAssignments(state, link, parts, ahead);
      }
      for (const { run, ranges } of parts) {
        const gang = state.gangs.get(gangKey(run, ranges[0]!));
        if (gang?.agents[0] === agent) gangs.assign(gang);
      }
    },
    willAssign: (agent, parts, ahead) => {
      const link = links.get(agent);
      if (link?.channel === undefined) return;
      defineSoon(state, link, parts);
      defineSoon(state, link, ahead);
      prepareDefinition(state, link, parts);
    },
    gangOver: gangs.over,
    stop: (agent, run, row, attempt) =>
      links.get(agent)?.channel?.send({ t: "stop", tasks: [{ run: run.id, rows: [row], attempts: [attempt] }] }),
    takeBack: (agent, count) => {
      const link = links.get(agent);
      if (link?.channel === undefined || link.asked) return;
      link.asked = true;
      link.channel.send({ t: "takeback", count });
    },
    drain: links.drain,
    forget: (run) => {
      outputs.forget(run);
      for (const link of links.values()) if (link.defined.delete(run)) link.over.push(run);
    },
    adopt: () => {
      for (const agent of state.agents.values()) {
        if (agent.ended > 0) continue;
        links.add(agent);
        scheduler.pause(agent.id, true);
      }
      watchLinks();
    },
    lose: (ids, reason, orderly) => loseAgents(context, ids, reason, orderly),
    loseSilent: (ids, leaseMs) => loseSilent(context, ids, leaseMs),
    cutShort: context.cutShort.of,
    importSpool: (uuid, messages) => importSpool(context, uuid, messages),
    hold: (hold) => {
      held = hold;
      handshakes.hold(hold);
    },
    close: () => {
      watch?.timer.stop();
      for (const link of links.values()) {
        tellInPassing(link);
        link.channel?.close();
      }
      handshakes.close();
    },
  };
};
