import type { ClustersConfig } from "../config/clusters-file.ts";
import { isFinalLaunch } from "../core/launch.ts";
import type { State } from "../core/state.ts";
import { isFinalPilot } from "../core/states.ts";

/**
 * Where the port is open. A server whose work is all on this machine listens only there; as soon as something elsewhere
 * must reach it, it listens on every address.
 */
export interface Listening {
  readonly host: string;
  /** Why there, for people. */
  readonly reason: string;
}

export interface ListeningFacts {
  /** `--host`. */
  readonly asked: string | undefined;
  readonly clusters: ClustersConfig["clusters"];
  readonly state: Pick<State, "pilots" | "launches" | "agents">;
  readonly hostname: string;
}

const LOOPBACK = "127.0.0.1";
const EVERYWHERE = "0.0.0.0";

/** The first thing found that puts work of this home on other machines; undefined if there is none. */
const elsewhere = ({ clusters, state, hostname }: ListeningFacts): string | undefined => {
  const isHere = (name: string): boolean => clusters.get(name)?.manager.isHere === true;
  for (const { name, type } of clusters.values())
    if (!isHere(name)) return `the nodes of cluster ${name} (${type}) must reach it`;
  // pilots of clusters that are no longer in the file
  for (const { id, cluster, state: of } of state.pilots.values())
    if (!isFinalPilot(of) && !isHere(cluster)) return `pilot ${id} of cluster ${cluster} still lives`;
  for (const { id, state: of } of state.launches.values()) if (!isFinalLaunch(of)) return `launch ${id} has not ended`;
  for (const { pilot, host, ended } of state.agents.values())
    if (ended === 0 && pilot === 0 && host !== hostname) return `an agent on ${host} must reach it`;
  return undefined;
};

export const whereToListen = (facts: ListeningFacts): Listening => {
  if (facts.asked !== undefined) return { host: facts.asked, reason: "as --host says" };
  const reason = elsewhere(facts);
  if (reason !== undefined) return { host: EVERYWHERE, reason };
  return { host: LOOPBACK, reason: "all its work is on this machine; --host lets other machines in" };
};
