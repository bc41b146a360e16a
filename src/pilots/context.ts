import type { Agents } from "../agent-links/agents.ts";
import type { Engine } from "../server/engine.ts";
import type { Fleet } from "./fleet.ts";
import type { Roster } from "./roster.ts";
import type { Spools } from "./spools.ts";
import type { PilotId } from "../core/ids.ts";

/** What the parts of a keeper share. */
export interface KeeperContext {
  /** Every job name of this home starts with this and a `-`. */
  readonly prefix: string;
  /** The cluster for tasks that name none. */
  readonly defaultCluster: string;
  readonly engine: Engine;
  readonly agents: Agents;
  readonly roster: Roster;
  readonly spools: Spools;
  readonly log: (text: string, facts?: object) => void;
  /** For those who follow events: what the manager says of a pilot that waits. */
  readonly onWaiting: (pilot: PilotId, text: string) => void;
  readonly onHeard: (cluster: string, problem: string | null) => void;
}

/** How the names of a fleet's jobs start: the fleet's own word or `slipway`, then the home's mark. */
export const jobPrefixOf = (
  { prefix }: Pick<KeeperContext, "prefix">,
  { jobNamePrefix }: Pick<Fleet, "jobNamePrefix">,
): string => (jobNamePrefix === undefined ? prefix : prefix.replace(/^slipway/, jobNamePrefix));
