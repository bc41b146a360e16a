import type { Service } from "../api/service.ts";
import type { RunView, ServerView } from "../api/schemas.ts";
import type { ClustersConfig } from "../config/clusters-file.ts";
import { type Resources, fromUnits } from "../core/resources.ts";
import { type Run, type Shape, groupOf, isFinishedRun, rowOfIndex, shapeOfRow } from "../core/run.ts";
import { bringBack } from "../core/snapshot.ts";
import { TASK_STATES, Task, isFinalPilot, isFinalTask } from "../core/states.ts";
import { stateOf } from "../core/table.ts";
import { SlipwayError } from "../errors.ts";
import type { Agents } from "../agent-links/agents.ts";
import { readArchive, readArchiveSync } from "./archive/archive.ts";
import type { Engine } from "./engine.ts";
import type { Feed } from "./feed.ts";
import { knownOf } from "./fleets/largest.ts";
import type { Pilots } from "./fleets/pilots.ts";
import { type LogSource, checkAttempt, runOutput, stderrTail, taskOutput } from "./logs.ts";
import type { PilotService } from "./pilot-service.ts";
import { groupViews, runView, summaryView, taskView } from "./views.ts";
import { type ManagerSays, type Surroundings, whyRun, whyTask } from "./why.ts";

/** The server as the API sees it. */

const WATCH_MS = 100;
const CACHED_RUNS = 4;
const RECENT_RUNS = 5;

export interface ServiceOptions {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  readonly pilotService: PilotService;
  readonly feed: Feed;
  readonly home: string;
  readonly clusters: ClustersConfig;
  readonly largest: ReadonlyMap<string, Resources>;
  readonly about: () => ServerView;
  /** Why nothing is placed now, or null. */
  readonly blocked: () => string | null;
  /** Throws when changes cannot be taken now. */
  readonly mayChange: () => void;
  /** How many launches have not ended. */
  readonly launches: () => number;
  readonly submit: Service["submit"];
  readonly checkCluster: Service["checkCluster"];
  readonly stop: (now: boolean) => void;
  readonly compact: () => Promise<void>;
}

export const createService = (options: ServiceOptions): Service => {
  const { engine, agents, feed } = options;
  const { state } = engine;
  const { pilotViews, fleetViews, addPilots, drainPilot, cancelPilot } = options.pilotService;
  const cache = new Map<string, Promise<Run>>();
  let submitting = 0;

  /** A run with all its details, from memory or from its file. */
  const wholeRun = async (id: number): Promise<Run> => {
    const live = state.runs.get(id);
    if (live !== undefined) return live;
    const summary = state.archived.get(id);
    if (summary === undefined) throw new SlipwayError("no-such-run", { run: id });
    const known = cache.get(summary.file) ?? readArchive(options.home, summary.file);
    cache.delete(summary.file);
    cache.set(summary.file, known);
    if (cache.size > CACHED_RUNS) cache.delete(cache.keys().next().value!);
    try {
      return await known;
    } catch (error) {
      cache.delete(summary.file);
      throw error;
    }
  };

  const rowOf = (run: Run, index: number): number => {
    const row = rowOfIndex(run, index);
    if (row === undefined) throw new SlipwayError("no-such-task", { run: run.id, task: index });
    return row;
  };

  const logSource: LogSource = {
    state,
    tailOf: (agent, run, row) => agents.link(agent)?.tails.get(`${run}.${row}`) ?? -1,
  };

  /** What the manager says of a pilot that waits or is suspended. */
  const saidOf = (pilot: number): ManagerSays | null => {
    const waiting = options.pilots.waiting(pilot);
    return waiting === null ? null : { text: `pilot ${pilot} is ${waiting.text}`, remedy: waiting.remedy };
  };

  const surroundings = (shape: Shape): Surroundings => {
    const able = options.pilots.able(shape);
    const serve = ({ cluster, queue }: { cluster: string; queue: string }): boolean =>
      able.some((fleet) => fleet.cluster === cluster && fleet.queue === queue);
    const live = [...state.pilots.values()].filter((pilot) => !isFinalPilot(pilot.state) && serve(pilot));
    const links = [...agents.links()].filter(({ id }) => {
      const pilot = state.pilots.get(state.agents.get(id)?.pilot ?? 0);
      return pilot === undefined || serve(pilot);
    });
    const taking = links.filter((link) => link.channel !== undefined && !link.draining);
    const now = engine.clock();
    const loads = links.map((link) => engine.scheduler.loadOf(link.id)?.count ?? 0);
    return {
      state,
      now,
      blocked: options.blocked(),
      able: able.length > 0 || links.length > 0,
      place: shape.cluster ?? options.clusters.default,
      fleetProblem:
        able.map(({ cluster, queue }) => options.pilots.problem(cluster, queue)).find((text) => text !== null) ?? null,
      lastFailure:
        able.map(({ cluster, queue }) => options.pilots.failure(cluster, queue)).find((text) => text !== null) ?? null,
      livePilots: live.length,
      waitingPilots: live.map(({ id }) => saidOf(id)).filter((said) => said !== null),
      stalledBy: (agent) => saidOf(state.agents.get(agent)?.pilot ?? 0),
      connectedAgents: links.filter((link) => link.channel !== undefined).length,
      suspectAgents: links.filter((link) => link.channel === undefined).length,
      tooLate: taking.length > 0 && taking.every(({ endsAt }) => endsAt - now < shape.timeRequest * 1000),
      runningTasks: loads.reduce((sum, count) => sum + count, 0),
      waitingTasks: engine.scheduler.waiting(),
    };
  };

  const allRuns = (): number[] => [...new Set([...state.runs.keys(), ...state.archived.keys()])].sort((a, b) => b - a);

  const shortView = (id: number): RunView => {
    const run = state.runs.get(id);
    return run === undefined ? summaryView(state.archived.get(id)!) : runView(run, engine.clock());
  };

  const fullView = (run: Run): RunView => ({ ...runView(run, engine.clock()), groups: groupViews(run) });

  async function* watchRun(id: number, signal: AbortSignal): AsyncGenerator<RunView> {
    let last = "";
    for (;;) {
      const view = shortView(id);
      const { eta: _, ...facts } = view;
      const text = JSON.stringify(facts);
      // the end is told when it is on disk
      if (view.finished !== null) await engine.whenDurable();
      if (text !== last) yield view;
      last = text;
      if (view.finished !== null || signal.aborted) return;
      await nextChange(id, signal);
    }
  }

  /** Resolves after a moment, or at once when the run ends. */
  const nextChange = (id: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        finishers.get(id)?.delete(done);
        resolve();
      };
      const timer = setTimeout(done, WATCH_MS);
      signal.addEventListener("abort", done, { once: true });
      if (!finishers.has(id)) finishers.set(id, new Set());
      finishers.get(id)!.add(done);
    });
  const finishers = new Map<number, Set<() => void>>();
  const tellOthers = engine.listeners.runFinished;
  engine.listeners.runFinished = (run) => {
    tellOthers(run);
    for (const wake of finishers.get(run.id) ?? []) wake();
    finishers.delete(run.id);
  };

  return {
    server: options.about,
    status: () => {
      const ids = allRuns();
      const live = ids.filter((id) => state.runs.get(id)?.finished === 0);
      const ended = ids.filter((id) => state.runs.get(id)?.finished !== 0).slice(0, RECENT_RUNS);
      return {
        server: options.about(),
        fleets: fleetViews(),
        pilots: pilotViews().filter((pilot) => pilot.ended === null),
        runs: [...live, ...ended].map(shortView),
      };
    },
    submit: async (lines) => {
      submitting += 1;
      try {
        return await options.submit(lines);
      } finally {
        submitting -= 1;
      }
    },
    runs: (limit) => allRuns().slice(0, limit).map(shortView),
    run: async (id) => fullView(await wholeRun(id)),
    watch: async (id, signal) => {
      await wholeRun(id);
      return watchRun(id, signal);
    },
    tasks: async (id, query) => {
      const run = await wholeRun(id);
      const code = query.state === undefined ? undefined : (TASK_STATES as readonly string[]).indexOf(query.state);
      if (code === -1) throw new SlipwayError("bad-request", { detail: `there is no task state ${query.state}` });
      const rows: number[] = [];
      let skip = query.offset;
      for (let row = 0; row < run.total && rows.length < query.limit; row += 1) {
        if (code !== undefined && stateOf(run.table, row) !== code) continue;
        if (skip > 0) skip -= 1;
        else rows.push(row);
      }
      return Promise.all(
        rows.map(async (row) =>
          taskView(
            state,
            run,
            row,
            stateOf(run.table, row) === Task.FAILED ? await stderrTail(logSource, run, row) : null,
          ),
        ),
      );
    },
    task: async (id, index) => {
      const run = await wholeRun(id);
      const row = rowOf(run, index);
      return taskView(state, run, row, await stderrTail(logSource, run, row));
    },
    taskLogs: async (id, index, query) => {
      const run = await wholeRun(id);
      const row = rowOf(run, index);
      checkAttempt(run, row, query);
      return taskOutput(logSource, run, row, query);
    },
    runLogs: async (id, query) => runOutput(logSource, await wholeRun(id), query),
    cancel: async (id, indices, reason) => {
      options.mayChange();
      if (state.archived.has(id) && !state.runs.has(id)) return { run: id, canceled: 0, stopping: 0 };
      const run = await wholeRun(id);
      const rows = indices?.map((index) => rowOf(run, index));
      const before = run.counts[Task.CANCELED]!;
      if (!isFinishedRun(run))
        engine.commit({
          type: "run.canceled",
          at: engine.clock(),
          run: id,
          reason,
          ...(rows === undefined ? {} : { rows }),
        });
      const canceled = run.counts[Task.CANCELED]! - before;
      let stopping = 0;
      for (const page of run.table.pages)
        if (page !== undefined)
          for (let slot = 0; slot < page.flags.length; slot += 1)
            if ((page.flags[slot]! & 1) !== 0 && !isFinalTask(page.state[slot]!)) stopping += 1;
      engine.schedulePass();
      await engine.whenDurable();
      return { run: id, canceled, stopping };
    },
    retry: async (id, which) => {
      options.mayChange();
      await wholeRun(id);
      bringBack(state, id, { restore: (summary) => readArchiveSync(options.home, summary.file) });
      const run = state.runs.get(id)!;
      if (!isFinishedRun(run))
        throw new SlipwayError("run-active", { run: id, detail: "only a run that has ended can be retried" });
      // a handler that was not needed neither failed nor was cancelled
      const reopened = which === "all" ? run.total : run.total - run.counts[Task.DONE]! - run.unneeded;
      if (reopened > 0) engine.commit({ type: "run.retried", at: engine.clock(), run: id, which });
      engine.schedulePass();
      options.pilots.expectWork();
      await engine.whenDurable();
      return { run: id, reopened };
    },
    why: async (id, index) => {
      const run = await wholeRun(id);
      if (index === undefined && run.total !== 1) {
        const ready = run.groups.find(
          ({ base, count, done, failed, canceled }) => base === Task.PENDING && done + failed + canceled < count,
        );
        return whyRun(surroundings((ready ?? run.groups[0]!).shape), run);
      }
      const row = index === undefined ? 0 : rowOf(run, index);
      const around = surroundings(shapeOfRow(groupOf(run.groups, row), row));
      return whyTask(around, run, row, await stderrTail(logSource, run, row));
    },
    async *events(query, signal) {
      if (query.run !== undefined && !state.runs.has(query.run) && !state.archived.has(query.run))
        throw new SlipwayError("no-such-run", { run: query.run });
      const live = query.follow ? feed.follow(query.run, signal) : undefined;
      // the follower begins to listen with its first step: take that before the past is read
      const first = live?.next();
      let last = query.since;
      for (const event of feed.since(query.since, query.run)) {
        last = event.seq;
        yield event;
      }
      if (live === undefined) return;
      for (let step = await first!; step.done !== true; step = await live.next())
        if ("resume" in step.value || step.value.seq > last) yield step.value;
    },
    pilots: pilotViews,
    addPilots,
    drainPilot,
    cancelPilot,
    clusters: () =>
      [...options.clusters.clusters.values()].map((cluster) => ({
        name: cluster.name,
        type: cluster.type,
        default: cluster.name === options.clusters.default,
        queues: [...cluster.queues.keys()],
        resources: Object.fromEntries(
          Object.entries(knownOf(options.largest.get(cluster.name) ?? cluster.resources)).map(([name, units]) => [
            name,
            fromUnits(name, units),
          ]),
        ),
      })),
    checkCluster: options.checkCluster,
    compact: options.compact,
    stop: (now, idle) => {
      if (
        idle &&
        (submitting > 0 || options.launches() > 0 || [...state.runs.values()].some((run) => !isFinishedRun(run)))
      )
        return { state: "running" };
      options.stop(now);
      return { state: "stopping" };
    },
  };
};
