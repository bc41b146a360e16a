import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { Ending, NO_CODE } from "../core/events.ts";
import { shapeKey } from "../core/resources.ts";
import { createPilotEnd } from "./pilot-end.ts";
import { createRankParts } from "./ranks.ts";
import type { Assign, HeldTasks, Leaving, Ranks, ServerMessage } from "../protocol/messages.ts";
import { endpointPath } from "../protocol/endpoint.ts";
import { PROTOCOL_VERSION } from "../protocol/version.ts";
import { writeSpool } from "../protocol/spool.ts";
import { createAssignedTasks } from "./assigned-tasks.ts";
import { createChains } from "./chains.ts";
import { keepConnected } from "./connection.ts";
import { delegatedCgroup } from "./delegated-cgroup.ts";
import { detectResources } from "./detect.ts";
import { createDoubtfulEnds, isDoubtful } from "./doubtful-ends.ts";
import { createExecutor } from "./executor.ts";
import { heldTasks } from "./held-tasks.ts";
import { removeLeftovers } from "./leftovers.ts";
import { createLocalQueue } from "./local-queue.ts";
import { openOutputStream } from "./output/stream.ts";
import { createNodeClock } from "./node-clock.ts";
import { keepOwners } from "./owners.ts";
import { createResultPace } from "./result-pace.ts";
import { type Result, createResultStore } from "./results.ts";
import type { AgentSettings } from "../protocol/agent-settings.ts";
import { SlotPool } from "./slots.ts";
import { type AgentTask, taskKey, toRanges } from "./task.ts";
import { type RunTemplate, defineRun } from "./templates.ts";

/**
 * The process on a node: takes assignments, gives each task a slot, starts it, and keeps its result until the server
 * says that it is on disk. It outlives its server: what runs goes on, results wait, and a successor is told what is here.
 */

/** Null tasks answered before the loop gets a turn for its sockets. */
const PER_TURN = 4000;
const PROGRESS_MS = 250;
/** How long the server is given to hear of an orderly end. */
const BYE_MS = 2000;
const nothingRan = (task: AgentTask, now: number): Omit<Result, "ending"> => {
  const none = { outAt: -1, outBytes: 0, errBytes: 0 };
  return {
    run: task.run.id,
    row: task.row,
    attempt: task.attempt,
    code: NO_CODE,
    started: now,
    finished: now,
    ...none,
  };
};

/** A spawner stands still while a new process replaces itself (vfork): two keep two cores busy, more share many cores. */
const spawnersFor = (cpus: number): number => Math.min(cpus, 16, Math.max(2, Math.ceil(cpus / 4)));

export interface AgentOptions {
  readonly settings: AgentSettings;
  readonly version: string;
  readonly nativePath: string;
  readonly nodeEntry: readonly string[];
  readonly log: (text: string) => void;
}

export interface RunningAgent {
  /** Take nothing new; end when empty. `now` interrupts what runs, at no cost to it; `pilotEnds`: so must the others. */
  drain(now: boolean, reason: string, pilotEnds?: boolean): void;
  readonly ended: Promise<string>;
  /** Whether a server ever took it. */
  readonly joined: () => boolean;
}

export const startAgent = async (options: AgentOptions): Promise<RunningAgent> => {
  const { settings, log } = options;
  const uuid = randomUUID();
  const clock = createNodeClock();
  const { scratch, declared, managerCpus } = settings;
  const found = await detectResources({ scratch, declared, managerCpus });
  const outputDirectory = join(settings.home, "output");
  await mkdir(outputDirectory, { recursive: true, mode: 0o700 });
  const output = await openOutputStream(join(outputDirectory, `${uuid}.out`));
  const pool = new SlotPool({ capacity: found.resources, cpus: found.cpus, gpus: found.gpus.indices });
  const queue = createLocalQueue<AgentTask>();
  const results = createResultStore();
  const runs = new Map<number, RunTemplate>();
  const held = new Map<number, AgentTask>();
  const running = new Set<AgentTask>();
  const chains = createChains(pool);
  const made = createAssignedTasks();
  let epoch = 0;
  let draining = false;
  let leaving: Leaving | undefined;
  let pumping = false;
  let finishing = false;
  let settle: (reason: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    settle = resolve;
  });

  const pace = createResultPace(() => {
    const messages = results.take();
    // before the welcome they would overtake those that the last connection lost; the welcome sends all that wait
    if (connection.open) for (const message of messages) connection.send(message);
    checkEnd();
  });

  /** Not another attempt of the same task that has come since. */
  const forget = (task: AgentTask): void => {
    const key = taskKey(task.run.id, task.row);
    if (held.get(key) === task) held.delete(key);
  };

  /** Returns whether a slot is free by it. */
  const conclude = (task: AgentTask): boolean => {
    forget(task);
    running.delete(task);
    return chains.leave(task);
  };

  const pilotEnd = createPilotEnd(settings.lifetime, process.env["SLIPWAY_PILOT_START"]);

  const settleEnd = (task: AgentTask, result: Result): void => {
    if (task.rank !== undefined) return parts.rankEnded(task, result);
    const freed = conclude(task);
    chains.learn(task, result);
    if (!task.dropped) results.add(result);
    const begun = pump();
    pace.due(queue.size === 0 || (freed && begun === 0));
  };
  const doubtful = createDoubtfulEnds(settleEnd);

  const owners = await keepOwners(settings.home, uuid, settings.scratch, log);
  const executor = await createExecutor({
    uuid,
    settings,
    cgroup: settings.cgroup === "auto" ? await delegatedCgroup() : settings.cgroup === "off" ? null : settings.cgroup,
    gpus: found.gpus,
    environment: pilotEnd.environment,
    output,
    clock,
    spawners: spawnersFor(found.cpus.length),
    nativePath: options.nativePath,
    nodeEntry: options.nodeEntry,
    onSpawner: ({ pid, pipes }) => owners.add(pid, pipes),
    onDropped: (task) => {
      if (task.rank !== undefined)
        return parts.rankEnded(task, { ...nothingRan(task, clock.now()), ending: task.ending ?? Ending.INTERRUPTED });
      conclude(task);
      if (!task.dropped) connection.send({ t: "returned", parts: toRanges([task]) });
      checkEnd();
      pump();
    },
    onEnd: (task, result) => {
      if (isDoubtful(result)) doubtful.add(task, result);
      else settleEnd(task, result);
    },
    onBroken: (reason) => {
      if (!draining) drain(false, `a spawner ended: ${reason}`);
    },
  });

  const answerNull = (task: AgentTask): void => {
    held.delete(taskKey(task.run.id, task.row));
    const now = clock.now();
    results.add({
      run: task.run.id,
      row: task.row,
      attempt: task.attempt,
      ending: Ending.EXIT,
      code: 0,
      started: now,
      finished: now,
      outAt: -1,
      outBytes: 0,
      errBytes: 0,
    });
  };

  const parts = createRankParts({
    uuid,
    scratch: settings.scratch,
    pool,
    output,
    clock,
    executor: () => executor,
    make: made.make,
    send: (message) => connection.send(message),
    result: (result) => {
      results.add(result);
      pace.due(true);
    },
    changed: () => {
      checkEnd();
      pump();
    },
  });

  /** Starts whatever has a slot, and returns how many that were. */
  const pump = (): number => {
    if (pumping) return 0;
    pumping = true;
    let nulls = 0;
    let begun = 0;
    parts.pump();
    // what several agents wait for together comes before what this one has alone
    while (!parts.waiting) {
      const next = queue.next((task) => pool.allocate(task.resources));
      if (next === undefined) break;
      const { task, slot } = next;
      begun += 1;
      if (settings.executor === "null" || task.run.groups.get(task.group)!.source.executor === "null") {
        pool.release(slot);
        answerNull(task);
        nulls += 1;
        if (nulls >= PER_TURN) {
          setImmediate(pump);
          break;
        }
      } else {
        chains.open(task, slot);
        running.add(task);
        executor.start(task, undefined);
      }
    }
    // the spawner in Node looks for strays of many tasks at once: waiting for each in turn would cost more than it saves
    if (executor.kind === "native")
      chains.extend(queue, (task, after) => {
        running.add(task);
        executor.start(task, after);
      });
    pumping = false;
    if (nulls > 0) pace.due(queue.size === 0);
    return begun;
  };

  const onRanks = (message: Ranks): void => {
    const run = runs.get(message.run);
    if (run?.groups.has(message.group) !== true) return log(`ranks of run ${message.run} before its definition`);
    parts.take(message, run);
    if (leaving !== undefined) parts.drain(false, leaving.reason);
    pump();
  };

  const onAssign = (message: Assign): void => {
    const run = runs.get(message.run);
    if (run?.groups.has(message.group) !== true)
      return log(`an assignment of run ${message.run} before its definition`);
    for (const task of made.of(message, run, (row) => held.has(taskKey(message.run, row)))) {
      held.set(taskKey(message.run, task.row), task);
      queue.push(task);
    }
    if (draining) giveBack(queue.size);
    pump();
  };

  const giveBack = (count: number): void => {
    const tasks = queue.takeBack(count);
    for (const task of tasks) conclude(task);
    connection.send({ t: "returned", parts: toRanges(tasks) });
    checkEnd();
  };

  const stopTasks = (lists: readonly HeldTasks[], dropped: boolean): void => {
    const returned: AgentTask[] = [];
    for (const { run, rows, attempts } of lists) {
      for (const [i, row] of rows.entries()) {
        if (parts.stop(run, row, attempts[i]!, dropped)) continue;
        const task = held.get(taskKey(run, row));
        if (task === undefined || task.attempt !== attempts[i]) continue;
        if (dropped) {
          // superseded: its successor may come to this very agent before it has ended
          task.dropped = true;
          forget(task);
        }
        if (queue.remove(task.id) !== undefined) {
          conclude(task);
          if (!dropped) returned.push(task);
        } else executor.end(task, Ending.CANCELED, "cancelled");
      }
    }
    if (returned.length > 0) connection.send({ t: "returned", parts: toRanges(returned) });
  };

  const drain = (now: boolean, reason: string, pilotEnds = false): void => {
    if (pilotEnds) leaving = { t: "leaving", reason, pilotEnds };
    leaving ??= { t: "leaving", reason };
    draining = true;
    log(`draining: ${reason}`);
    if (connection.open) connection.send(leaving);
    giveBack(queue.size);
    if (now) {
      doubtful.interrupted();
      for (const task of running) executor.end(task, Ending.INTERRUPTED, reason);
    }
    parts.drain(now, reason);
    checkEnd();
  };

  /** When draining: ends once nothing runs and every result is on the server's disk. */
  const checkEnd = (): void => {
    if (!draining || finishing || held.size > 0 || parts.size > 0 || results.gathered > 0) return;
    if (results.unacknowledged.length > 0 && connection.open) return;
    finish("drained");
  };

  const finish = (reason: string): void => {
    if (finishing) return;
    finishing = true;
    void (async () => {
      clearInterval(ticker);
      pace.stop();
      pilotEnd.stop();
      await executor.close();
      await owners.remove();
      await output.close();
      const rest = [...results.unacknowledged, ...results.take()].filter(
        (message, i, all) => all.indexOf(message) === i,
      );
      if (rest.length > 0) log(`results without a server are in ${await writeSpool(settings.home, uuid, rest)}`);
      const orderly = held.size === 0 && rest.length === 0 && connection.open;
      if (orderly) connection.send({ t: "bye", reason });
      await connection.stop(orderly ? BYE_MS : 0);
      settle(reason);
    })();
  };

  const onMessage = (message: ServerMessage): void => {
    switch (message.t) {
      case "welcome":
        if (message.epoch < epoch) {
          connection.drop(`a server of epoch ${message.epoch}, but epoch ${epoch} was met before`);
          return;
        }
        epoch = message.epoch;
        clock.adopt(message.now);
        results.acknowledged(message.acked);
        // all that was gathered joins those that wait, so that none is left out and all go in order
        results.take();
        for (const waiting of [...results.unacknowledged, ...parts.unheard()]) connection.send(waiting);
        stopTasks(message.drop, true);
        for (const task of running) task.reported = -2;
        if (leaving !== undefined) {
          connection.send(leaving);
          giveBack(queue.size);
        }
        return;
      case "define":
        runs.set(message.run, defineRun(runs.get(message.run), message));
        if (message.output !== undefined) output.limit(message.run, message.output);
        return;
      case "output":
        if (runs.has(message.run)) output.limit(message.run, message);
        return;
      case "assign":
        return onAssign(message);
      case "ranks":
        return onRanks(message);
      case "ranks-done":
        return parts.othersDone(message);
      case "ranks-kept":
        return parts.kept(message.run, message.row, message.attempt);
      case "ranks-over":
        return parts.over(message.run, message.row, message.attempt);
      case "stop":
        return stopTasks(message.tasks, false);
      case "takeback":
        return giveBack(message.count);
      case "ack":
        results.acknowledged(message.seq);
        return checkEnd();
      case "drain":
        return drain(message.now, message.reason);
      case "forget":
        runs.delete(message.run);
        made.forget();
        executor.forgetRun(message.run);
        output.forget(message.run);
        return;
      case "refused":
        // a stranger, or a version too old: what runs is ended, results are spooled
        if (!message.transient) {
          log(`refused for good: ${message.message}`);
          for (const task of running) executor.end(task, Ending.INTERRUPTED, message.message);
          parts.drain(true, message.message);
          draining = true;
          checkEnd();
        }
        return;
      case "ping":
    }
  };

  function* attempts() {
    for (const { run, row, attempt } of held.values()) yield { run: run.id, row, attempt };
  }

  const connection = keepConnected({
    endpointFile: settings.endpointFile ?? endpointPath(settings.home),
    tokenFile: settings.tokenFile ?? join(settings.home, "keys", "agent.token"),
    log,
    hello: () => {
      results.take();
      // a connection begins with nothing defined: the server defines again what it assigns
      return {
        version: PROTOCOL_VERSION,
        slipway: options.version,
        uuid,
        pilot: settings.pilot,
        ...(settings.cluster === undefined ? {} : { cluster: settings.cluster }),
        ...(settings.queue === undefined ? {} : { queue: settings.queue }),
        host: hostname(),
        pid: process.pid,
        resources: found.resources,
        output: output.path,
        epoch,
        seq: results.seq,
        held: heldTasks([...attempts(), ...parts.own()], results.unacknowledged),
        endsInMs: pilotEnd.endsInMs(),
        parts: heldTasks(parts.others(), []),
      };
    },
    onMessage,
    onOpen: () => undefined,
    onClose: (reason) => {
      log(`lost the server: ${reason}`);
      if (draining) checkEnd();
    },
  });

  const ticker = setInterval(() => {
    const tasks = [];
    for (const task of running) {
      const tail = task.output === undefined ? -1 : output.tail(task.output);
      if (task.reported === tail || task.started === 0) continue;
      task.reported = tail;
      const { row, attempt } = task;
      tasks.push({
        run: task.run.id,
        row,
        attempt,
        started: clock.at(task.started),
        outAt: tail,
        kept: task.output?.taken ?? 0,
      });
    }
    tasks.push(...parts.progress());
    const others = parts.progressOfOthers();
    if ((tasks.length > 0 || others.length > 0) && connection.open)
      connection.send({ t: "progress", tasks, ...(others.length > 0 ? { parts: others } : {}) });
    const patience = epoch === 0 ? (settings.firstPatienceMs ?? settings.patienceMs) : settings.patienceMs;
    if (held.size === 0 && parts.size === 0 && connection.lonelyMs() > patience) finish("no server");
  }, PROGRESS_MS);

  pilotEnd.arm({
    drain: (reason) => drain(false, reason),
    signal: (name) => {
      if (!draining) drain(false, "its pilot is about to end");
      executor.warn(name);
    },
    end: (reason) => {
      for (const task of running) executor.end(task, Ending.CUT_OFF, reason);
      parts.drain(true, reason, Ending.CUT_OFF);
      drain(true, reason);
    },
  });
  void removeLeftovers(settings.home, log);
  log(`agent ${uuid} on ${hostname()}: ${shapeKey(found.resources)}; ${executor.kind} spawner`);
  return { drain, ended, joined: () => epoch > 0 };
};
