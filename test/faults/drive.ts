import { setTimeout as sleep } from "node:timers/promises";
import type { Bulk } from "./clients.ts";
import { untilFinished } from "./finish.ts";
import type { Schedule, Step } from "./schedule.ts";
import { createSteps } from "./steps.ts";
import { createWitness } from "./witness.ts";
import { type Submitted, createSubmitted, submitSurely } from "./workload.ts";
import type { World } from "./world.ts";

/** Carries out a schedule: work goes in while things break. */

export interface Driven {
  readonly submitted: Submitted[];
  readonly bulks: Bulk[];
  /** Every `limits.losses` that was in force. */
  readonly limits: number[];
}

/** Retries runs that failed, and kills the server while they run again. */
const retryFailed = async (world: World, { submitted, limits }: Driven): Promise<void> => {
  await untilFinished(world, submitted, limits);
  const failed = new Set(
    (await world.client.runs({ limit: 1000 })).filter(({ state }) => state === "FAILED").map(({ id }) => id),
  );
  for (const one of submitted) {
    // a task that kills its agent would only do so again
    if (one.id === undefined || !failed.has(one.id) || one.plan.kills !== undefined) continue;
    one.retried += 1;
    const { reopened } = await world.client.retry(one.id);
    world.note(`run ${one.id} is retried: ${reopened} tasks`);
  }
  if (!submitted.some(({ retried }) => retried > 0)) return;
  await world.killServer();
  await world.up();
};

export const drive = async (world: World, schedule: Schedule): Promise<Driven> => {
  const submitted: Submitted[] = [];
  const witness = createWitness(world, submitted);
  const driven: Driven = { submitted, bulks: [], limits: [schedule.losses] };
  /** Submissions under way, so that no error in one of them is lost. */
  const busy: Promise<void>[] = [];
  const take = (plan: Parameters<typeof createSubmitted>[0]): Submitted => {
    const after = plan.after === undefined ? undefined : submitted[plan.after.nth];
    const one = createSubmitted(plan, submitted.length + 1, after);
    submitted.push(one);
    return one;
  };
  const carryOut = createSteps(world, schedule, driven, { take, busy, witness });

  for (let i = 0; i < schedule.byHand; i += 1) await world.addAgent(schedule.cpus);
  const began = performance.now();
  for (const plan of schedule.runs) {
    const one = take(plan);
    // a run that waits for another names it, so the other must be acknowledged first
    const named = plan.after === undefined ? undefined : busy[plan.after.nth];
    busy.push(
      sleep(Math.max(0, plan.at - (performance.now() - began)))
        .then(() => named)
        .then(() => submitSurely(world, one)),
    );
  }
  // the first error counts, even while the other side still waits
  const failed = Promise.all(busy).then(() => undefined);
  failed.catch(() => undefined);
  for (const { pause, ...step } of schedule.steps) {
    await sleep(pause);
    await carryOut(step as Step);
    await witness.look();
  }
  await failed;
  await Promise.all(busy);
  if (schedule.retry) await retryFailed(world, driven);
  await untilFinished(world, submitted, driven.limits);
  await witness.look();
  world.note("all runs have ended");
  return driven;
};
