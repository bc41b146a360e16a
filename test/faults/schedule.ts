import type { Feature } from "./features.ts";
import type { Lie } from "./lies.ts";

/** What will happen, drawn from a seed alone. How it turns out depends on the machine; what must hold does not. */

/** A run, and what its tasks do. */
export interface RunPlan {
  /** Milliseconds after the start at which it is submitted. */
  readonly at: number;
  readonly tasks: number;
  /** How long each task works. */
  readonly ms: number;
  /** One task in this many fails in its first `times` attempts; 0: none. */
  readonly every: number;
  readonly times: number;
  readonly retries: number;
  /** Tasks of a second group that begin when all of the first have succeeded. */
  readonly behind: number;
  /** Items are sent as a stream of lines, not as a range. */
  readonly lines: boolean;
  readonly by: "sdk" | "cli";
  /** Its tasks are jobs of their own, in a simulated batch system. */
  readonly jobs?: true;
  /** Seconds between a failure and the next attempt. */
  readonly retryDelay?: number;
  /** Seconds after which a task is ended. */
  readonly timeLimit?: number;
  /** It begins when an earlier run of the schedule has ended. */
  readonly after?: { readonly nth: number; readonly on: "ok" | "any" | "failed" };
  /** Tasks of a handler that is needed only if some task of the first group did not succeed. */
  readonly alarm?: number;
  /** Tasks that begin when all of the first group have ended in any way. */
  readonly always?: number;
  /** Tasks in a row, each a group of its own that begins when the one before has succeeded; they fail as the first do. */
  readonly links?: number;
  /** Tasks that would fail kill their spawner or their agent instead. */
  readonly kills?: "spawner" | "agent";
  /** The same request is sent this often, `apart` ms after one another, each with `pace` ms between its pieces. */
  readonly repeat?: { readonly times: number; readonly apart: number; readonly pace: number };
}

export type Moment =
  | { readonly when: "now" }
  /** This long after a submission of this run began. */
  | { readonly when: "submit"; readonly run: RunPlan; readonly after: number }
  /** When this many more tasks have been executed. */
  | { readonly when: "results"; readonly count: number }
  | { readonly when: "compaction"; readonly after: number }
  /** Twice: now, and again this long after the next start began. */
  | { readonly when: "start"; readonly after: number };

export interface PowerLoss {
  readonly kind: "power";
  readonly restart: number;
  /** How many of the bytes that were not synced are left: none, some, all. */
  readonly bytes: "none" | "some" | "all";
  /** Names in a directory that was not synced since: as they were at the last sync, or as they are. */
  readonly names: "synced" | "kept";
  /** This long after a start began; undefined: now. */
  readonly starting?: number | undefined;
}

export type Step =
  | { readonly kind: "kill-server"; readonly moment: Moment; readonly restart: number; readonly ups: number }
  | { readonly kind: "kill-agent" | "term-agent" | "kill-spawner"; readonly nth: number }
  | { readonly kind: "stop-server"; readonly ms: number }
  | { readonly kind: "stop-agent"; readonly nth: number; readonly ms: number }
  | { readonly kind: "cut" | "drop" | "compact" }
  /** Requested, but not waited for. */
  | { readonly kind: "compact-meanwhile" }
  /** The server is killed, and the command line compacts without one. */
  | { readonly kind: "compact-alone" }
  /**
   * Everything is killed at the same moment, and what was written survives only if it was synced, or a little beyond.
   */
  | PowerLoss
  /** The next start reads another `limits.losses`; `late`: when everything submitted has ended. */
  | { readonly kind: "limits"; readonly losses: number; readonly late: boolean; readonly by: "kill" | "down" }
  /** A run that has ended is run again. */
  | { readonly kind: "retry"; readonly nth: number; readonly all: boolean }
  /** An agent with a good token says what no agent says. */
  | { readonly kind: "lie"; readonly lies: readonly Lie[]; readonly nth: number }
  /** A command line submits this many lines, and its connection is cut at these times after its start. */
  | { readonly kind: "cut-submit"; readonly lines: number; readonly cuts: readonly number[] }
  /** The next fsync in the journal fails. */
  | { readonly kind: "fsync" }
  | { readonly kind: "half-open"; readonly closed: "agents" | "server"; readonly ms: number }
  | { readonly kind: "freeze"; readonly ms: number; readonly cut: boolean }
  | { readonly kind: "delay"; readonly each: number; readonly ms: number }
  | { readonly kind: "split"; readonly ms: number }
  | { readonly kind: "kill-client"; readonly lines: number; readonly after: number }
  | { readonly kind: "cancel"; readonly nth: number }
  | { readonly kind: "down"; readonly now: boolean };

export type Paused = Step & { readonly pause: number };

export interface Schedule {
  readonly seed: number;
  /** What is in it besides the plain trouble. */
  readonly features: readonly Feature[];
  /** `limits.losses` at the first start. */
  readonly losses: number;
  /** Compaction deletes nothing, so that `journal verify --deep` can replay everything. */
  readonly keepHistory: boolean;
  /** Milliseconds by which a sync takes longer; undefined: nobody keeps what was synced. */
  readonly disk: number | undefined;
  /** Clients on this machine go through a proxy of their own. */
  readonly apiProxy: boolean;
  /** Pilots of the fleet, agents by hand behind the proxy, cores of each. */
  readonly pilots: number;
  readonly byHand: number;
  readonly cpus: number;
  /** The pilots' agents go through the proxy too, as soon as they read the endpoint again. */
  readonly proxyForAll: boolean;
  readonly spawner: "auto" | "node";
  readonly runs: readonly RunPlan[];
  /** Each begins this long after the one before has ended. */
  readonly steps: readonly Paused[];
  /** At the end the server is killed once more, and its successor must say the same of every task. */
  readonly replay: boolean;
  /** At the end failed runs are retried, and the server is killed in the middle of that. */
  readonly retry: boolean;
}

/** The default of clusters.yaml. */
export const DEFAULT_LOSSES = 5;

/** One fleet on this machine. */
/** Where tasks are jobs of their own. */
const SIMULATED =
  "sim: { type: simulated, grace: 1, simulation: { nodes: 2, cores-per-node: 2, kill-after: 1s }, queues: { q: { fleet: { period: 0.3 } } } }";

export const clustersOf = ({
  pilots,
  cpus,
  losses,
  keepHistory,
}: Pick<Schedule, "pilots" | "cpus" | "losses"> & { readonly keepHistory?: boolean }): string =>
  `clusters: { local: { type: local, grace: 1, resources: { cpus: ${cpus} }, queues: { default: { fleet: { min: ${pilots}, max: ${pilots} } } } }, ${SIMULATED} }\n` +
  (losses === DEFAULT_LOSSES ? "" : `limits: { losses: ${losses} }\n`) +
  (keepHistory === true ? "keep-history: true\n" : "");

const showRun = (run: RunPlan): string =>
  `${run.tasks} tasks of ${run.ms} ms` +
  (run.behind > 0 ? ` and ${run.behind} behind them` : "") +
  ((run.links ?? 0) > 0 ? `, ${run.links} in a row` : "") +
  ((run.alarm ?? 0) + (run.always ?? 0) > 0 ? `, handlers ${run.alarm ?? 0} and ${run.always ?? 0}` : "") +
  (run.every > 0
    ? `, every ${run.every}th ${run.kills === undefined ? "fails" : `kills its ${run.kills}`} ${run.times} times, ${run.retries} retries`
    : "") +
  (run.after === undefined ? "" : `, after run ${run.after.nth + 1} (${run.after.on})`) +
  (run.repeat === undefined ? "" : `, sent ${run.repeat.times} times ${run.repeat.apart} ms apart`) +
  `${run.lines ? ", lines" : ""} (${run.by})`;

const showStep = ({ kind, pause, ...facts }: Paused): string => {
  const rest = Object.entries(facts).map(([key, value]) => {
    if (typeof value !== "object" || Array.isArray(value)) return `${key} ${String(value)}`;
    const { when, run, ...more } = value as Record<string, unknown>;
    return `at ${when}${run === undefined ? "" : ` of ${showRun(run as RunPlan)}`} ${Object.values(more).join(" ")}`.trim();
  });
  return `+${pause} ms ${kind}${rest.length === 0 ? "" : `: ${rest.join(", ")}`}`;
};

/** For people; the seed alone determines all of it. */
export const showSchedule = (schedule: Schedule): string =>
  [
    `seed ${schedule.seed}: ${schedule.pilots} pilots and ${schedule.byHand} agents by hand, ${schedule.cpus} cpus each` +
      `${schedule.proxyForAll ? ", all through the proxy" : ""}${schedule.spawner === "node" ? ", spawner in Node" : ""}` +
      `${schedule.retry ? ", failed runs retried" : ""}${schedule.replay ? ", replayed at the end" : ""}` +
      `${schedule.losses === DEFAULT_LOSSES ? "" : `, limits.losses ${schedule.losses}`}` +
      `${schedule.keepHistory ? ", history kept" : ""}` +
      `${(schedule.disk ?? 0) > 0 ? `, a sync takes ${schedule.disk} ms` : ""}`,
    `  with ${schedule.features.length === 0 ? "nothing more" : schedule.features.join(", ")}`,
    ...schedule.runs.map((run) => `  run at ${run.at} ms: ${showRun(run)}`),
    ...schedule.steps.map((step) => `  ${showStep(step)}`),
  ].join("\n");
