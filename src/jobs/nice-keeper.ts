import type { Group, Run } from "../core/run.ts";
import { groupOf } from "../core/run.ts";
import { type TaskJob, carries } from "../core/task-job.ts";
import type { NiceRules } from "../managers/provider.ts";
import type { JobsContext } from "./context.ts";
import { DEFAULT_SCALE, type NiceScale, fittingFactor, movesEnough, niceOf, scaleOf } from "./nice.ts";
import { elementsOf } from "./roster.ts";
import type { TaskQueue } from "./task-queue.ts";

/** Nice values of the jobs of one cluster, with `use-nice`: given when they are submitted, and kept up to date. */
export interface NiceKeeper {
  /** What these tasks are submitted with; undefined where nice values are not used. */
  of(queue: TaskQueue, tasks: { readonly run: Run; readonly group: Group }): number | undefined;
  /** Asks for the manager's rules now and then, and changes what has moved. */
  look(): Promise<void>;
}

const RULES_MS = 60_000;

export const createNiceKeeper = (
  { engine, log }: Pick<JobsContext, "engine" | "log">,
  queues: readonly TaskQueue[],
  living: () => readonly TaskJob[],
): NiceKeeper => {
  const { provider, cluster } = queues[0]!;
  const isUsed = queues.some(({ policy }) => policy.useNice) && provider.niceRules !== undefined;
  const given = new Map<number, number>();
  let scale: NiceScale = DEFAULT_SCALE;
  let rules: NiceRules | undefined;
  let askedAt = -Infinity;
  let hasWarned = false;

  /** When a task is due: the start that its order gives it is its run's end less its pressure. */
  const niceOfGroup = (run: Run, group: Group): number => {
    const { start } = engine.scheduler.rankOf(run, group);
    return niceOf(start, engine.clock(), scale, rules?.priority);
  };

  const renewRules = async (): Promise<void> => {
    if (performance.now() - askedAt < RULES_MS) return;
    askedAt = performance.now();
    rules = await provider.niceRules!();
    scale = scaleOf(rules.parameters);
    const fitting = fittingFactor(scale, rules.priority);
    if (fitting === undefined || hasWarned) return;
    hasWarned = true;
    log(
      `${cluster}: jobs have a priority of ${rules.priority} here, too little for nice values of a whole day; ` +
        `with nice_factor=${fitting} in PriorityParameters of slurm.conf a day would fit`,
    );
  };

  const change = async (): Promise<void> => {
    const changes: { nativeId: string; nice: number }[] = [];
    const wanted = new Map<TaskJob, number>();
    for (const { job, element } of elementsOf(living())) {
      const run = engine.state.runs.get(job.run);
      if (run === undefined || element.nativeId === "" || !carries(element)) continue;
      let nice = wanted.get(job);
      if (nice === undefined) wanted.set(job, (nice = niceOfGroup(run, groupOf(run.groups, element.row))));
      const before = given.get(job.id);
      if (before === undefined || movesEnough(before, nice, scale)) changes.push({ nativeId: element.nativeId, nice });
    }
    for (const id of given.keys()) if (!engine.state.taskJobs.has(id)) given.delete(id);
    if (changes.length === 0) return;
    await provider.renice!(changes);
    for (const [job, nice] of wanted) {
      const before = given.get(job.id);
      if (before === undefined || movesEnough(before, nice, scale)) given.set(job.id, nice);
    }
  };

  return {
    of: ({ policy }, { run, group }) => {
      if (!isUsed || !policy.useNice) return undefined;
      const nice = niceOfGroup(run, group);
      given.set(engine.state.nextTaskJob, nice);
      return nice;
    },
    look: async () => {
      if (!isUsed) return;
      await renewRules();
      if (provider.renice !== undefined) await change();
    },
  };
};
