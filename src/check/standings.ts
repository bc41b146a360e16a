import type { ClusterConfig } from "../config/clusters-file.ts";
import { repeatTimer } from "../long-timer.ts";
import type { ClusterDescription } from "../managers/provider.ts";
import { createProvider } from "../managers/registry.ts";
import { type Trouble, absenceOf } from "./absence.ts";

/**
 * Which clusters can be used, as far as this server has tried:
 *
 *   untried ──► fine ◄──► silent (its manager does not answer)
 *          └──► absent (its programs or its configuration are not here) ──► fine
 *
 * Whatever is not fine is tried again, so that it is over when it is over.
 */
export interface Standing extends Trouble {
  readonly state: "absent" | "silent";
  /** Server milliseconds. */
  readonly since: number;
}

export interface Standings {
  /** Tries all clusters, each by itself. */
  tryAll(): Promise<void>;
  /** Null: it can be used. Undefined: it was not tried yet. */
  of(cluster: string): Standing | null | undefined;
  /** The same when its first try is over, or after a while. */
  settled(cluster: string): Promise<Standing | null | undefined>;
  /** What its manager last said about its nodes; undefined: it has said nothing yet. */
  described(cluster: string): ClusterDescription | undefined;
  /** What somebody else heard from its manager: null if it answered, else why not. */
  heard(cluster: string, problem: string | null): void;
  close(): void;
}

export interface StandingsOptions {
  readonly clusters: Iterable<ClusterConfig>;
  readonly clock: () => number;
  readonly log: (text: string) => void;
  /** Asks a manager to describe itself. */
  readonly ask?: (cluster: ClusterConfig) => Promise<ClusterDescription>;
}

/** Somebody may be waiting for the answer. */
const PROMPT = { timeoutMs: 20_000, pausesMs: [500] };
/** How long a submission waits for a first try. */
const SETTLED_MS = 5000;
const AGAIN_MS = 60_000;
/** Nodes come and go: what was said about them is asked for again after this long. */
const STALE_MS = 300_000;

const describe = (cluster: ClusterConfig): Promise<ClusterDescription> => createProvider(cluster, PROMPT).describe();

const troubleWith = async (
  cluster: ClusterConfig,
  ask: (cluster: ClusterConfig) => Promise<void>,
): Promise<(Trouble & Pick<Standing, "state">) | null> => {
  const absence = await absenceOf(cluster);
  if (absence !== undefined) return { state: "absent", ...absence };
  const { batch, title } = cluster.manager;
  try {
    await ask(cluster);
    return null;
  } catch (error) {
    const { message: cause } = error as Error;
    if (batch?.unconfigured?.test(cause) === true)
      return { state: "absent", cause, remedy: `tell ${title}'s commands where its configuration is` };
    return { state: "silent", cause, remedy: `try ${batch?.programs[1] ?? "its commands"} on the server's machine` };
  }
};

export const createStandings = ({ clusters, clock, log, ask = describe }: StandingsOptions): Standings => {
  const managed = [...clusters].filter(({ manager }) => manager.batch !== undefined);
  const known = new Map<string, Standing | null>();
  const firsts = new Map<string, Promise<void>>();
  const descriptions = new Map<string, { readonly at: number; readonly said: ClusterDescription }>();

  const set = (name: string, found: (Trouble & Pick<Standing, "state">) | null): void => {
    const before = known.get(name);
    if (found === null) {
      if (before != null) log(`cluster ${name} can be used again`);
      known.set(name, null);
      return;
    }
    if (before?.cause !== found.cause) log(`warning: cluster ${name} cannot be used: ${found.cause}; ${found.remedy}`);
    known.set(name, { ...found, since: before?.since ?? clock() });
  };

  const learn = async (cluster: ClusterConfig): Promise<void> => {
    const said = await ask(cluster);
    descriptions.set(cluster.name, { at: performance.now(), said });
  };
  const tryOne = async (cluster: ClusterConfig): Promise<void> => set(cluster.name, await troubleWith(cluster, learn));
  const isStale = (name: string): boolean => performance.now() - (descriptions.get(name)?.at ?? -Infinity) > STALE_MS;

  const timer = repeatTimer(AGAIN_MS, () => {
    for (const cluster of managed) if (known.get(cluster.name) != null || isStale(cluster.name)) void tryOne(cluster);
  });

  return {
    tryAll: async () => {
      for (const cluster of managed) firsts.set(cluster.name, tryOne(cluster));
      await Promise.all(firsts.values());
    },
    of: (name) => (managed.some((cluster) => cluster.name === name) ? known.get(name) : null),
    settled: async (name) => {
      const cluster = managed.find((each) => each.name === name);
      // what was not here may have come meanwhile
      if (cluster !== undefined && known.get(name)?.state === "absent") firsts.set(name, tryOne(cluster));
      let limit: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (limit = setTimeout(resolve, SETTLED_MS)));
      await Promise.race([firsts.get(name), late]);
      clearTimeout(limit);
      return known.get(name);
    },
    described: (name) => descriptions.get(name)?.said,
    heard: (name, problem) => {
      if (problem === null) set(name, null);
      // what is not here is known better than that it does not answer
      else if (known.get(name)?.state !== "absent")
        set(name, { state: "silent", cause: problem, remedy: `\`slipway clusters check ${name}\` says what to fix` });
    },
    close: () => timer.stop(),
  };
};
