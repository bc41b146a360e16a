import type { Agent } from "../core/state.ts";
import type { Channel } from "../protocol/frames.ts";
import type { Hello, ServerMessage } from "../protocol/messages.ts";
import type { Engine } from "../server/engine.ts";
import { heartbeatFor } from "./heartbeat.ts";
import { tellInPassing } from "./in-passing.ts";
import type { OutputLimiter } from "./output-limits.ts";
import type { AgentId } from "../core/ids.ts";

/**
 * One link per living agent, whether it is connected or not:
 *
 *   a connection ── hello with the token ──► connected ── bye ──► gone
 *                                             │     ▲
 *             silence, or the connection ends │     │ hello again
 *                                             ▼     │
 *                                             suspect ── its pilot has ended, or its lease is over ──► lost
 *
 * `draining` is independent of that: the agent gets nothing new, whether the server decided so or the agent did.
 */
export interface AgentLink {
  readonly id: number;
  channel: Channel<ServerMessage> | undefined;
  /** When it became suspect, on the monotonic clock; undefined while connected. */
  suspectSince: number | undefined;
  /** How often it should say something, as it was last told. */
  heartbeatMs: number;
  draining: boolean;
  /** The server told it to end. */
  told: boolean;
  /** When its pilot ends, in server milliseconds, as the agent itself says; Infinity if never. */
  endsAt: number;
  defined: Map<number, Set<number>>;
  /** It takes tasks that are groups of their own together. */
  singles: boolean;
  /** And groups that are alike as columns. */
  alike: boolean;
  /** Not yet sent to it: up to which of its results are on disk (0 for none), and which runs are over. */
  durable: number;
  over: number[];
  /** It was asked to give tasks back and has not answered. */
  asked: boolean;
  /** Tails of the output of running tasks, for `logs -f`. */
  readonly tails: Map<string, number>;
  readonly limitsOf: OutputLimiter["limitsOf"];
}

/** What an agent says it can do. */
export type Abilities = Pick<Hello, "ahead" | "singles" | "alike">;

export interface Links {
  readonly size: number;
  get(agent: AgentId): AgentLink | undefined;
  values(): Iterable<AgentLink>;
  /** A new link, suspect until it is connected; from now on the scheduler knows the agent. */
  add(agent: Agent): AgentLink;
  remove(agent: AgentId): void;
  connect(link: AgentLink, channel: Channel<ServerMessage>, endsAt: number, can: Abilities): void;
  /** The connection is gone; the agent keeps what it has. */
  suspect(link: AgentLink): void;
  /** It gets nothing new, because it is leaving. */
  leaving(link: AgentLink): void;
  drain(agent: AgentId, now: boolean, reason: string): void;
}

export interface LinksOptions {
  readonly engine: Engine;
  readonly limitsOf: OutputLimiter["limitsOf"];
  readonly clusterOf: (agent: Agent) => { cluster: string; queue: string; endsAt: number };
}

export const createLinks = ({ engine: { scheduler }, limitsOf, clusterOf }: LinksOptions): Links => {
  const links = new Map<AgentId, AgentLink>();

  const leaving = (link: AgentLink): void => {
    link.draining = true;
    scheduler.pause(link.id, true);
    tellInPassing(link);
  };

  return {
    get size() {
      return links.size;
    },
    get: (agent) => links.get(agent),
    values: () => links.values(),
    add: (agent) => {
      const { id, resources, pilot, host } = agent;
      const link: AgentLink = {
        id,
        channel: undefined,
        suspectSince: performance.now(),
        heartbeatMs: heartbeatFor(0),
        draining: false,
        told: false,
        endsAt: Infinity,
        defined: new Map(),
        singles: false,
        alike: false,
        durable: 0,
        over: [],
        asked: false,
        tails: new Map(),
        limitsOf,
      };
      links.set(id, link);
      // one that runs in the job of a task gets that one and no other
      if (agent.taskJob === undefined) scheduler.addAgent({ id, resources, pilot, host, ...clusterOf(agent) });
      return link;
    },
    remove: (agent) => void links.delete(agent),
    connect: (link, channel, endsAt, can) => {
      link.channel?.destroy("the agent connected again");
      link.channel = channel;
      link.suspectSince = undefined;
      link.endsAt = endsAt;
      scheduler.setEnd(link.id, endsAt);
      scheduler.setAhead(link.id, can.ahead === true);
      link.singles = can.singles === true;
      link.alike = can.alike === true;
      link.defined = new Map();
      link.durable = 0;
      link.over = [];
      link.asked = false;
    },
    suspect: (link) => {
      link.channel = undefined;
      link.suspectSince = performance.now();
      scheduler.pause(link.id, true);
    },
    leaving,
    drain: (agent, now, reason) => {
      const link = links.get(agent);
      if (link === undefined) return;
      leaving(link);
      link.told ||= now;
      link.channel?.send({ t: "drain", now, reason });
    },
  };
};
