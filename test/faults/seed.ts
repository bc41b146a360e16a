import { checkAll, describeAll, readExecutions, unforeseen } from "./checks.ts";
import type { Count } from "./count.ts";
import { drawSchedule } from "./draw.ts";
import { drive } from "./drive.ts";
import type { Feature } from "./features.ts";
import { createProxy } from "./proxy.ts";
import { createRandom } from "./random.ts";
import { type Schedule, clustersOf, showSchedule } from "./schedule.ts";
import type { Tools } from "./tools.ts";
import { journalProblems, refusedMoves } from "./verify.ts";
import { expectedTotal } from "./workload.ts";
import { type World, createWorld } from "./world.ts";

/** One seed: carries out its schedule, checks everything, leaves nothing. */

export interface SeedOptions {
  readonly tools: Tools;
  readonly binaries?: string;
  readonly features: readonly Feature[];
}

export interface Verdict {
  readonly seed: number;
  readonly problems: readonly string[];
  /** For people, when something is wrong: the schedule, what happened when, logs, where the home is. */
  readonly report: string;
  readonly ms: number;
  readonly tasks: number;
  readonly count: Count & { readonly executions: number };
}

const compare = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] => {
  const problems: string[] = [];
  for (const [what, text] of before)
    if (after.get(what) !== text) problems.push(`${what} changed with a restart:\n  ${text}\n  ${after.get(what)}`);
  for (const what of after.keys()) if (!before.has(what)) problems.push(`${what} appeared with a restart`);
  return problems;
};

const judge = async (world: World, schedule: Schedule): Promise<{ problems: string[]; tasks: number }> => {
  world.proxy = await createProxy(createRandom(schedule.seed).fork("proxy"));
  world.proxyForAll = schedule.proxyForAll;
  if (schedule.apiProxy) world.apiProxy = await createProxy(createRandom(schedule.seed).fork("api"), world.apiSocket);
  await world.up();
  const driven = await drive(world, schedule);
  const problems = await checkAll(world, driven);
  if (schedule.replay) {
    const before = await describeAll(world);
    await world.killServer();
    await world.up();
    problems.push(...compare(before, await describeAll(world)));
  }
  for (const left of await world.leave()) problems.push(`left behind: ${left}`);
  problems.push(...(await journalProblems(world)), ...(await refusedMoves(world)), ...(await unforeseen(world)));
  return { problems, tasks: driven.submitted.reduce((sum, { plan }) => sum + expectedTotal(plan), 0) };
};

export const runSeed = async (seed: number, options: SeedOptions): Promise<Verdict> => {
  const began = performance.now();
  const drawn = drawSchedule(seed, options.features);
  const schedule = { ...drawn, keepHistory: drawn.keepHistory && options.tools.keepsHistory };
  const world = await createWorld({
    tools: options.tools,
    clusters: clustersOf(schedule),
    ...(options.binaries === undefined ? {} : { binaries: options.binaries }),
    env: { SLIPWAY_SPAWNER: schedule.spawner },
    disk: schedule.disk,
  });
  let problems: string[] = [];
  let tasks = 0;
  try {
    ({ problems, tasks } = await judge(world, schedule));
  } catch (error) {
    problems.push((error as Error).stack ?? String(error));
  }
  const failed = problems.length > 0;
  const report = failed
    ? [
        showSchedule(schedule),
        "--- what happened",
        ...world.notes,
        await world.logs(),
        `--- wrong with seed ${seed}`,
        ...problems.slice(0, 40),
        ...(problems.length > 40 ? [`and ${problems.length - 40} more`] : []),
        `the home is kept in ${world.root}; again with: npm run test:faults -- --seed ${seed}`,
      ].join("\n")
    : "";
  const executions = [...(await readExecutions(world.ran)).values()].reduce((sum, list) => sum + list.length, 0);
  await world.destroy(failed);
  return { seed, problems, report, ms: performance.now() - began, tasks, count: { ...world.count, executions } };
};
