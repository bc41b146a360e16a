import type { Lifetime } from "../core/lifetime.ts";
import type { Resources } from "../core/resources.ts";
import type { PilotId, TaskJobId } from "../core/ids.ts";

/** What an agent's starter passes to it. */
export interface AgentSettings {
  readonly home: string;
  /** The pilot it belongs to; 0 for an agent started by hand. */
  readonly pilot: PilotId;
  /** Where tasks get their TMPDIR: node-local (rule 13). */
  readonly scratch: string;
  /** Declared amounts, in units; they override what is detected. */
  readonly declared: Resources;
  /** CPUs that the manager gave its job on this node, as the pilot's script reports (`--cpus`); undefined: unknown. */
  readonly managerCpus?: number | undefined;
  /** Milliseconds between TERM and KILL. */
  readonly graceMs: number;
  readonly pin: boolean;
  /** How long an idle agent waits for a server before it ends. */
  readonly patienceMs: number;
  /** The same until a server first accepts it: nodes are not held for long where nothing can come. */
  readonly firstPatienceMs?: number | undefined;
  readonly spawner: "auto" | "native" | "node";
  /** A cgroup v2 directory for the tasks' own cgroups; `auto`: the agent's, if it was delegated to this user. */
  readonly cgroup: string;
  /** `null` makes this agent answer every task at once, without starting it. */
  readonly executor: "process" | "null";
  /** For an agent started by hand: the cluster it counts towards. */
  readonly cluster?: string | undefined;
  readonly queue?: string | undefined;
  /** Where to find the server's endpoint and the agents' token, if not in the home. */
  readonly endpointFile?: string | undefined;
  readonly tokenFile?: string | undefined;
  /** The script's environment before its prologue, as `env -0` wrote it: tasks get what has changed since. */
  readonly environmentFile?: string | undefined;
  /** When its pilot ends; undefined: never. */
  readonly lifetime?: Lifetime | undefined;
  /**
   * It runs one task, in a job of that task's own, and ends with it; its pilot is 0. The element of an array is not in
   * a file that all its elements share: the script passes it (`--element`).
   */
  readonly taskJob?: { readonly id: TaskJobId; readonly element: number } | undefined;
  /** A pattern of the variables that describe the job to its task; undefined: tasks get none of the manager's own. */
  readonly variables?: string | undefined;
  /** What starts ranks where the whole job is their task's own; undefined: the agent does. */
  readonly ranks?: OwnRanks | undefined;
}

export interface OwnRanks {
  readonly by: "srun" | "mpiexec";
  /** Where it is, if not on the PATH. */
  readonly program?: string | undefined;
  /** The job's nodes, one per line; `cpus` beside it says how many CPUs it has on each, where that is known. */
  readonly hostsFile: string;
}

/** What differs from one agent to the next; the rest has defaults here. */
export type AgentAsk = Omit<AgentSettings, "graceMs" | "pin" | "executor" | "spawner" | "cgroup"> &
  Partial<Pick<AgentSettings, "graceMs" | "pin" | "executor">>;

const GRACE_MS = 5000;

/** The settings of an agent started by a process with this environment. */
export const agentSettings = (
  ask: AgentAsk,
  env: Readonly<Record<string, string | undefined>> = process.env,
): AgentSettings => {
  const spawner = env["SLIPWAY_SPAWNER"];
  return {
    graceMs: GRACE_MS,
    pin: false,
    executor: "process",
    ...ask,
    spawner: spawner === "native" || spawner === "node" ? spawner : "auto",
    cgroup: env["SLIPWAY_CGROUP"] ?? "auto",
  };
};
