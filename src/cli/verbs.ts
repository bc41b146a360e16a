import type { Define } from "./verb.ts";

export interface VerbEntry {
  readonly name: string;
  readonly summary: string;
  readonly group: string;
  /** Read when the verb is used: start-up pays for one verb only. */
  readonly load: () => Promise<{ readonly define: Define }>;
}

const verb = (group: string, name: string, summary: string, load: VerbEntry["load"]): VerbEntry => ({
  name,
  summary,
  group,
  load,
});

const WORK = "Work:";
const LOOK = "Look:";
const SERVER = "Server:";

/** Every command, in the order help shows them. */
export const VERBS: readonly VerbEntry[] = [
  verb(WORK, "run", "submit, follow with a progress bar, print a summary", () => import("./verbs/run.ts")),
  verb(WORK, "submit", "submit, print the run's id, return", () => import("./verbs/submit.ts")),
  verb(
    WORK,
    "validate",
    "check a run without submitting it, and show what it would be",
    () => import("./verbs/validate.ts"),
  ),
  verb(WORK, "wait", "wait until runs have ended", () => import("./verbs/wait.ts")),
  verb(WORK, "attach", "follow a run with the progress bar again", () => import("./verbs/attach.ts")),
  verb(WORK, "cancel", "cancel a run, or some of its tasks", () => import("./verbs/cancel.ts")),
  verb(WORK, "retry", "run failed tasks again", () => import("./verbs/retry.ts")),
  verb(
    WORK,
    "resume",
    "submit a file again; what an earlier run has done is skipped",
    () => import("./verbs/resume.ts"),
  ),
  verb(WORK, "launch", "hand one batch job straight to the workload manager", () => import("./verbs/launch.ts")),
  verb(WORK, "wrap", "hold a Dask cluster as long as somebody uses it", () => import("./verbs/wrap.ts")),
  verb(LOOK, "list", "list the runs, newest first", () => import("./verbs/list.ts")),
  verb(LOOK, "show", "one run or one task in detail", () => import("./verbs/show.ts")),
  verb(LOOK, "tasks", "a table of a run's tasks: filtered, sorted, as CSV or JSON", () => import("./verbs/tasks.ts")),
  verb(LOOK, "report", "write a run as one HTML file: graph, timeline, failures", () => import("./verbs/report.ts")),
  verb(LOOK, "logs", "what tasks wrote", () => import("./verbs/logs.ts")),
  verb(
    LOOK,
    "jobs",
    "what Slipway has in workload managers: jobs of tasks, pilots, launches",
    () => import("./verbs/jobs.ts"),
  ),
  verb(LOOK, "why", "why it is not running, or why it failed, and what would help", () => import("./verbs/why.ts")),
  verb(LOOK, "events", "what happened, in order", () => import("./verbs/events.ts")),
  verb(LOOK, "status", "one screen: server, fleets, pilots, runs", () => import("./verbs/status.ts")),
  verb(LOOK, "top", "the same, live: throughput, use, fleets, progress", () => import("./verbs/top.ts")),
  verb(LOOK, "open", "the same and more, as a page in your browser", () => import("./verbs/open.ts")),
  verb(SERVER, "up", "start the server", () => import("./verbs/up.ts")),
  verb(SERVER, "down", "let running tasks end, then stop the server", () => import("./verbs/down.ts")),
  verb(SERVER, "pilots", "the jobs that hold agents and pull tasks", () => import("./verbs/pilots.ts")),
  verb(SERVER, "clusters", "where tasks can run", () => import("./verbs/clusters.ts")),
  verb(SERVER, "agent", "start one agent here, by hand", () => import("./verbs/agent.ts")),
  verb(SERVER, "tokens", "tokens of users who share this server", () => import("./verbs/tokens.ts")),
  verb(SERVER, "sudoers", "the sudo rules for launching jobs in users' names", () => import("./verbs/sudoers.ts")),
  verb(
    SERVER,
    "journal",
    "the log of events that the server's state is rebuilt from",
    () => import("./verbs/journal.ts"),
  ),
  verb(
    SERVER,
    "bench",
    "measure Slipway on this machine, against its limits and peers",
    () => import("./verbs/bench.ts"),
  ),
  verb(SERVER, "completion", "completion for your shell", () => import("./verbs/completion.ts")),
];
