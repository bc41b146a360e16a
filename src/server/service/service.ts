import type { Agents } from "../../agent-links/agents.ts";
import { pageOf } from "../../api/pages.ts";
import type { Service } from "../../api/service.ts";
import type { ClusterView, RunView, ServerView } from "../../api/schemas.ts";
import type { ClusterConfig, ClustersConfig } from "../../config/clusters-file.ts";
import { type Resources, fromUnits } from "../../core/resources.ts";
import { runState } from "../../core/run.ts";
import { SlipwayError } from "../../errors.ts";
import type { Engine } from "../engine.ts";
import type { Fallback } from "../fallback.ts";
import type { Expected } from "../../learned/expected.ts";
import type { Feed } from "../feed.ts";
import { knownOf } from "../../pilots/largest.ts";
import type { Pilots } from "../../pilots/pilots.ts";
import { efficiencyView } from "../../views/efficiency.ts";
import { groupViews, runView, summaryView } from "../../views/views.ts";
import type { ServiceContext } from "./context.ts";
import { createJobService } from "./job-service.ts";
import type { PilotService } from "./pilot-service.ts";
import { createDetailService } from "./detail-service.ts";
import { createFailureService } from "./failure-service.ts";
import { createRetry } from "./retry.ts";
import { createRunChanges } from "./run-changes.ts";
import { createRunShelf } from "./run-shelf.ts";
import type { RunWatch } from "./run-watch.ts";
import { createSubmitText } from "./submit-text.ts";
import { createTaskService } from "./task-service.ts";
import { createTimelineService } from "./timeline-service.ts";
import { createOutputs } from "./outputs.ts";
import { createValidate } from "./validate.ts";
import { type Etas, createEtas } from "./etas.ts";
import { type StageService, createStageService } from "./stage-service.ts";
import { createTaskTable } from "./task-table.ts";
import { createWhyNames } from "./why-names.ts";
import { createWhyService } from "./why-service.ts";
import type { AgentId, Row, RunId } from "../../core/ids.ts";
import { wrapViews } from "../../wrap/report/view.ts";

/** The server as the API sees it. */

const RECENT_RUNS = 5;

export interface ServiceOptions {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  readonly taskJobs: ServiceContext["taskJobs"];
  readonly pilotService: PilotService;
  readonly runWatch: RunWatch;
  readonly feed: Feed;
  readonly expected: Expected;
  readonly home: string;
  readonly clusters: ClustersConfig;
  readonly largest: ReadonlyMap<string, Resources>;
  readonly shared: ServiceContext["shared"];
  readonly standings: ServiceContext["standings"];
  readonly fallback: Fallback;
  readonly about: () => ServerView;
  /** Why nothing is placed now, or null. */
  readonly blocked: () => string | null;
  /** Throws when changes may not be made now. */
  readonly mayChange: () => void;
  /** How many launches have not ended. */
  readonly launches: () => number;
  /** When runs end; worked out unless somebody knows better. */
  readonly etas?: Etas;
  readonly submit: Service["submit"];
  readonly checkCluster: Service["checkCluster"];
  readonly reloadClusters: Service["reloadClusters"];
  readonly stop: (now: boolean) => void;
  readonly compact: () => Promise<void>;
}

/** Why a cluster cannot be used. */
const problemOf = (
  { standings, fallback }: ServiceOptions,
  cluster: ClusterConfig,
): Partial<Pick<ClusterView, "problem">> => {
  const standing = standings.of(cluster.name);
  if (standing === undefined) return {};
  if (standing === null) return { problem: null };
  const { cause, remedy, since } = standing;
  return { problem: { cause, remedy, since: new Date(since).toISOString(), tasks: fallback.goTo(cluster, standing) } };
};

const clusterViews = ({ clusters, largest, ...options }: ServiceOptions): ReturnType<Service["clusters"]> =>
  [...clusters.clusters.values()].map((cluster) => ({
    name: cluster.name,
    type: cluster.type,
    default: cluster.name === clusters.default,
    queues: [...cluster.queues.keys()],
    resources: Object.fromEntries(
      Object.entries(knownOf(largest.get(cluster.name) ?? cluster.resources)).map(([name, units]) => [
        name,
        fromUnits(name, units),
      ]),
    ),
    ...problemOf({ clusters, largest, ...options }, cluster),
  }));

/** What the server itself asks of it, beside what the API does. */
export interface ServerService extends Service, StageService {}

export const createService = (options: ServiceOptions): ServerService => {
  const { engine, agents, feed } = options;
  const { state } = engine;
  const { pilotViews, fleetViews, addPilots, drainPilot, cancelPilot } = options.pilotService;
  const shelf = createRunShelf(state, options.home);
  const logs = {
    state,
    tailOf: (agent: AgentId, run: RunId, row: Row) => agents.link(agent)?.tails.get(`${run}.${row}`) ?? -1,
  };
  const context: ServiceContext = { ...options, shelf, logs };
  const etas = options.etas ?? createEtas(context);
  const jobs = createJobService(context, pilotViews);
  const whyService = createWhyService(context, jobs);
  let submitting = 0;

  const shortView = (id: number): RunView => {
    const run = state.runs.get(id);
    return run === undefined ? summaryView(state.archived.get(id)!) : runView(run, engine.clock(), etas.of(run));
  };

  const nameOf = (id: number): string | undefined => state.runs.get(id)?.spec.name ?? state.archived.get(id)?.name;
  const stateOf = (id: number): RunView["state"] => {
    const run = state.runs.get(id);
    return run === undefined ? summaryView(state.archived.get(id)!).state : runState(run);
  };

  const submit: Service["submit"] = async (lines) => {
    submitting += 1;
    try {
      return await options.submit(lines);
    } finally {
      submitting -= 1;
    }
  };

  return {
    ...createTaskService(context, jobs),
    ...createTaskTable(context),
    ...createStageService(context, etas),
    ...createTimelineService(context),
    ...createFailureService(context),
    ...createDetailService(context, options.pilotService),
    ...createRunChanges(context),
    ...createRetry(context),
    ...createValidate(context),
    ...createOutputs(context),
    ...whyService,
    whyNamed: createWhyNames({
      context,
      why: whyService.why,
      pilots: pilotViews,
      fleets: fleetViews,
      clusters: () => clusterViews(options),
      jobs: jobs.jobs,
    }),
    efficiency: async (id) => efficiencyView(await shelf.whole(id)),
    server: options.about,
    status: () => {
      const ids = shelf.ids();
      const live = ids.filter((id) => state.runs.get(id)?.finished === 0);
      const ended = ids.filter((id) => state.runs.get(id)?.finished !== 0).slice(0, RECENT_RUNS);
      return {
        server: options.about(),
        fleets: fleetViews(),
        pilots: pilotViews().filter((pilot) => pilot.ended === null),
        runs: [...live, ...ended].map(shortView),
        taskJobs: jobs.taskJobs(),
      };
    },
    submit,
    ...createSubmitText(context, submit),
    runs: ({ limit, cursor = Infinity, state: wanted, name }) => {
      const isMeant = (id: number): boolean =>
        id < cursor && (name === undefined || nameOf(id) === name) && (wanted === undefined || stateOf(id) === wanted);
      const { items, next } = pageOf(shelf.ids().filter(isMeant), limit, String);
      return { items: items.map(shortView), next };
    },
    run: async (id) => {
      const run = await shelf.whole(id);
      return { ...runView(run, engine.clock(), etas.of(run)), groups: groupViews(run) };
    },
    watch: async (id, signal) => {
      await shelf.whole(id);
      return options.runWatch.watch(id, () => shortView(id), signal);
    },
    async *events(query, signal) {
      if (query.run !== undefined && !shelf.has(query.run)) throw new SlipwayError("no-such-run", { run: query.run });
      const live = query.follow ? feed.follow(query.run, signal) : undefined;
      // the follower starts listening with its first step: take that step before reading the past
      const first = live?.next();
      const startsNow = query.follow && query.since === undefined && query.time === undefined;
      let last = query.since ?? (startsNow ? feed.seq : 0);
      for (const event of feed.since(last, query.run)) {
        last = event.seq;
        if (query.time === undefined || Date.parse(event.time) >= query.time) yield event;
      }
      if (live === undefined) return;
      for (let step = await first!; step.done !== true; step = await live.next())
        if ("resume" in step.value || step.value.seq > last) yield step.value;
    },
    pilots: pilotViews,
    jobs: jobs.jobs,
    addPilots,
    drainPilot,
    cancelPilot,
    clusters: () => clusterViews(options),
    checkCluster: options.checkCluster,
    reloadClusters: options.reloadClusters,
    wraps: () => wrapViews(options.home),
    compact: options.compact,
    stop: (now, idle) => {
      const busy = (): boolean => submitting > 0 || options.launches() > 0 || state.live.size > 0;
      if (idle && busy()) return { state: "running" };
      options.stop(now);
      return { state: "stopping" };
    },
  };
};
