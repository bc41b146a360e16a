import type { Agents } from "../agent-links/agents.ts";
import type { Engine } from "../server/engine.ts";
import type { Fleet } from "./fleet.ts";
import type { Roster } from "./roster.ts";
import type { Spools } from "./spools.ts";
import type { PilotId } from "../core/ids.ts";

/** What the parts of a keeper share. */
export interface KeeperContext {
  /** Starts every job name of this home, with a `-` behind it. */
  readonly prefix: string;
  /** The cluster of tasks that name none. */
  readonly defaultCluster: string;
  readonly engine: Engine;
  readonly agents: Agents;
  readonly roster: Roster;
  readonly spools: Spools;
  readonly log: (text: string, facts?: object) => void;
  /** For those who follow events: what the manager says of a pilot that waits. */
  readonly onWaiting: (pilot: PilotId, text: string) => void;
}

/** What starts the names of a fleet's jobs: the home's mark behind the fleet's own word or `slipway`. */
export const jobPrefixOf = (
  { prefix }: Pick<KeeperContext, "prefix">,
  { jobNamePrefix }: Pick<Fleet, "jobNamePrefix">,
): string => (jobNamePrefix === undefined ? prefix : prefix.replace(/^slipway/, jobNamePrefix));
