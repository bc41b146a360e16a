import type { ClusterConfig } from "../config/clusters-file.ts";
import type { ClusterDescription } from "../managers/provider.ts";
import { createProvider } from "../managers/registry.ts";

/**
 * What each manager last said of itself. It is asked in the background, when the server starts and every few minutes;
 * whoever needs to know takes the last answer and never waits. An answer that is too old counts for nothing.
 */
export interface Descriptions {
  /** The last one, at most 10 minutes old. */
  of(cluster: string): ClusterDescription | undefined;
  /** Whether it is time to ask again. */
  isDue(cluster: string): boolean;
  /** Asks, and keeps the answer; rejects when the manager does not give one. */
  ask(cluster: ClusterConfig): Promise<ClusterDescription>;
  /** It is another cluster now: what was said of it is void, also what is still on its way. */
  forget(cluster: string): void;
}

export interface DescriptionsOptions {
  readonly describe?: (cluster: ClusterConfig) => Promise<ClusterDescription>;
  /** Milliseconds that only grow. */
  readonly now?: () => number;
}

/** Somebody may be waiting for the answer. */
const PROMPT = { timeoutMs: 20_000, pausesMs: [500] };
const GOOD_MS = 600_000;
const DUE_MS = 270_000;

export const createDescriptions = ({
  describe = (cluster) => createProvider(cluster, PROMPT).describe(),
  now = () => performance.now(),
}: DescriptionsOptions = {}): Descriptions => {
  const kept = new Map<string, { readonly at: number; readonly description: ClusterDescription }>();
  const forgotten = new Map<string, number>();
  const ageOf = (cluster: string): number => now() - (kept.get(cluster)?.at ?? -Infinity);
  return {
    of: (cluster) => (ageOf(cluster) <= GOOD_MS ? kept.get(cluster)?.description : undefined),
    isDue: (cluster) => ageOf(cluster) > DUE_MS,
    ask: async (cluster) => {
      const { name } = cluster;
      const times = forgotten.get(name) ?? 0;
      const at = now();
      const description = await describe(cluster);
      if ((forgotten.get(name) ?? 0) === times) kept.set(name, { at, description });
      return description;
    },
    forget: (cluster) => {
      kept.delete(cluster);
      forgotten.set(cluster, (forgotten.get(cluster) ?? 0) + 1);
    },
  };
};
