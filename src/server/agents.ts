import type { Duplex } from "node:stream";
import { hasAttempt, markStarted } from "../core/attempts.ts";
import type { RowRanges } from "../core/events.ts";
import { type Gang, gangKey } from "../core/gangs.ts";
import { forEachHeld } from "../core/held.ts";
import type { Run } from "../core/run.ts";
import type { Agent } from "../core/state.ts";
import { peek } from "../core/table.ts";
import { checkResults } from "../protocol/check-results.ts";
import { type Channel, createChannel } from "../protocol/frames.ts";
import type { AgentMessage, HeldTasks, Hello, Results, ServerMessage } from "../protocol/messages.ts";
import { sameSecret, showsToken } from "../protocol/token.ts";
import { PROTOCOL_VERSION, judgeVersion } from "../protocol/version.ts";
import { checkAgentMessage, checkSpooled } from "./agent-messages.ts";
import { sendAssignments } from "./assignments.ts";
import { createGangs } from "./gangs.ts";
import type { Engine } from "./engine.ts";
import { resultsKept, tellInPassing } from "./in-passing.ts";
import { saidOfLost } from "./lost-attempts.ts";
import { createOutputLimiter, type OutputLimiter } from "./output-limits.ts";
import { createPilotEnds } from "./pilot-ends.ts";

/**
 * The agents' connections. Silence is not death (rule 5): an agent that stops answering is suspect and gets nothing
 * new; what it has is run again only when its pilot is known to have ended or its lease is over.
 */

export const HEARTBEAT_MS = 5000;
/** After an agent had nothing to give back. */
const ASK_AGAIN_MS = 1000;
/** No manager lets a pilot live longer than its walltime and this. */
const OVERDUE_MS = 120_000;
/** A connection that has not said hello by then is closed. */
const HELLO_MS = 10_000;
const SILENT_HEARTBEATS = 4;
/** Between two looks at all agents. */
const LOOK_MS = 1000;

export interface AgentLink {
  readonly id: number;
  channel: Channel<ServerMessage> | undefined;
  /** Since when it has been suspect, on the monotonic clock; undefined while connected. */
  suspectSince: number | undefined;
  draining: boolean;
  /** When its pilot ends, in the server's milliseconds, as it said itself; Infinity if never. */
  endsAt: number;
  defined: Map<number, Set<number>>;
  /** Its results up to this one are on disk, and runs are over, of which it was not told yet; 0 none. */
  durable: number;
  over: number[];
  /** A take-back was asked for and not answered. */
  asked: boolean;
  /** Tails of the output of running tasks, for `logs -f`. */
  readonly tails: Map<string, number>;
  readonly limitsOf: OutputLimiter["limitsOf"];
  running: number;
}

export interface Agents {
  /** `onKnown` is called when it has shown its token. */
  accept(socket: Duplex, onKnown?: () => void): void;
  link(agent: number): AgentLink | undefined;
  links(): Iterable<AgentLink>;
  assign(agent: number, parts: readonly RowRanges[]): void;
  stop(agent: number, run: Run, row: number, attempt: number): void;
  takeBack(agent: number, count: number): void;
  /** Whoever has ranks of it ends them. */
  gangOver(gang: Gang): void;
  drain(agent: number, now: boolean, reason: string): void;
  forget(run: number): void;
  /** After a restart: the agents that the journal knows, suspect until they come back. */
  adopt(): void;
  /** Gives up those that have been silent for longer than their lease, or whose pilot must have ended long ago. */
  loseSilent(agents: readonly number[], leaseMs: number): void;
  /** Agents that are surely gone. */
  lose(agents: readonly number[], reason: string, orderly?: boolean): void;
  /** Imports what an agent left behind when it ended without a server. */
  importSpool(uuid: string, messages: readonly Results[]): boolean;
  /** While the journal cannot be written, nothing more is read from agents. */
  hold(held: boolean): void;
  close(): void;
}

export interface AgentsOptions {
  readonly engine: Engine;
  readonly token: string;
  /** Bytes of output that are kept. */
  readonly limits: { readonly outputPerTask: number; readonly outputPerRun: number };
  readonly clusterOf: (agent: Agent) => { cluster: string; queue: string; endsAt: number };
  readonly onJoin: (agent: number, pilot: number) => void;
  readonly onSuspect: (agent: number) => void;
  readonly onGone: (agent: number) => void;
  readonly log: (text: string, facts?: object) => void;
}

export const createAgents = (options: AgentsOptions): Agents => {
  const { engine, log } = options;
  const { state, scheduler } = engine;
  const links = new Map<number, AgentLink>();
  const unknown = new Set<Channel<ServerMessage>>();
  const sockets = new Set<Duplex>();
  let held = false;

  const gangs = createGangs(engine, (agent) => links.get(agent));
  const outputs = createOutputLimiter({
    state,
    limits: options.limits,
    tell: (message) => {
      // those too that have it from the server before and were told nothing since
      for (const link of links.values()) link.channel?.send(message);
    },
  });

  const newLink = (id: number): AgentLink => {
    const link: AgentLink = {
      id,
      channel: undefined,
      suspectSince: performance.now(),
      draining: false,
      endsAt: Infinity,
      defined: new Map(),
      durable: 0,
      over: [],
      asked: false,
      tails: new Map(),
      limitsOf: outputs.limitsOf,
      running: 0,
    };
    links.set(id, link);
    const agent = state.agents.get(id)!;
    scheduler.addAgent({
      id,
      resources: agent.resources,
      pilot: agent.pilot,
      host: agent.host,
      ...options.clusterOf(agent),
    });
    return link;
  };

  const welcome = (hello: Hello, channel: Channel<ServerMessage>, previous: boolean): AgentLink | undefined => {
    let id = state.agentByUuid.get(hello.uuid);
    const known = id === undefined ? undefined : state.agents.get(id);
    if (known === undefined || known.ended > 0) {
      // an agent that was given up comes back as a new one: what it had was superseded
      id = state.nextAgent;
      engine.commit({
        type: "agent.joined",
        at: engine.clock(),
        agent: id,
        uuid: hello.uuid,
        pilot: hello.pilot,
        ...(hello.cluster === undefined ? {} : { cluster: hello.cluster }),
        ...(hello.queue === undefined ? {} : { queue: hello.queue }),
        host: hello.host,
        version: hello.slipway,
        resources: hello.resources,
        output: hello.output,
        seq: hello.seq,
      });
    }
    const link = links.get(id!) ?? newLink(id!);
    link.channel?.destroy("the agent connected again");
    link.channel = channel;
    link.suspectSince = undefined;
    link.endsAt = hello.endsInMs === undefined ? Infinity : engine.clock() + hello.endsInMs;
    scheduler.setEnd(id!, link.endsAt);
    link.defined = new Map();
    link.durable = 0;
    link.over = [];
    link.asked = false;
    const drop = reconcile(id!, hello);
    engine.afterDurable(() => {
      // it went again before this was on disk: its next connection is welcomed anew
      if (link.channel !== channel) return;
      channel.send({
        t: "welcome",
        agent: id!,
        epoch: state.epoch,
        acked: state.agents.get(id!)!.seq,
        drop,
        heartbeatMs: HEARTBEAT_MS,
        now: engine.clock(),
      });
      gangs.welcome(link, hello.parts);
      const pilotEnds = ends.reasonFor(id!);
      if (pilotEnds !== undefined) drain(id!, true, pilotEnds);
      else if (previous) drain(id!, false, `protocol version ${hello.version} is the one before ${PROTOCOL_VERSION}`);
      if (!link.draining) scheduler.pause(id!, false);
      options.onJoin(id!, hello.pilot);
      engine.schedulePass();
    });
    return link;
  };

  /** What it has that it should not have; what it should have and never got is placed anew. */
  const reconcile = (agent: number, hello: Hello): HeldTasks[] => {
    const drop: HeldTasks[] = [];
    const here = new Map<number, Map<number, number>>();
    for (const { run: id, rows, attempts } of hello.held) {
      const run = state.runs.get(id);
      const bad: { run: number; rows: number[]; attempts: number[] } = { run: id, rows: [], attempts: [] };
      const mine = new Map<number, number>();
      for (const [i, row] of rows.entries()) {
        const attempt = attempts[i] ?? 0;
        const page = run !== undefined && row < run.total ? peek(run.table, row) : undefined;
        const slot = run === undefined ? 0 : row % run.table.pageRows;
        if (page !== undefined && page.agent[slot] === agent && page.attempt[slot] === attempt) mine.set(row, attempt);
        else {
          bad.rows.push(row);
          bad.attempts.push(attempt);
        }
      }
      here.set(id, mine);
      if (bad.rows.length > 0) drop.push(bad);
    }
    giveBackAll(agent, here);
    return drop;
  };

  /** Everything that the state says an agent has, apart from what it really has. */
  const giveBackAll = (agent: number, here?: ReadonlyMap<number, ReadonlyMap<number, number>>): void => {
    const missing: { run: number; ranges: number[] }[] = [];
    for (const run of state.runs.values()) {
      const ranges: number[] = [];
      const mine = here?.get(run.id);
      forEachHeld(run, new Set([agent]), (row) => {
        if (mine?.has(row) !== true) ranges.push(row, 1);
      });
      if (ranges.length > 0) missing.push({ run: run.id, ranges });
    }
    if (missing.length > 0) engine.commit({ type: "tasks.returned", at: engine.clock(), agent, parts: missing });
  };

  const applyResults = (agent: number, message: Results): void => {
    const known = state.agents.get(agent);
    if (known === undefined || message.seq <= known.seq) return;
    if (message.seq !== known.seq + 1) throw new RangeError(`results ${message.seq} after ${known.seq}`);
    const { packed, parts } = checkResults(message);
    const lsn = engine.commit({ type: "tasks.ended", at: engine.clock(), agent, seq: message.seq, parts }, packed);
    for (const { run, rows } of parts) {
      for (const row of rows) outputs.ended(agent, run, row);
      outputs.check(run);
    }
    const link = links.get(agent);
    if (link !== undefined && link.tails.size > 0)
      for (const { run, rows } of parts) for (const row of rows) link.tails.delete(`${run}.${row}`);
    if (link !== undefined) engine.afterDurable(() => resultsKept(link, message.seq), lsn);
  };

  const onMessage = (link: AgentLink, message: AgentMessage): void => {
    switch (message.t) {
      case "results":
        return applyResults(link.id, message);
      case "progress":
        for (const { run, row, attempt, started, outAt, kept } of message.tasks) {
          if (!hasAttempt(state, link.id, run, row, attempt)) continue;
          markStarted(state, run, row, started);
          // an attempt that has written nothing yet must not be taken for the one before it
          if (outAt >= 0) link.tails.set(`${run}.${row}`, outAt);
          else link.tails.delete(`${run}.${row}`);
          if (kept !== undefined) outputs.progress(link.id, run, row, attempt, kept);
        }
        for (const { run, row, attempt, kept } of message.parts ?? [])
          outputs.progress(link.id, run, row, attempt, kept);
        return;
      case "returned":
        link.asked = false;
        if (message.parts.length > 0)
          engine.commit({ type: "tasks.returned", at: engine.clock(), agent: link.id, parts: message.parts });
        // asked before they had arrived there: nothing else may happen that would lead to asking again
        else setTimeout(() => engine.schedulePass(), ASK_AGAIN_MS).unref();
        return;
      case "ranks-ended":
        gangs.ended(link, message);
        outputs.ended(link.id, message.run, message.row);
        return outputs.check(message.run);
      case "leaving":
        link.draining = true;
        tellInPassing(link);
        scheduler.pause(link.id, true);
        log(`agent ${link.id} leaves: ${message.reason}`);
        if (message.pilotEnds === true) ends.told(link.id, message.reason);
        options.onSuspect(link.id);
        return;
      case "bye":
        // it has nothing: what was on its way to it is placed anew, not lost
        giveBackAll(link.id);
        lose([link.id], message.reason, true);
        return;
      case "ping":
        tellInPassing(link);
        link.channel?.send({ t: "ping" });
        return;
      case "hello":
        throw new RangeError("a second hello");
    }
  };

  const accept = (socket: Duplex, onKnown?: () => void): void => {
    let link: AgentLink | undefined;
    /** A stranger's nonsense is nothing to write down; that of one who has the token is. */
    const understand = (raw: unknown): AgentMessage => {
      try {
        return checkAgentMessage(raw);
      } catch (error) {
        const { token } = (raw ?? {}) as { token?: unknown };
        if (link === undefined && typeof token === "string" && sameSecret(token, options.token))
          log(`an agent was refused: ${(error as Error).message}`);
        throw error;
      }
    };
    sockets.add(socket);
    if (held) socket.pause();
    const channel: Channel<ServerMessage> = createChannel<unknown, ServerMessage>(
      socket,
      (raw) => {
        const message = understand(raw);
        if (link !== undefined) return onMessage(link, message);
        if (message.t !== "hello") throw new RangeError("the first message must be a hello");
        const refuse = (code: string, text: string): void => {
          log(`an agent on ${message.host} was refused: ${text}`);
          channel.send({ t: "refused", code, message: text, transient: false });
          setImmediate(() => channel.close());
        };
        if (!sameSecret(message.token, options.token)) return refuse("unauthorized", "the token was not accepted");
        const verdict = judgeVersion(message.version);
        if (verdict === "stranger")
          return refuse(
            "version-mismatch",
            `protocol version ${message.version} (Slipway ${message.slipway}) is not understood here; this server speaks ${PROTOCOL_VERSION}`,
          );
        unknown.delete(channel);
        clearTimeout(limit);
        channel.trust();
        onKnown?.();
        link = welcome(message, channel, verdict === "previous");
        log(`agent ${link?.id} on ${message.host} connected`, { pid: message.pid });
      },
      (reason) => {
        unknown.delete(channel);
        sockets.delete(socket);
        clearTimeout(limit);
        if (link === undefined || link.channel !== channel) return;
        link.channel = undefined;
        link.suspectSince = performance.now();
        scheduler.pause(link.id, true);
        log(`agent ${link.id}: ${reason}`);
        options.onSuspect(link.id);
      },
      (head) => showsToken(head, options.token),
    );
    const limit = setTimeout(() => channel.destroy("no hello"), HELLO_MS);
    unknown.add(channel);
  };

  const drain = (id: number, now: boolean, reason: string): void => {
    const link = links.get(id);
    if (link === undefined) return;
    link.draining = true;
    scheduler.pause(id, true);
    tellInPassing(link);
    link.channel?.send({ t: "drain", now, reason });
  };

  const ends = createPilotEnds(state, () => links.values(), drain);

  const lose = (ids: readonly number[], reason: string, orderly = false): void => {
    const living = ids.filter((id) => state.agents.get(id)?.ended === 0);
    if (living.length === 0) return;
    const started = saidOfLost(state, living, (agent, run, row) => links.get(agent)?.tails.get(`${run}.${row}`));
    for (const id of living) {
      const link = links.get(id);
      links.delete(id);
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
      options.onGone(id);
    }
  };

  const watch = setInterval(() => {
    for (const link of links.values()) {
      tellInPassing(link);
      if (link.channel !== undefined && !held && link.channel.silence() > SILENT_HEARTBEATS * HEARTBEAT_MS)
        link.channel.destroy("the agent is silent");
    }
  }, LOOK_MS);
  watch.unref();

  return {
    accept,
    link: (agent) => links.get(agent),
    links: () => links.values(),
    assign: (agent, parts) => {
      const link = links.get(agent);
      // without a connection they stay assigned: the next hello shows that they never arrived
      if (link?.channel !== undefined) {
        tellInPassing(link);
        sendAssignments(state, link, parts);
      }
      for (const { run, ranges } of parts) {
        const gang = state.gangs.get(gangKey(run, ranges[0]!));
        if (gang?.agents[0] === agent) gangs.assign(gang);
      }
    },
    gangOver: (gang) => gangs.over(gang),
    stop: (agent, run, row, attempt) =>
      links.get(agent)?.channel?.send({ t: "stop", tasks: [{ run: run.id, rows: [row], attempts: [attempt] }] }),
    takeBack: (agent, count) => {
      const link = links.get(agent);
      if (link?.channel === undefined || link.asked) return;
      link.asked = true;
      link.channel.send({ t: "takeback", count });
    },
    drain,
    forget: (run) => {
      outputs.forget(run);
      for (const link of links.values()) if (link.defined.delete(run)) link.over.push(run);
    },
    adopt: () => {
      for (const agent of state.agents.values()) {
        if (agent.ended > 0) continue;
        newLink(agent.id);
        scheduler.pause(agent.id, true);
      }
    },
    lose,
    loseSilent: (ids, leaseMs) => {
      const expired = ids.filter((id) => {
        const link = links.get(id);
        if (link?.suspectSince === undefined) return false;
        return performance.now() - link.suspectSince > leaseMs || engine.clock() > link.endsAt + OVERDUE_MS;
      });
      for (const id of expired) {
        const seconds = Math.round((performance.now() - links.get(id)!.suspectSince!) / 1000);
        lose([id], `silent for ${seconds} s`);
      }
    },
    importSpool: (uuid, messages) => {
      const id = state.agentByUuid.get(uuid);
      if (id === undefined) return false;
      // all of them before any: a spool is imported whole, or left alone
      const checked = messages.map(checkSpooled);
      for (const message of checked) checkResults(message);
      for (const message of checked) applyResults(id, message);
      return true;
    },
    hold: (hold) => {
      held = hold;
      for (const socket of sockets)
        if (hold) socket.pause();
        else socket.resume();
    },
    close: () => {
      clearInterval(watch);
      for (const link of links.values()) {
        tellInPassing(link);
        link.channel?.close();
      }
      for (const channel of unknown) channel.destroy("the server stops");
    },
  };
};
