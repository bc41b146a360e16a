import type { Service } from "../../api/service.ts";
import { type Shape, groupOf, shapeOfRow } from "../../core/run.ts";
import { Task, isFinalPilot } from "../../core/states.ts";
import { stderrTail } from "../../logs/tails.ts";
import { capacityIn } from "../../pilots/accounts.ts";
import type { Agent } from "../../core/state.ts";
import { type SharedFacts, sharedWait } from "../../views/shared-wait.ts";
import { type ManagerSays, type Surroundings, whyRun, whyTask } from "../../views/why.ts";
import type { ServiceContext } from "./context.ts";
import type { JobService } from "./job-service.ts";
import { rowOfTask } from "./run-shelf.ts";
import type { PilotId } from "../../core/ids.ts";

/** Why a task is where it is: collects for `why` what is known about pilots and agents that could run it. */

/** What the manager says about a pilot that waits or is suspended. */
const saidOf = ({ pilots }: ServiceContext, pilot: PilotId): ManagerSays | null => {
  const waiting = pilots.waiting(pilot);
  return waiting === null ? null : { text: `pilot ${pilot} is ${waiting.text}`, remedy: waiting.remedy };
};

/** What it waits for of what all agents of its cluster share. */
const sharedBy = ({ engine, clusters, shared }: ServiceContext, shape: Shape): string | undefined => {
  const { state, scheduler } = engine;
  const cluster = shape.cluster ?? clusters.default;
  const clusterOf = (agent: Agent): string =>
    state.pilots.get(agent.pilot)?.cluster ?? agent.cluster ?? clusters.default;
  const agents = [...state.agents.values()].filter((agent) => agent.ended === 0 && clusterOf(agent) === cluster);
  const facts: SharedFacts = {
    state,
    capacity: capacityIn(shared, cluster),
    free: scheduler.sharedIn(cluster),
    agents: new Set(agents.map(({ id }) => id)),
    of: clusters.clusters.get(cluster)?.type === "local" ? "this machine" : `cluster ${cluster}`,
  };
  return sharedWait(facts, shape);
};

/** Why the cluster of a task cannot be used, and since when. */
const unusableSince = ({ standings, clusters }: ServiceContext, shape: Shape): string | null => {
  const standing = standings.of(shape.cluster ?? clusters.default);
  if (standing == null) return null;
  return `${standing.cause} (so since ${new Date(standing.since).toISOString().slice(0, 19).replace("T", " ")} UTC)`;
};

const surroundings = (
  context: ServiceContext,
  jobs: JobService,
  shape: Shape,
  job: Surroundings["job"],
): Surroundings => {
  const { engine, agents, pilots } = context;
  const { state } = engine;
  const able = pilots.able(shape);
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
    blocked: context.blocked(),
    able: able.length > 0 || links.length > 0,
    place: shape.cluster ?? context.clusters.default,
    fleetProblem:
      unusableSince(context, shape) ??
      able.map(({ cluster, queue }) => pilots.problem(cluster, queue)).find((text) => text !== null) ??
      null,
    lastFailure: able.map(({ cluster, queue }) => pilots.failure(cluster, queue)).find((text) => text !== null) ?? null,
    livePilots: live.length,
    waitingPilots: live.map(({ id }) => saidOf(context, id)).filter((said) => said !== null),
    stalledBy: (agent) => {
      const { taskJob, pilot = 0 } = state.agents.get(agent) ?? {};
      return taskJob === undefined ? saidOf(context, pilot) : jobs.stalled(taskJob.id, taskJob.element);
    },
    connectedAgents: links.filter((link) => link.channel !== undefined).length,
    suspectAgents: links.filter((link) => link.channel === undefined).length,
    tooLate: taking.length > 0 && taking.every(({ endsAt }) => endsAt - now < shape.timeRequest * 1000),
    sharedWait: sharedBy(context, shape) ?? null,
    runningTasks: loads.reduce((sum, count) => sum + count, 0),
    waitingTasks: engine.scheduler.waiting(),
    heldBack: (run, row) => engine.scheduler.isHeld(run, row),
    before: (run, row) => engine.scheduler.before(run, row),
    job,
    expected: (run, row) => ({ ms: context.expected.ofTask(run, row), basis: context.expected.basisOf(run, row) }),
  };
};

export const createWhyService = (context: ServiceContext, jobs: JobService): Pick<Service, "why"> => ({
  why: async (id, index) => {
    const run = await context.shelf.whole(id);
    if (index === undefined && run.total !== 1) {
      const ready = run.groups.find(
        ({ base, count, done, failed, canceled }) => base === Task.PENDING && done + failed + canceled < count,
      );
      const { shape, index: group } = ready ?? run.groups[0]!;
      return whyRun(surroundings(context, jobs, shape, jobs.around(run, group, undefined)), run);
    }
    const row = index === undefined ? 0 : rowOfTask(run, index);
    const group = groupOf(run.groups, row);
    const around = surroundings(context, jobs, shapeOfRow(group, row), jobs.around(run, group.index, row));
    return whyTask(around, run, row, await stderrTail(context.logs, run, row));
  },
});
