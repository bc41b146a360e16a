import type { z } from "zod";
import type {
  CheckView,
  ClusterView,
  EventView,
  OutputLostView,
  PilotView,
  RetryAnswer,
  RetryRequest,
  ReloadView,
  EfficiencyView,
  RunView,
  ServerView,
  StatusView,
  SubmitAnswer,
  TaskView,
  WhyView,
  WrapView,
} from "./schemas.ts";
import type { SubmitTextRequest } from "./submit-text.ts";
import type { ValidateAnswer, ValidateRequest } from "./validate.ts";
import type { KnownOutputs } from "./outputs.ts";
import type { Page } from "./pages.ts";
import type { TaskLine, TaskTableQuery } from "./task-table.ts";
import type { LaunchView } from "./launch-schemas.ts";
import type { NamedWhyView } from "./schemas.ts";
import type { RunId } from "../core/ids.ts";
import type { OtherJobView } from "./job-schemas.ts";
import type { FailuresView } from "./failures.ts";
import type { JobDetail, PilotDetail } from "./job-details.ts";
import type { TimelineQuery } from "./timeline.ts";
import type { StagePage, StageQuery } from "./stages.ts";

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** Which tasks run again, and with which amounts. */
export type RetryOptions = z.infer<typeof RetryRequest>;
export type NamedWhy = NamedWhyView;

/** What the API needs of a server. Every method throws a SlipwayError that says what is wrong. */
export interface Service {
  server(): ServerView;
  status(): Omit<StatusView, "wraps">;
  /** Answers when the run is on disk. `lines` is the document, then batches of items, then the end. */
  submit(lines: AsyncIterable<unknown>): Promise<SubmitAnswer>;
  /** The same by the text of a run file; its files are read on this machine. */
  submitText(request: SubmitTextRequest, uuid?: string): Promise<SubmitAnswer>;
  /** Newest first; `cursor` is the last one of the page before. */
  runs(query: {
    limit: number;
    cursor?: number | undefined;
    state?: RunView["state"] | undefined;
    name?: string | undefined;
  }): Page<RunView>;
  run(id: number): Promise<RunView>;
  efficiency(id: number): Promise<EfficiencyView>;
  /** The run now, then each time it changes, until it has ended. */
  watch(id: number, signal: AbortSignal): Promise<AsyncIterable<RunView>>;
  tasks(id: number, query: { state?: string | undefined; offset: number; limit: number }): Promise<TaskView[]>;
  task(id: number, index: number): Promise<TaskView>;
  /** A page of the table of a run's tasks, then where the next one begins. */
  taskTable(id: number, query: TaskTableQuery, signal: AbortSignal): Promise<AsyncIterable<readonly TaskLine[]>>;
  /** Its graph by stages. */
  stages(id: number, query: StageQuery): Promise<StagePage>;
  /** When its tasks ran, and where: a TimelineView as JSON, in pieces. */
  timeline(id: number, query: TimelineQuery, signal: AbortSignal): Promise<AsyncIterable<string>>;
  failures(id: number): Promise<FailuresView>;
  taskLogs(id: number, index: number, options: LogQuery): Promise<AsyncIterable<Uint8Array>>;
  runLogs(id: number, options: LogQuery): Promise<AsyncIterable<LogPiece>>;
  cancel(
    id: number,
    tasks: readonly number[] | undefined,
    reason: string,
  ): Promise<{ run: RunId; canceled: number; stopping: number }>;
  /** Looks at a run without taking it in. */
  validate(request: z.infer<typeof ValidateRequest>): DeepReadonly<z.infer<typeof ValidateAnswer>>;
  /** What files that tasks declare as outputs came from, in their order. */
  knownOutputs(files: readonly string[]): KnownOutputs;
  retry(id: number, options: RetryOptions): Promise<z.infer<typeof RetryAnswer>>;
  why(id: number, index: number | undefined): Promise<WhyView>;
  /** By whatever it is called; `launches` are those the caller may see, and without `isAdmin` nothing else is there. */
  whyNamed(of: string, launches: readonly LaunchView[], isAdmin: boolean): Promise<NamedWhy>;
  events(
    query: {
      follow: boolean;
      run: RunId | undefined;
      /** Only events after this number; undefined, without `time` and with `follow`: only those to come. */
      since: number | undefined;
      /** Only events from then on, in milliseconds. */
      time: number | undefined;
    },
    signal: AbortSignal,
  ): AsyncIterable<EventView | { resume: number }>;
  pilots(): PilotView[];
  /** Jobs of tasks, and pilots, that managers have now; newest first. */
  jobs(kind: "task" | "pilot"): OtherJobView[];
  /** One of them, with its states, its script and its output. */
  pilot(id: number): Promise<PilotDetail>;
  /** The same of the job of a task, `3.17`, or of `pilot 4`. */
  job(id: string): Promise<JobDetail>;
  /** Starts pilots by hand, whatever the fleet's strategy; answers when the intent is on disk. */
  addPilots(query: { cluster?: string | undefined; queue?: string | undefined; count: number }): Promise<PilotView[]>;
  /** It takes no new tasks and ends when it is empty; one that has not begun is cancelled. */
  drainPilot(id: number, reason: string): Promise<PilotView>;
  /** It ends now; its tasks run again elsewhere at no cost. */
  cancelPilot(id: number, reason: string): Promise<PilotView>;
  clusters(): ClusterView[];
  /** Reads clusters.yaml and its layers again; what is valid counts from then on. */
  reloadClusters(): Promise<ReloadView>;
  /** Takes clusters.yaml over as it is now, and checks one of its clusters without running work. */
  checkCluster(name: string): Promise<CheckView>;
  /** Wrappers of this home, which hold Dask clusters. */
  wraps(): Promise<WrapView[]>;
  /** Folds the journal into a snapshot; resolves when that is done. */
  compact(): Promise<void>;
  /** Begins to stop; the answer comes at once. With `idle` it stays, and says `running`, while there is work. */
  stop(now: boolean, idle: boolean): { state: string };
}

/** A piece of a task's output in base64; with the last one, how much of it was lost. */
export interface LogPiece {
  readonly task: string;
  readonly data: string;
  readonly outputLost?: OutputLostView;
}

export interface LogQuery {
  readonly stream: "stdout" | "stderr";
  readonly follow: boolean;
  /** Of one task: which attempt; the last one unless named. */
  readonly attempt?: number | undefined;
  readonly signal: AbortSignal;
}
