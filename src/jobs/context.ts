import type { Agents } from "../agent-links/agents.ts";
import type { TaskJobId } from "../core/ids.ts";
import type { Spools } from "../pilots/spools.ts";
import type { Engine } from "../server/engine.ts";
import type { JobRoster } from "./roster.ts";

/** What the parts of a keeper of tasks' jobs share. */
export interface JobsContext {
  readonly home: string;
  /** Of this home alone: names of jobs are made from it. */
  readonly mark: string;
  /** The name of this machine, as agents here say it. */
  readonly host: string;
  /** The cluster for tasks that name none. */
  readonly defaultCluster: string;
  readonly engine: Engine;
  readonly agents: Agents;
  readonly spools: Spools;
  readonly roster: JobRoster;
  readonly log: (text: string, facts?: object) => void;
  /** For those who follow events: what the manager says of a job that waits. */
  readonly onWaiting: (job: TaskJobId, element: number, text: string) => void;
}
