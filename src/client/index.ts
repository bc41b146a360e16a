import type { z } from "zod";
import type {
  CancelAnswer,
  CheckView,
  ClusterView,
  EventView,
  NamedWhyView,
  OutputLostView,
  PilotView,
  ReloadView,
  RetryAnswer,
  RetryRequest,
  EfficiencyView,
  RunView,
  ServerView,
  StatusView,
  TaskView,
  WhyView,
  WrapView,
} from "../api/schemas.ts";
import type { Role } from "../api/caller.ts";
import type { NewCodeView } from "../api/session.ts";
import type { OverviewView } from "../api/overview.ts";
import type { JobKind, JobView } from "../api/job-schemas.ts";
import type { LogPiece } from "../api/service.ts";
import type { KnownOutputs } from "../api/outputs.ts";
import type { ValidateAnswer, ValidateRequest } from "../api/validate.ts";
import type { Endpoint } from "../protocol/endpoint.ts";
import type { TaskLine, TaskRowView } from "../api/task-table.ts";
import type { FailuresView } from "../api/failures.ts";
import type { JobDetail, PilotDetail } from "../api/job-details.ts";
import type { TimelineView } from "../api/timeline.ts";
import type { LiveEvent } from "../api/live.ts";
import type { SeriesView, Span } from "../api/series.ts";
import type { StagePage } from "../api/stages.ts";
import { createLaunchClient, type LaunchClient } from "./launches.ts";
import { readJsonLines } from "./lines.ts";
import { type LiveOptions, liveEvents } from "./live.ts";
import { findEndpoint } from "./remote.ts";
import { createRequests, type Requests, type WithoutServer } from "./requests.ts";
import { type FollowOptions, resumed } from "./resume.ts";
import { type RunStarts, createRunStarts } from "./run-starts.ts";
import type { Request } from "./transport.ts";
import type { RunId } from "../core/ids.ts";
import type { TaskState } from "../core/states.ts";

export { isFinalView, type LaunchClient, type LaunchDocument, type LaunchLogOptions } from "./launches.ts";
export { SlipwayError } from "../errors.ts";
export type { LiveOptions } from "./live.ts";
export type { FollowOptions } from "./resume.ts";
export { type ItemStream, inBatches, type RunDocument } from "./submit.ts";
export type { RunStarts, Submitted, Watched, WatchedSubmission } from "./run-starts.ts";
export { canceledOf, isFinalRun, succeeded } from "./outcome.ts";
export { isConnectionLost } from "./transport.ts";

export type Stream = "stdout" | "stderr";
/** `outputLost` comes after a task's last piece. */
export type OutputPiece = { readonly task: string; readonly data: Buffer; readonly outputLost?: OutputLostView };

export interface LogOptions {
  readonly stream?: Stream;
  readonly follow?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface TaskLogOptions extends LogOptions {
  /** Which attempt; the last one unless named. */
  readonly attempt?: number | undefined;
  /** Where to begin, and how many bytes at most. */
  readonly from?: number | undefined;
  readonly bytes?: number | undefined;
}

export interface RunsQuery {
  readonly limit?: number;
  readonly cursor?: number | undefined;
  readonly state?: RunView["state"] | undefined;
  readonly name?: string | undefined;
}

export interface TasksQuery {
  readonly state?: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** Which tasks run again, and with which amounts. */
export type RetryOptions = z.input<typeof RetryRequest>;

/** Which rows of the table of a run's tasks, and in which order; what is absent does not narrow. */
export interface TaskRowsQuery {
  readonly states?: readonly TaskState[];
  readonly names?: readonly string[];
  readonly hosts?: readonly string[];
  readonly exitCodes?: readonly number[];
  /** Seconds: the latest attempt took, or takes, at least this long. */
  readonly longer?: number | undefined;
  /** Epoch milliseconds: the latest attempt ended then or later. */
  readonly endedSince?: number | undefined;
  /** Only tasks with an attempt that was lost. */
  readonly lost?: boolean;
  /** By index unless told otherwise. */
  readonly sort?: "index" | "duration";
  readonly reverse?: boolean;
  /** At most this many. */
  readonly limit?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface TaskPage {
  readonly rows: readonly TaskRowView[];
  readonly total: number;
}

export interface EventsQuery extends FollowOptions {
  readonly follow?: boolean;
  readonly run?: RunId | undefined;
  /** Only events after this sequence number. Without it and `time`: all that are remembered, with `follow` none. */
  readonly since?: number | undefined;
  /** Only events from this time on, by the server's clock. */
  readonly time?: Date | undefined;
}

/** The typed SDK: everything a server can be asked. A task is named by its run and its index. */
export interface Client extends LaunchClient, RunStarts {
  /** Where the server is, as its home says now. */
  endpoint(): Promise<Endpoint>;
  server(): Promise<ServerView>;
  /** `idle`: only if no run is live; the answer's state says whether it stops. */
  stop(options?: { now?: boolean; idle?: boolean }): Promise<{ state: string }>;
  /** A one-time code that signs somebody in to the page; with `listen`, a port for browsers on the server's machine. */
  pageCode(options?: {
    role?: Role | undefined;
    listen?: boolean | undefined;
    port?: number | undefined;
  }): Promise<NewCodeView>;
  status(): Promise<StatusView>;
  /** Sums over everything, for who looks often. */
  overview(): Promise<OverviewView>;
  /** Ends, tasks by state, cores and GPUs over time, in columns. */
  series(span?: Span): Promise<SeriesView>;
  /**
   * What happens, as it happens, beginning with how things are: the overview, with `run` that run and its stages, and
   * events. Continues without gap or repeat after a lost connection; `reset` says that something was missed.
   */
  live(options?: LiveOptions): AsyncGenerator<LiveEvent>;
  /** What is wrong with a run, by line where its text is given, or what it would be. Nothing is submitted. */
  validate(request: z.input<typeof ValidateRequest>): Promise<z.infer<typeof ValidateAnswer>>;
  /** What is remembered of files that tasks declare as outputs, by absolute path; at most 10,000. */
  knownOutputs(files: readonly string[]): Promise<KnownOutputs>;
  /** Newest first; `cursor` is the id of the last one of the page before. */
  runs(options?: RunsQuery): Promise<RunView[]>;
  run(id: number): Promise<RunView>;
  /** What its tasks that ended well asked for, used, and would have needed. */
  efficiency(id: number): Promise<EfficiencyView>;
  /** Its graph by stages; of one with many groups folds, which `level` opens page by page. */
  stages(id: number, options?: { level?: number; cursor?: number; limit?: number }): Promise<StagePage>;
  /** When its tasks ran, and where; times are milliseconds since the run began. */
  timeline(id: number, options?: { from?: number; to?: number; most?: number }): Promise<TimelineView>;
  /** Its failed tasks, alike with alike. */
  failures(id: number): Promise<FailuresView>;
  tasks(run: RunId, query?: TasksQuery): Promise<TaskView[]>;
  task(run: RunId, index: number): Promise<TaskView>;
  /** A page of that table, from any place, and how many rows match. */
  taskPage(run: RunId, query: TaskRowsQuery & { offset: number; limit: number }): Promise<TaskPage>;
  /** The table of a run's tasks, as it is read: a million of them need no more memory than a page. */
  taskRows(run: RunId, query?: TaskRowsQuery): AsyncGenerator<TaskRowView>;
  /** The bytes a task wrote in its last attempt, or in another. */
  taskLogs(run: RunId, index: number, options?: TaskLogOptions): AsyncGenerator<Buffer>;
  /** What the tasks of a run wrote, in pieces. */
  logs(run: RunId, options?: LogOptions): AsyncGenerator<OutputPiece>;
  cancel(run: RunId, options?: { tasks?: readonly number[]; reason?: string }): Promise<z.infer<typeof CancelAnswer>>;
  /** The tasks that failed or were cancelled unless `options` choose others; only of a run that has ended. */
  retry(run: RunId, options?: "failed" | "all" | RetryOptions): Promise<z.infer<typeof RetryAnswer>>;
  why(run: RunId, index?: number): Promise<WhyView>;
  /** The same by name: `3`, `3.17`, `pilot 4`, `launch 2`, `job 1234`, `hpc/cpu`, `hpc`. */
  whyOf(name: string): Promise<NamedWhyView>;
  /** Events so far, and with `follow` those to come; continues where it stopped after a restart of the server. */
  events(query?: EventsQuery): AsyncGenerator<EventView>;
  pilots(): Promise<PilotView[]>;
  /** One pilot: its states and the time in each, its script, what its manager says, and why it was asked for. */
  pilot(id: number): Promise<PilotDetail>;
  /** The same of any job: `2` is a launch, `3.17` the job of a task, `pilot 4` a pilot. */
  job(id: string): Promise<JobDetail>;
  /** What Slipway has in workload managers, newest first. */
  jobs(query?: { kind?: JobKind | undefined; state?: string | undefined; limit?: number }): Promise<JobView[]>;
  /** Starts pilots by hand: of the default cluster, and of its only or first queue, unless named. */
  addPilots(options?: { cluster?: string; queue?: string; count?: number }): Promise<PilotView[]>;
  /** It takes no new tasks and ends when it is empty. */
  drainPilot(id: number, options?: { reason?: string }): Promise<PilotView>;
  /** It ends now; its tasks run again elsewhere at no cost. */
  cancelPilot(id: number, options?: { reason?: string }): Promise<PilotView>;
  clusters(): Promise<ClusterView[]>;
  cluster(name: string): Promise<ClusterView>;
  /** The server reads clusters.yaml and its layers again: what changed, and what counts only from its next start on. */
  reloadClusters(): Promise<ReloadView>;
  /** Checks a cluster's configuration as clusters.yaml has it now, without running work. */
  checkCluster(name: string): Promise<CheckView>;
  /** Wrappers of this home, which hold Dask clusters (docs/dask.md). */
  wraps(): Promise<WrapView[]>;
  /** The server's clock in epoch milliseconds, to tell how long ago its times are; this machine's before any answer. */
  now(): number;
  close(): void;
}

export interface ConnectOptions {
  readonly home: string;
  /** Where to find the server; the home's endpoint file unless a test says otherwise. */
  readonly endpoint?: () => Promise<Endpoint | undefined>;
  /** What answers questions where no server does. */
  readonly withoutServer?: WithoutServer;
}

const query = (values: Readonly<Record<string, string | number | undefined>>): string => {
  const wanted = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value !== undefined) wanted.set(key, String(value));
  return wanted.size === 0 ? "" : `?${wanted}`;
};

/** A client of the server of a home. The endpoint is read when needed and again after a lost connection. */
export const connect = (options: ConnectOptions): Client => {
  const { home, endpoint = async () => findEndpoint(home), withoutServer } = options;
  const requests = createRequests(home, endpoint, withoutServer);
  const { send, get, post, following } = requests;

  const events = ({ follow = false, run, since, time, ...options }: EventsQuery = {}): AsyncGenerator<EventView> => {
    let last = since;
    let epoch: number | undefined;
    return resumed(async function* (connected): AsyncGenerator<EventView, boolean> {
      const { epoch: now } = await requests.server();
      // Each server counts its events from the start: of a successor, all are new.
      if (epoch !== undefined && epoch !== now) last = 0;
      epoch = now;
      const from = last === undefined ? time?.toISOString() : undefined;
      const wanted = query({ follow: follow ? 1 : undefined, run, since: last, time: from });
      const body = await send({ path: `/events${wanted}`, follow, signal: options.signal });
      connected();
      for await (const line of readJsonLines(body)) {
        const event = line as EventView | { resume: number };
        if ("resume" in event) return false;
        if (last !== undefined && event.seq <= last) continue;
        last = event.seq;
        yield event;
      }
      return !follow;
    }, following(options));
  };

  async function* taskLogs(run: RunId, index: number, options: TaskLogOptions = {}): AsyncGenerator<Buffer> {
    yield* await send(logRequest(`/runs/${run}/tasks/${index}/logs`, options));
  }

  async function* logs(run: RunId, options: LogOptions = {}): AsyncGenerator<OutputPiece> {
    for await (const line of readJsonLines(await send(logRequest(`/runs/${run}/logs`, options)))) {
      const { data, ...rest } = line as LogPiece;
      yield { ...rest, data: Buffer.from(data, "base64") };
    }
  }

  return {
    ...createLaunchClient(requests),
    ...createDetails(requests),
    endpoint: requests.find,
    server: () => get("/server"),
    stop: ({ now = false, idle = false } = {}) => post("/server/stop", { now, idle }),
    pageCode: (options = {}) => post("/session/codes", options),
    status: () => get("/status"),
    overview: () => get("/overview"),
    series: (span) => get(`/series${query({ span })}`),
    live: (options) => liveEvents(requests, options),
    ...createRunStarts(requests),
    validate: (request) => post("/validate", request),
    knownOutputs: (files) => post("/outputs/known", { files }),
    runs: (wanted = {}) => get(`/runs${query({ ...wanted })}`),
    run: (id) => get(`/runs/${id}`),
    efficiency: (id) => get(`/runs/${id}/efficiency`),
    tasks: (run, { state, offset, limit } = {}) => get(`/runs/${run}/tasks${query({ state, offset, limit })}`),
    task: (run, index) => get(`/runs/${run}/tasks/${index}`),
    taskRows: (run, query) => taskRows(requests, run, query),
    taskPage: (run, query) => taskPage(requests, run, query),
    taskLogs,
    logs,
    cancel: (run, options = {}) => post(`/runs/${run}/cancel`, options),
    retry: (run, options = "failed") =>
      post(`/runs/${run}/retry`, typeof options === "string" ? { which: options } : options),
    why: (run, index) => get(index === undefined ? `/runs/${run}/why` : `/runs/${run}/tasks/${index}/why`),
    whyOf: (of) => get(`/why${query({ of })}`),
    events,
    pilots: () => get("/pilots"),
    jobs: ({ kind, state, limit } = {}) => get(`/jobs${query({ kind, state, limit })}`),
    addPilots: (options = {}) => post("/pilots", options),
    drainPilot: (id, options = {}) => post(`/pilots/${id}/drain`, options),
    cancelPilot: (id, options = {}) => post(`/pilots/${id}/cancel`, options),
    clusters: () => get("/clusters"),
    wraps: () => get("/wraps"),
    cluster: (name) => get(`/clusters/${encodeURIComponent(name)}`),
    checkCluster: (name) => post(`/clusters/${encodeURIComponent(name)}/check`, {}),
    reloadClusters: () => post("/server/reload", {}),
    now: requests.now,
    close: requests.close,
  };
};

/** Pages are as large as they may be: by duration, each is one look at all tasks. */
const ROWS_A_PAGE = 10_000;
const FIRST_ROWS = 500;

/** What is asked of one run, one pilot or one job, for whoever looks closely. */
const createDetails = ({
  get,
}: Pick<Requests, "get">): Pick<Client, "stages" | "timeline" | "failures" | "pilot" | "job"> => ({
  stages: (id, options = {}) => get(`/runs/${id}/stages${query({ ...options })}`),
  timeline: (id, options = {}) => get(`/runs/${id}/timeline${query({ ...options })}`),
  failures: (id) => get(`/runs/${id}/failures`),
  pilot: (id) => get(`/pilots/${id}`),
  job: (id) => get(`/jobs/${encodeURIComponent(id)}`),
});

const rowsQuery = (query: TaskRowsQuery): URLSearchParams => {
  const wanted = new URLSearchParams();
  const several = { state: query.states, name: query.names, host: query.hosts, exitCode: query.exitCodes };
  for (const [key, values] of Object.entries(several)) for (const value of values ?? []) wanted.append(key, `${value}`);
  if (query.longer !== undefined) wanted.set("longer", String(query.longer));
  if (query.endedSince !== undefined) wanted.set("endedSince", String(Math.floor(query.endedSince)));
  if (query.lost === true) wanted.set("lost", "1");
  if (query.sort !== undefined) wanted.set("sort", query.sort);
  if (query.reverse === true) wanted.set("reverse", "1");
  return wanted;
};

const taskPage = async (
  { send }: Pick<Requests, "send">,
  run: RunId,
  query: TaskRowsQuery & { offset: number; limit: number },
): Promise<TaskPage> => {
  const wanted = rowsQuery(query);
  wanted.set("offset", String(query.offset));
  wanted.set("limit", String(query.limit));
  const rows: TaskRowView[] = [];
  let total = 0;
  for await (const line of readJsonLines(
    await send({ path: `/runs/${run}/task-table?${wanted}`, signal: query.signal }),
  )) {
    const each = line as TaskLine;
    if ("next" in each) total = each.total ?? 0;
    else rows.push(each);
  }
  return { rows, total };
};

async function* taskRows(
  { send }: Pick<Requests, "send">,
  run: RunId,
  query: TaskRowsQuery = {},
): AsyncGenerator<TaskRowView> {
  const { limit = Infinity, signal } = query;
  const wanted = rowsQuery(query);
  for (let left = limit, page = FIRST_ROWS; left > 0; page = ROWS_A_PAGE) {
    wanted.set("limit", String(Math.min(left, page)));
    let next: string | null = null;
    for await (const line of readJsonLines(await send({ path: `/runs/${run}/task-table?${wanted}`, signal }))) {
      const each = line as TaskLine;
      if ("next" in each) next = each.next;
      else {
        left -= 1;
        yield each;
      }
    }
    if (next === null) return;
    wanted.set("cursor", next);
  }
}

const logRequest = (path: string, options: TaskLogOptions): Request => {
  const { stream = "stdout", follow = false, signal, attempt, from, bytes } = options;
  return { path: path + query({ stream, follow: follow ? 1 : undefined, attempt, from, bytes }), follow, signal };
};
