import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { Ending, NO_CODE } from "../core/events.ts";
import { unpackResults } from "../core/columns.ts";
import { shapeKey } from "../core/resources.ts";
import { createPilotEnd } from "./pilot-end.ts";
import { createRankParts } from "./ranks.ts";
import type { Assign, HeldTasks, Ranks, ServerMessage } from "../protocol/messages.ts";
import { PROTOCOL_VERSION } from "../protocol/version.ts";
import { writeSpool } from "../protocol/spool.ts";
import { keepConnected } from "./connection.ts";
import { delegatedCgroup } from "./delegated-cgroup.ts";
import { detectResources } from "./detect.ts";
import { createExecutor } from "./executor.ts";
import { createLocalQueue } from "./local-queue.ts";
import { openOutputStream } from "./output-stream.ts";
import { type Result, createResultStore } from "./results.ts";
import type { AgentSettings } from "./settings.ts";
import { SlotPool } from "./slots.ts";
import { type AgentTask, type Chain, taskKey, toRanges } from "./task.ts";
import { type RunTemplate, defineRun } from "./templates.ts";

/**
 * The process on a node: takes assignments, gives each task a slot, starts it, and keeps its result until the server
 * says that it is on disk. It outlives its server: what runs goes on, results wait, and a successor is told what is here.
 */

/** Null tasks answered before the loop gets a turn for its sockets. */
const PER_TURN = 4000;
/** While others take the slots that are left, results are gathered this long: the server has nothing to give us before. */
const GATHER_MS = 20;
const PROGRESS_MS = 250;
/** How long the server is given to hear of an orderly end. */
const BYE_MS = 2000;
/** Tasks that wait in a slot behind the running one: no longer than this together, and no more than so many. */
const CHAIN_MS = 10;
const LONGEST_CHAIN = 8;

const nothingRan = (task: AgentTask): Omit<Result, "ending"> => {
  const now = Date.now();
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
  /** Take nothing new; end when empty. `now` interrupts what runs, at no cost to it. */
  drain(now: boolean, reason: string): void;
  readonly ended: Promise<string>;
}

export const startAgent = async (options: AgentOptions): Promise<RunningAgent> => {
  const { settings, log } = options;
  const uuid = randomUUID();
  const found = await detectResources({ scratch: settings.scratch, declared: settings.declared });
  const outputDirectory = join(settings.home, "output");
  await mkdir(outputDirectory, { recursive: true, mode: 0o700 });
  const output = await openOutputStream(join(outputDirectory, `${uuid}.out`));
  const pool = new SlotPool({ capacity: found.resources, cpus: found.cpus, gpus: found.gpus.indices });
  const queue = createLocalQueue<AgentTask>();
  const results = createResultStore();
  const runs = new Map<number, RunTemplate>();
  const held = new Map<number, AgentTask>();
  const running = new Set<AgentTask>();
  const chains = new Set<Chain>();
  /** Recent execution time by group, and by run for groups that have none yet. */
  const meanMs = new WeakMap<object, number>();
  const shapeNames = new Map<object, string>();
  let nextId = 1;
  let epoch = 0;
  let draining = false;
  let leaving = "";
  let flushTimer: NodeJS.Timeout | undefined;
  let flushingNow = false;
  let pumping = false;
  let finishing = false;
  let settle: (reason: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    settle = resolve;
  });

  const takeId = (): number => {
    const id = nextId;
    nextId = nextId === 0xffff_fff0 ? 1 : nextId + 1;
    return id;
  };

  const flush = (): void => {
    clearTimeout(flushTimer);
    flushTimer = undefined;
    const messages = results.take();
    // before the welcome they would overtake those that the last connection lost; the welcome sends all that wait
    if (connection.open) for (const message of messages) connection.send(message);
    checkEnd();
  };

  /** With the next turn of the loop when a slot is idle without it; gathered while every slot has work in hand. */
  const scheduleFlush = (idle: boolean): void => {
    if (flushingNow) return;
    if (idle) {
      clearTimeout(flushTimer);
      flushTimer = undefined;
      flushingNow = true;
      setImmediate(() => {
        flushingNow = false;
        flush();
      });
    } else flushTimer ??= setTimeout(flush, GATHER_MS);
  };

  /** Not another attempt of the same task that has come since. */
  const forget = (task: AgentTask): void => {
    const key = taskKey(task.run.id, task.row);
    if (held.get(key) === task) held.delete(key);
  };

  /** Returns whether a slot is free by it. */
  const conclude = (task: AgentTask): boolean => {
    forget(task);
    running.delete(task);
    const { chain } = task;
    if (chain === undefined) return false;
    task.chain = undefined;
    chain.members.splice(chain.members.indexOf(task), 1);
    if (chain.members.length > 0) return false;
    pool.release(chain.slot);
    chains.delete(chain);
    return true;
  };

  const pilotEnd = createPilotEnd(settings.lifetime, process.env["SLIPWAY_PILOT_START"]);

  const executor = await createExecutor({
    uuid,
    settings,
    cgroup: settings.cgroup === "auto" ? await delegatedCgroup() : settings.cgroup === "off" ? null : settings.cgroup,
    gpus: found.gpus,
    environment: pilotEnd.environment,
    output,
    spawners: spawnersFor(found.cpus.length),
    nativePath: options.nativePath,
    nodeEntry: options.nodeEntry,
    onDropped: (task) => {
      if (task.rank !== undefined)
        return parts.rankEnded(task, { ...nothingRan(task), ending: task.ending ?? Ending.INTERRUPTED });
      conclude(task);
      if (!task.dropped) connection.send({ t: "returned", parts: toRanges([task]) });
      checkEnd();
      pump();
    },
    onEnd: (task, result) => {
      if (task.rank !== undefined) return parts.rankEnded(task, result);
      const freed = conclude(task);
      if (result.ending === Ending.EXIT) {
        const group = task.run.groups.get(task.group)!;
        const took = result.finished - result.started;
        for (const key of [group, task.run]) meanMs.set(key, 0.8 * (meanMs.get(key) ?? took) + 0.2 * took);
      }
      if (!task.dropped) results.add(result);
      const begun = pump();
      scheduleFlush(queue.size === 0 || (freed && begun === 0));
    },
    onBroken: (reason) => {
      if (!draining) drain(false, `a spawner ended: ${reason}`);
    },
  });

  const answerNull = (task: AgentTask): void => {
    held.delete(taskKey(task.run.id, task.row));
    const now = Date.now();
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
    executor: () => executor,
    nextId: takeId,
    send: (message) => connection.send(message),
    result: (result) => {
      results.add(result);
      scheduleFlush(true);
    },
    changed: () => {
      checkEnd();
      pump();
    },
  });

  /** How many short tasks may wait in a slot behind the one that runs there. */
  const chainLength = (task: AgentTask): number => {
    const mean = meanMs.get(task.run.groups.get(task.group)!) ?? meanMs.get(task.run);
    return mean === undefined ? 0 : Math.min(LONGEST_CHAIN, Math.floor(CHAIN_MS / Math.max(mean, 0.1)));
  };

  /** Hands short tasks to the spawner ahead of time, behind running ones of the same shape, in the queue's own order. */
  const extendChains = (): void => {
    // the spawner in Node looks for strays of many tasks at once: waiting for each in turn would cost more than it saves
    if (executor.kind === "node") return;
    for (const chain of chains) {
      let filling = false;
      for (;;) {
        const task = queue.first();
        if (task === undefined) return;
        const most = chainLength(task);
        // filled up when half of it has gone, so that one message carries several
        if (task.shape !== chain.shape || chain.members.length > most || (!filling && chain.members.length > most / 2))
          break;
        filling = true;
        queue.remove(task.id);
        const after = chain.members.at(-1);
        chain.members.push(task);
        task.chain = chain;
        running.add(task);
        executor.start(task, after);
      }
    }
  };

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
        const chain: Chain = { slot, shape: task.shape, members: [task] };
        chains.add(chain);
        task.chain = chain;
        running.add(task);
        executor.start(task, undefined);
      }
    }
    extendChains();
    pumping = false;
    if (nulls > 0) scheduleFlush(queue.size === 0);
    return begun;
  };

  const shapeName = (resources: object): string => {
    let name = shapeNames.get(resources);
    if (name === undefined) {
      name = shapeKey(resources as Record<string, number>);
      shapeNames.set(resources, name);
    }
    return name;
  };

  const onRanks = (message: Ranks): void => {
    const run = runs.get(message.run);
    if (run?.groups.has(message.group) !== true) return log(`ranks of run ${message.run} before its definition`);
    parts.take(message, run);
    if (draining) parts.drain(false, leaving);
    pump();
  };

  const onAssign = (message: Assign): void => {
    const run = runs.get(message.run);
    const group = run?.groups.get(message.group);
    if (run === undefined || group === undefined)
      return log(`an assignment of run ${message.run} before its definition`);
    const { source } = group;
    const shape = shapeName(source.resources);
    let nth = 0;
    for (let i = 0; i < message.ranges.length; i += 2) {
      for (let row = message.ranges[i]!, end = row + message.ranges[i + 1]!; row < end; row += 1, nth += 1) {
        const key = taskKey(message.run, row);
        if (held.has(key)) continue; // said twice
        const resources = message.resources?.[nth];
        const task: AgentTask = {
          id: takeId(),
          shape: resources === undefined ? shape : shapeKey(resources),
          priority: source.priority,
          run,
          group: message.group,
          row,
          attempt: typeof message.attempts === "number" ? message.attempts : message.attempts[nth]!,
          item: message.items?.[nth],
          resources: resources ?? source.resources,
          chain: undefined,
          output: undefined,
          pid: 0,
          started: 0,
          ending: undefined,
          detail: undefined,
          warned: false,
          dropped: false,
          limit: undefined,
          reported: -2,
        };
        held.set(key, task);
        queue.push(task);
      }
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

  const drain = (now: boolean, reason: string): void => {
    if (!draining) leaving = reason;
    draining = true;
    log(`draining: ${reason}`);
    if (connection.open) connection.send({ t: "leaving", reason: leaving });
    giveBack(queue.size);
    if (now) for (const task of running) executor.end(task, Ending.INTERRUPTED, reason);
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
      clearTimeout(flushTimer);
      pilotEnd.stop();
      await executor.close();
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
        results.acknowledged(message.acked);
        // all that was gathered joins those that wait, so that none is left out and all go in order
        results.take();
        for (const waiting of [...results.unacknowledged, ...parts.unheard()]) connection.send(waiting);
        stopTasks(message.drop, true);
        for (const task of running) task.reported = -2;
        if (draining) {
          connection.send({ t: "leaving", reason: leaving });
          giveBack(queue.size);
        }
        return;
      case "define":
        runs.set(message.run, defineRun(runs.get(message.run), message));
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
        shapeNames.clear();
        executor.forgetRun(message.run);
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

  const heldTasks = (): HeldTasks[] => {
    const byRun = new Map<number, { run: number; rows: number[]; attempts: number[] }>();
    const note = (run: number, row: number, attempt: number): void => {
      let entry = byRun.get(run);
      if (entry === undefined) byRun.set(run, (entry = { run, rows: [], attempts: [] }));
      entry.rows.push(row);
      entry.attempts.push(attempt);
    };
    for (const task of held.values()) note(task.run.id, task.row, task.attempt);
    for (const { run, rows, attempts } of parts.held().own) note(run, rows[0]!, attempts[0]!);
    for (const message of results.unacknowledged)
      for (const part of message.parts) {
        const columns = unpackResults(part);
        columns.rows.forEach((row, i) => note(part.run, row, columns.attempt[i]!));
      }
    return [...byRun.values()];
  };

  const connection = keepConnected({
    home: settings.home,
    log,
    hello: () => {
      results.take();
      // a connection begins with nothing defined: the server defines again what it assigns
      return {
        version: PROTOCOL_VERSION,
        slipway: options.version,
        uuid,
        pilot: settings.pilot,
        host: hostname(),
        pid: process.pid,
        resources: found.resources,
        output: output.path,
        epoch,
        seq: results.seq,
        held: heldTasks(),
        endsInMs: pilotEnd.endsInMs(),
        parts: parts.held().parts,
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
      tasks.push({ run: task.run.id, row: task.row, attempt: task.attempt, started: task.started, outAt: tail });
    }
    tasks.push(...parts.progress());
    if (tasks.length > 0 && connection.open) connection.send({ t: "progress", tasks });
    if (held.size === 0 && parts.size === 0 && connection.lonelyMs() > settings.patienceMs) finish("no server");
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
  log(`agent ${uuid} on ${hostname()}: ${shapeKey(found.resources)}; ${executor.kind} spawner`);
  return { drain, ended };
};
