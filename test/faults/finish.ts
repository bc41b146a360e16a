import { readExecutions } from "./checks.ts";
import type { Submitted } from "./workload.ts";
import type { World } from "./world.ts";
import { until } from "../until.ts";

/** Only a hang takes this long. */
const FINISH_MS = 180_000;
/**
 * How many losses of one task above the limit are too many: some, such as those of an agent asked to end, cost nothing.
 */
const FREE_LOSSES = 6;
const LOOK_MS = 1000;

/** A task that takes down its agent again and again would never end. */
const refuseEndless = async (
  world: World,
  submitted: readonly Submitted[],
  limits: readonly number[],
): Promise<void> => {
  const killers = submitted.filter(({ plan }) => plan.kills !== undefined);
  if (killers.length === 0) return;
  const executions = await readExecutions(world.ran);
  for (const { id, plan } of killers)
    for (let row = 0; row < plan.tasks; row += 1) {
      const times = executions.get(`${id}.${row}`)?.length ?? 0;
      if (times > Math.max(...limits) + 1 + FREE_LOSSES)
        throw new Error(`task ${id}.${row}, which kills its ${plan.kills}, was run ${times} times and is not given up`);
    }
};

/** Waits until every run has ended; if one hangs, says what everybody waits for. */
export const untilFinished = async (
  world: World,
  submitted: readonly Submitted[] = [],
  limits: readonly number[] = [],
): Promise<void> => {
  let looked = 0;
  const ended = async (): Promise<boolean> => {
    if (performance.now() - looked > LOOK_MS) {
      looked = performance.now();
      await refuseEndless(world, submitted, limits);
    }
    return (await world.client.runs({ limit: 1000 })).every(({ finished }) => finished !== null);
  };
  try {
    await until("all runs to end", ended, FINISH_MS);
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
