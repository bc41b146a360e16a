import { checkAll, describeAll } from "./checks.ts";
import { drive } from "./drive.ts";
import { untilFinished } from "./finish.ts";
import { createProxy } from "./proxy.ts";
import { createRandom } from "./random.ts";
import { type Schedule, drawSchedule, showSchedule } from "./schedule.ts";
import type { Tools } from "./tools.ts";
import { type World, createWorld } from "./world.ts";

/** One seed: its schedule carried out, everything checked, nothing left. */

export interface SeedOptions {
  readonly tools: Tools;
  readonly binaries?: string;
}

export interface Verdict {
  readonly seed: number;
  readonly problems: readonly string[];
  /** For people, when something is wrong: schedule, what happened when, logs, where the home is. */
  readonly report: string;
  readonly ms: number;
  readonly tasks: number;
}

const clustersOf = ({ pilots, cpus }: Schedule): string =>
  `clusters: { local: { type: local, grace: 1, resources: { cpus: ${cpus} }, queues: { default: { fleet: { min: ${pilots}, max: ${pilots} } } } } }\n`;

const compare = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] => {
  const problems: string[] = [];
  for (const [what, text] of before)
    if (after.get(what) !== text) problems.push(`${what} changed with a restart:\n  ${text}\n  ${after.get(what)}`);
  for (const what of after.keys()) if (!before.has(what)) problems.push(`${what} appeared with a restart`);
  return problems;
};

const judge = async (world: World, schedule: Schedule): Promise<{ problems: string[]; tasks: number }> => {
  const problems: string[] = [];
  world.proxy = await createProxy(createRandom(schedule.seed).fork("proxy"));
  world.proxyForAll = schedule.proxyForAll;
  await world.up();
  const driven = await drive(world, schedule);
  await untilFinished(world);
  world.note("all runs have ended");
  problems.push(...(await checkAll(world, driven)));
  if (schedule.replay) {
    const before = await describeAll(world);
    await world.killServer();
    await world.up();
    problems.push(...compare(before, await describeAll(world)));
  }
  for (const left of await world.leave()) problems.push(`left behind: ${left}`);
  const verified = await world.cli(["journal", "verify"]);
  if (verified.status !== 0) problems.push(`journal verify: ${verified.stdout}${verified.stderr}`);
  return { problems, tasks: driven.submitted.reduce((sum, { plan }) => sum + plan.tasks + plan.behind, 0) };
};

export const runSeed = async (seed: number, options: SeedOptions): Promise<Verdict> => {
  const began = performance.now();
  const schedule = drawSchedule(seed);
  const world = await createWorld({
    tools: options.tools,
    clusters: clustersOf(schedule),
    ...(options.binaries === undefined ? {} : { binaries: options.binaries }),
    env: { SLIPWAY_SPAWNER: schedule.spawner },
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
  await world.destroy(failed);
  return { seed, problems, report, ms: performance.now() - began, tasks };
};
