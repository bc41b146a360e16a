import type { ClusterConfig } from "../config/clusters-file.ts";
import { repeatTimer } from "../long-timer.ts";
import type { ClusterDescription } from "../managers/provider.ts";
import type { Descriptions } from "./descriptions.ts";
import { type Trouble, absenceOf } from "./absence.ts";

/**
 * Which clusters can be used, as far as this server has tried:
 *
 *   untried ──► fine ◄──► silent (its manager does not answer)
 *          └──► absent (its programs or its configuration are not here) ──► fine
 *
 * Whatever is not fine is tried again, so that it is over when it is over; all are asked again for their descriptions.
 */
export interface Standing extends Trouble {
  readonly state: "absent" | "silent";
  /** Concluded from programs and files alone. */
  readonly byFiles?: boolean;
  /** Server milliseconds. */
  readonly since: number;
}

export interface Standings {
  /** Tries all clusters, each by itself. */
  tryAll(): Promise<void>;
  /** Null: it can be used. Undefined: it was not tried yet. */
  of(cluster: string): Standing | null | undefined;
  /** It is another cluster now, or new, or gone: what was known of it is void, and it is tried. */
  changed(cluster: string): void;
  /** The programs and files that it lacked are here now: what was concluded from their absence is void. */
  filesCame(cluster: string): void;
  /** What its manager last said about its nodes, if that is not too old. */
  described(cluster: string): ClusterDescription | undefined;
  /** What somebody else heard from its manager: null if it answered, else why not. */
  heard(cluster: string, problem: string | null): void;
  close(): void;
}

export interface StandingsOptions {
  /** As they are now. */
  readonly clusters: () => Iterable<ClusterConfig>;
  readonly clock: () => number;
  readonly log: (text: string) => void;
  readonly descriptions: Pick<Descriptions, "ask" | "isDue" | "of">;
}

const AGAIN_MS = 60_000;

type Found = Omit<Standing, "since">;

const troubleWith = async (
  cluster: ClusterConfig,
  ask: (cluster: ClusterConfig) => Promise<unknown>,
): Promise<Found | null> => {
  const absence = await absenceOf(cluster);
  if (absence !== undefined) return { state: "absent", byFiles: true, ...absence };
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

export const createStandings = ({ clusters, clock, log, descriptions }: StandingsOptions): Standings => {
  const managed = (): ClusterConfig[] => [...clusters()].filter(({ manager }) => manager.batch !== undefined);
  const managedNamed = (name: string): ClusterConfig | undefined => managed().find((each) => each.name === name);
  const known = new Map<string, Standing | null>();

  const set = (name: string, found: Found | null): void => {
    const before = known.get(name);
    if (found === null) {
      if (before != null) log(`cluster ${name} can be used again`);
      known.set(name, null);
      return;
    }
    if (before?.cause !== found.cause) log(`warning: cluster ${name} cannot be used: ${found.cause}; ${found.remedy}`);
    known.set(name, { ...found, since: before?.since ?? clock() });
  };

  const tryOne = async (cluster: ClusterConfig): Promise<void> => {
    const found = await troubleWith(cluster, descriptions.ask);
    // it may be another one by now
    if (managedNamed(cluster.name) === cluster) set(cluster.name, found);
  };

  const timer = repeatTimer(AGAIN_MS, () => {
    for (const cluster of managed())
      if (known.get(cluster.name) != null || descriptions.isDue(cluster.name)) void tryOne(cluster);
  });

  return {
    tryAll: async () => {
      await Promise.all(managed().map(tryOne));
    },
    of: (name) => (managedNamed(name) === undefined ? null : known.get(name)),
    changed: (name) => {
      known.delete(name);
      const cluster = managedNamed(name);
      if (cluster !== undefined) void tryOne(cluster);
    },
    filesCame: (name) => {
      const cluster = managedNamed(name);
      if (cluster === undefined || known.get(name)?.byFiles !== true) return;
      known.delete(name);
      log(`cluster ${name}: what was missing is here now`);
      void tryOne(cluster);
    },
    described: descriptions.of,
    heard: (name, problem) => {
      if (problem === null) set(name, null);
      // what is not here is known better than that it does not answer
      else if (known.get(name)?.state !== "absent")
        set(name, { state: "silent", cause: problem, remedy: `\`slipway clusters check ${name}\` says what to fix` });
    },
    close: () => timer.stop(),
  };
};
