import type { Agents } from "../agent-links/agents.ts";
import type { AutoRequests } from "./auto-requests.ts";
import type { Counts } from "./counts.ts";
import type { Engine } from "./engine.ts";
import type { Expected } from "../learned/expected.ts";
import type { Feed } from "./feed.ts";
import type { Pilots } from "../pilots/pilots.ts";
import type { TaskJobs } from "../jobs/jobs.ts";
import type { Journal } from "../journal/index.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Log } from "./logger.ts";
import { refusedMoves } from "./refused-moves.ts";
import type { RunWatch } from "./service/run-watch.ts";

/** Connects everything: this is the only place that sets the listeners of the engine, the agents and the journal. */
export interface Wired {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  readonly jobs: TaskJobs;
  readonly feed: Feed;
  readonly runWatch: RunWatch;
  readonly expected: Expected;
  readonly requests: AutoRequests;
  readonly journal: Journal;
  readonly lifecycle: Lifecycle;
  readonly counts: Counts;
  readonly log: Log;
}

export const wire = (parts: Wired): void => {
  const { engine, agents, pilots, jobs, feed, runWatch, expected, requests, journal, lifecycle, counts, log } = parts;
  const { clock, listeners } = engine;

  feed.whenKept((action) => engine.afterDurable(action));
  listeners.committed = (event) => {
    feed.committed(event, (job) => engine.state.taskJobs.get(job)?.run);
    counts.committed(event);
    if (event.type === "run.committed" || event.type === "run.retried") {
      const run = engine.state.runs.get(event.run);
      if (run !== undefined) {
        expected.begin(run);
        requests.begin(run);
      }
      // new work gets its pilots at once, not at the next period
      setImmediate(() => pilots.expectWork());
    }
  };
  // while agents do what they were just given: nobody waits for it
  expected.later = (work) => engine.afterDurable(() => void setImmediate(work));
  listeners.runFinished = (run) => {
    feed.publishKept({ event: "run.finished", run: run.id }, clock());
    engine.afterDurable(() => agents.forget(run.id));
    runWatch.runFinished(run);
    counts.runFinished(run);
    expected.forget(run);
  };
  listeners.attemptOver = (run, row, attempt) => {
    feed.attemptOver(run, row, attempt, clock);
    requests.attemptOver(run, row, attempt);
    counts.attemptOver(attempt.lost);
  };
  listeners.taskEnded = (run, row) => {
    feed.taskEnded(run, row, clock);
    counts.taskEnded(run, row);
    expected.taskEnded(run, row);
    requests.taskEnded(run, row);
  };
  listeners.tasksCanceled = (run, _from, count) => {
    feed.publishKept({ event: "tasks.canceled", run: run.id, detail: { tasks: count } }, clock());
    counts.tasksCanceled(count);
  };
  listeners.tasksSkipped = (run, from, count) => {
    counts.tasksSkipped(count);
    requests.tasksSkipped(run, from);
  };

  listeners.moveRefused = ({ type }) => log(refusedMoves(engine.state, type));
  listeners.mayPlace = () => lifecycle.blocked() === null;
  listeners.assigned = (agent, parts, ahead, since) => {
    agents.assign(agent, parts, ahead);
    if (since !== undefined) counts.placed(parts, (clock() - since) / 1000);
  };
  listeners.assigning = agents.willAssign;
  listeners.stop = agents.stop;
  listeners.gangOver = agents.gangOver;
  listeners.takeBack = agents.takeBack;
  listeners.passed = jobs.look;

  agents.listeners.joined = (agent, pilot) => {
    if (engine.state.agents.get(agent)?.taskJob === undefined) pilots.joined(agent, pilot);
    else jobs.joined(agent);
  };
  agents.listeners.suspect = pilots.look;
  agents.listeners.gone = pilots.look;

  journal.onState((to, detail) => {
    log(`the journal is ${to}: ${detail.reason}`);
    lifecycle.setFull(to === "full" ? detail.reason : null);
    agents.hold(to === "full");
    if (detail.fatal) lifecycle.end(3);
    if (to === "ok") engine.schedulePass();
  });
};
