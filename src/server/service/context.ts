import type { Agents } from "../../agent-links/agents.ts";
import type { ClustersConfig } from "../../config/clusters-file.ts";
import type { Resources } from "../../core/resources.ts";
import type { Engine } from "../engine.ts";
import type { Expected } from "../../learned/expected.ts";
import type { Pilots } from "../../pilots/pilots.ts";
import type { Standings } from "../../check/standings.ts";
import type { AccountRule } from "../../scheduler/scheduler.ts";
import type { LogSource } from "../../logs/logs.ts";
import type { TaskJobs } from "../../jobs/jobs.ts";
import type { RunShelf } from "./run-shelf.ts";

/** What the parts of the service share. */
export interface ServiceContext {
  readonly engine: Engine;
  readonly agents: Agents;
  readonly pilots: Pilots;
  /** What is known of tasks that are jobs of their own. */
  readonly taskJobs: Pick<TaskJobs, "waiting" | "unreachable" | "refused" | "directory" | "mostQueued">;
  readonly expected: Expected;
  readonly home: string;
  readonly clusters: ClustersConfig;
  readonly largest: ReadonlyMap<string, Resources>;
  /** What several agents share. */
  readonly shared: readonly AccountRule[];
  readonly standings: Standings;
  readonly shelf: RunShelf;
  readonly logs: LogSource;
  /** Why nothing is placed now, or null. */
  readonly blocked: () => string | null;
  /** Throws when changes may not be made now. */
  readonly mayChange: () => void;
}
