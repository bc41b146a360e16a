import type { RunView } from "../../src/api/schemas.ts";
import { isConnectionLost } from "../../src/client/index.ts";
import type { Submitted } from "./workload.ts";
import type { World } from "./world.ts";

/**
 * Remembers what the server said of runs that had ended, and of those that it had accepted: its successor must say the
 * same. Only `retry` reopens a run.
 */
export interface Witness {
  /** Asks, and throws if the answer differs from before; a server that is away at the moment is not a problem. */
  look(): Promise<void>;
}

/** Only a server that hangs takes this long. */
const PATIENCE_MS = 30_000;

const limited = async <T>(what: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const hang = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([what, hang]);
  } finally {
    clearTimeout(timer);
  }
};

const factsOf = ({ state, counts, unneeded, started, finished, retries, losses }: RunView): string =>
  JSON.stringify({ state, counts, unneeded, started, finished, retries, losses });

/** This reports the end of a run once it is on disk; a listing may be ahead of the disk. */
const firstOf = async (views: AsyncGenerator<RunView>): Promise<RunView | undefined> => {
  for await (const view of views) return view;
  return undefined;
};

export const createWitness = (world: World, submitted: readonly Submitted[]): Witness => {
  /** By run: what the server said, and how often the run had been retried by then. */
  const ended = new Map<number, { facts: string; retried: number }>();

  const look = async (): Promise<void> => {
    const problems: string[] = [];
    const retried = (id: number): number => submitted.find((one) => one.id === id)?.retried ?? 0;
    const before = new Map(submitted.flatMap(({ id }) => (id === undefined ? [] : [[id, retried(id)] as const])));
    const { runs } = await limited(
      Promise.all([world.client.runs({ limit: 1000 }), world.client.status()]).then(([runs]) => ({ runs })),
    );
    const found = new Map(runs.map((run) => [run.id, run]));
    for (const id of before.keys()) if (!found.has(id)) problems.push(`run ${id} was acknowledged and is gone`);
    for (const run of runs) {
      const known = ended.get(run.id);
      const times = retried(run.id);
      const facts = factsOf(run);
      if (known !== undefined && known.retried === times && known.facts !== facts)
        problems.push(`run ${run.id} had ended, and changed: ${known.facts}, then ${facts}`);
      if (run.finished === null || known?.retried === times) continue;
      const told = await limited(firstOf(world.client.watch(run.id)));
      if (told !== undefined && told.finished !== null && retried(run.id) === times)
        ended.set(run.id, { facts: factsOf(told), retried: times });
    }
    for (const id of ended.keys()) if (!found.has(id)) problems.push(`run ${id} had ended and is gone`);
    if (problems.length > 0) throw new Error(problems.join("\n"));
  };

  return {
    look: async () => {
      try {
        await look();
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
      }
    },
  };
};
