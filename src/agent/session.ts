import { hostname } from "node:os";
import { Ending } from "../core/events.ts";
import type { Assign, Hello, HeldTasks, Ranks, ServerMessage, Singles, Welcome } from "../protocol/messages.ts";
import type { OwnRanks } from "../protocol/agent-settings.ts";
import { PROTOCOL_VERSION } from "../protocol/version.ts";
import type { Assignments } from "./assignments.ts";
import type { Connection, ConnectionListener } from "./connection.ts";
import type { Departure } from "./departure.ts";
import type { Executor } from "./executor.ts";
import { heldTasks } from "./held-tasks.ts";
import type { NodeClock } from "./node-clock.ts";
import type { OutputStream } from "./output/stream.ts";
import { forgetProgress } from "./progress.ts";
import { inOwnJob } from "./ranks/own-job.ts";
import type { RankParts } from "./ranks/parts.ts";
import type { ResultStore } from "./results.ts";
import type { SlotLine } from "./slot-line.ts";
import { type AgentTask, taskKey, toRanges } from "./task.ts";
import { type RunTemplate, defineRun } from "./templates.ts";
import type { RunId } from "../core/ids.ts";

/**
 * The conversation of agent and server. The agent reports what it has, and accepts a server that is not older than the
 * last one. So it outlives its server, and it sends again the results that a lost connection may have swallowed.
 */
export interface Session extends ConnectionListener {
  /** The highest epoch of any server it has met; 0 before the first. */
  readonly epoch: number;
}

export interface SessionOptions {
  /** What the agent says about itself, besides what it holds. */
  readonly identity: Pick<
    Hello,
    "slipway" | "uuid" | "pilot" | "cluster" | "queue" | "taskJob" | "resources" | "output"
  >;
  readonly endsInMs: () => number | undefined;
  /** Ranks have the whole job to themselves. */
  readonly ranks: OwnRanks | undefined;
  readonly connection: Connection;
  readonly assignments: Assignments;
  readonly parts: RankParts;
  readonly line: SlotLine;
  readonly executor: Executor;
  readonly results: ResultStore;
  readonly output: OutputStream;
  readonly clock: NodeClock;
  readonly departure: Departure;
  readonly log: (text: string) => void;
}

const stopTasks = (
  { parts, assignments, connection }: SessionOptions,
  lists: readonly HeldTasks[],
  superseded: boolean,
) => {
  const returned: AgentTask[] = [];
  for (const { run, rows, attempts } of lists) {
    for (const [i, row] of rows.entries()) {
      if (parts.stop(run, row, attempts[i]!, superseded)) continue;
      returned.push(...assignments.stop(run, row, attempts[i]!, superseded));
    }
  }
  // of those that the server has taken away it wants to hear nothing more
  const taken = new Set(superseded ? lists.flatMap(({ run, rows }) => rows.map((row) => taskKey(run, row))) : []);
  const rest = toRanges(returned.filter(({ run, row }) => !taken.has(taskKey(run.id, row))));
  if (rest.length > 0) connection.send({ t: "returned", parts: rest });
};

/** What a server must know of this agent before it can welcome it. */
const helloOf = ({ identity, endsInMs, assignments, parts, results }: SessionOptions, epoch: number) => {
  results.take();
  // a new connection has no definitions: the server defines again what it assigns
  return {
    version: PROTOCOL_VERSION,
    ...identity,
    host: hostname(),
    pid: process.pid,
    epoch,
    seq: results.seq,
    held: heldTasks([...assignments.attempts(), ...parts.own()], results.unacknowledged),
    endsInMs: endsInMs(),
    parts: heldTasks(parts.others(), []),
    ahead: true,
    singles: true,
    alike: true,
  };
};

/** An agent for one task has it now: what did not begin at once was not for it. */
const onlyThis = ({ identity, departure, assignments }: SessionOptions): void => {
  if (identity.taskJob === undefined) return;
  departure.finish();
  if (assignments.size > assignments.running.size) assignments.giveBack();
};

/** Takes new tasks, and starts what it can of them. */
const begin = (options: SessionOptions, take: () => void): void => {
  const { assignments, departure, line } = options;
  take();
  if (departure.draining) assignments.giveBack();
  line.serve();
  onlyThis(options);
};

export const createSession = (options: SessionOptions): Session => {
  const { connection, assignments, parts, line, executor, results, output, departure, log } = options;
  const runs = new Map<number, RunTemplate>();
  let epoch = 0;

  const onWelcome = (message: Welcome): void => {
    if (message.epoch < epoch)
      return connection.drop(`its epoch is ${message.epoch}, but this agent has already met epoch ${epoch}`);
    epoch = message.epoch;
    options.clock.adopt(message.now);
    results.acknowledged(message.acked);
    // everything gathered joins the results that wait, so that none is left out and all go in order
    results.take();
    for (const waiting of [...results.unacknowledged, ...parts.unheard()]) connection.send(waiting);
    stopTasks(options, message.drop, true);
    forgetProgress(assignments.running);
    if (departure.leaving === undefined) return;
    connection.send(departure.leaving);
    assignments.giveBack();
  };

  /** The template of a run; undefined, with a line in the log, if the group is not defined. */
  const known = (what: string, { run, group }: { run: RunId; group: number }): RunTemplate | undefined => {
    const template = runs.get(run);
    if (template?.groups.has(group) === true) return template;
    log(`${what} of run ${run} before its definition`);
    return undefined;
  };

  const onAssign = (message: Assign): void => {
    const run = known("an assignment", message);
    if (run !== undefined) begin(options, () => assignments.take(message, run));
  };

  const onSingles = (message: Singles): void => {
    let run: RunTemplate | undefined;
    for (const group of message.groups)
      if ((run = known("an assignment", { run: message.run, group })) === undefined) return;
    if (run !== undefined) begin(options, () => assignments.takeSingles(message, run));
  };

  const onRanks = (message: Ranks): void => {
    const run = known("ranks", message);
    if (run === undefined) return;
    parts.take(options.ranks === undefined ? message : inOwnJob(message, options.ranks), run);
    if (departure.leaving !== undefined) parts.drain(false, departure.leaving.reason);
    line.serve();
    onlyThis(options);
  };

  const forget = (run: RunId): void => {
    runs.delete(run);
    executor.forgetRun(run);
    output.forget(run);
  };

  /** By a stranger, or because our version is too old: ends what runs and spools the results. */
  const refusedForGood = (reason: string): void => {
    log(`refused for good: ${reason}`);
    assignments.endRunning(Ending.INTERRUPTED, reason);
    parts.drain(true, reason);
    departure.begin();
    departure.check();
  };

  const received = (message: ServerMessage): void => {
    switch (message.t) {
      case "welcome":
        return onWelcome(message);
      case "define":
        runs.set(message.run, defineRun(runs.get(message.run), message));
        if (message.output !== undefined) output.limit(message.run, message.output);
        return;
      case "output":
        if (runs.has(message.run)) output.limit(message.run, message);
        return;
      case "assign":
        return onAssign(message);
      case "singles":
        return onSingles(message);
      case "ranks":
        return onRanks(message);
      case "ranks-done":
        return parts.othersDone(message);
      case "ranks-kept":
        return parts.kept(message.run, message.row, message.attempt);
      case "ranks-over":
        return parts.over(message.run, message.row, message.attempt);
      case "stop":
        return stopTasks(options, message.tasks, false);
      case "takeback":
        return assignments.giveBack(message.count);
      case "ack":
        results.acknowledged(message.seq);
        return departure.check();
      case "drain":
        return departure.drain(message.now, message.reason);
      case "forget":
        return forget(message.run);
      case "refused":
        if (!message.transient) refusedForGood(message.message);
        return;
      case "ping":
    }
  };

  return {
    get epoch() {
      return epoch;
    },
    received,
    hello: () => helloOf(options, epoch),
    lost: (reason) => {
      log(`lost the server: ${reason}`);
      departure.check();
    },
  };
};
