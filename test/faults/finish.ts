import { until } from "./processes.ts";
import type { World } from "./world.ts";

/** Only a hang takes this long. */
const FINISH_MS = 180_000;

/** Waits until every run has ended; a hang says what everybody waits for. */
export const untilFinished = async (world: World): Promise<void> => {
  try {
    await until(
      "all runs to end",
      async () => (await world.client.runs({ limit: 1000 })).every(({ finished }) => finished !== null),
      FINISH_MS,
    );
  } catch (error) {
    const words: string[] = [];
    for (const run of await world.client.runs({ limit: 1000 }))
      if (run.finished === null) {
        const { detail } = await world.client.why(run.id);
        words.push(`run ${run.id} ${JSON.stringify(run.counts)}: ${detail}`);
      }
    words.push((await world.cli(["status"])).stdout, (await world.cli(["pilots", "list"])).stdout);
    throw new Error(`${(error as Error).message}\n${words.join("\n")}`, { cause: error });
  }
};
