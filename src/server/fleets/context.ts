import type { Agents } from "../agents.ts";
import type { Engine } from "../engine.ts";
import type { Roster } from "./roster.ts";
import type { Spools } from "./spools.ts";

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
  readonly onWaiting: (pilot: number, text: string) => void;
}
