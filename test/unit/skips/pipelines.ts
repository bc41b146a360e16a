import { type Run, groupOf, isFinishedRun } from "../../../src/core/run.ts";
import type { GroupSpec, RunSpec } from "../../../src/core/spec.ts";
import { isSkipped } from "../../../src/core/skipped.ts";
import type { State } from "../../../src/core/state.ts";
import { filesOf } from "../../../src/core/task-files.ts";
import type { Scheduler } from "../../../src/scheduler/scheduler.ts";
import { type Judge, judgeFirst } from "../../../src/skips/judge.ts";
import type { Look, LookTask } from "../../../src/skips/look-files.ts";
import { weigh } from "../../../src/skips/weigh.ts";
import { type Driver, createDriver } from "../core/model.ts";

/** Pipelines over files that are only pretended: the real core and the real judge, and tasks that compute texts from texts. */

export interface File {
  readonly text: string;
  readonly time: bigint;
}

export interface World {
  readonly driver: Driver;
  readonly judge: Judge;
  readonly files: Map<string, File>;
  /** How often files were looked at, and of how many tasks. */
  readonly looks: number[];
  /** Nobody can tell anything about files. */
  hangs: boolean;
  write(path: string, text: string): void;
  touch(path: string): void;
  /** Runs whatever may run; `outcome` says how each task ends; silent: it is never heard of again; stop: before it begins, nobody works any more. */
  work(run: Run, outcome?: (row: number) => "well" | "badly" | "silent" | "stop"): Promise<void>;
  submit(spec: RunSpec, items?: ReadonlyMap<number, readonly string[]>): Run;
}

/** What a task makes of its inputs. */
export const made = (spec: GroupSpec, inputs: readonly (string | undefined)[]): string =>
  `${String(spec.command)}(${inputs.map((text) => text ?? "nothing").join()})`;

/** What its outputs should hold, if all were done again now: its declared inputs, and all that it waits for. */
export const expectedText = (files: ReadonlyMap<string, File>, run: Run, row: number): string => {
  const group = groupOf(run.groups, row);
  return made(
    group.spec,
    readsOf(run, row).map((path) => files.get(path)?.text),
  );
};

/** Declared or not, a task reads what those before it have made. */
const readsOf = (run: Run, row: number): string[] => {
  const group = groupOf(run.groups, row);
  const declared = filesOf(run, group, row).inputs;
  const before = group.spec.after.flatMap((each) => {
    if (!("group" in each)) return [];
    const other = run.groups[each.group]!;
    const rows = Array.from({ length: other.count }, (_, i) => other.first + i);
    return rows.filter((one) => each.items === undefined || one - other.first === row - group.first);
  });
  return [...declared, ...before.flatMap((one) => filesOf(run, groupOf(run.groups, one), one).outputs)];
};

export const createWorld = (): World => {
  const files = new Map<string, File>();
  const looks: number[] = [];
  let time = 1n;
  const queued: { run: Run; row: number }[] = [];
  const forget = (run: Run): void => {
    for (let i = queued.length - 1; i >= 0; i -= 1) if (queued[i]!.run === run) queued.splice(i, 1);
  };
  const inner = {
    ready: (run: Run, from: number, count: number) => {
      for (let row = from; row < from + count; row += 1) {
        if (queued.some((one) => one.run === run && one.row === row)) throw new Error(`row ${row} is queued twice`);
        queued.push({ run, row });
      }
    },
    unqueue: forget,
    dropRun: forget,
    canceled: (run: Run, from: number, count: number) => {
      for (let i = queued.length - 1; i >= 0; i -= 1)
        if (queued[i]!.run === run && queued[i]!.row >= from && queued[i]!.row < from + count) queued.splice(i, 1);
    },
  } as unknown as Scheduler;

  const world: World = {
    get driver() {
      return driver;
    },
    get judge() {
      return judge;
    },
    files,
    looks,
    hangs: false,
    write: (path, text) => void files.set(path, { text, time: (time += 1n) }),
    touch: (path) => void files.set(path, { text: files.get(path)?.text ?? "", time: (time += 1n) }),
    submit: (spec, items) => driver.submit(spec, items === undefined ? {} : { items }),
    work: async (run, outcome = () => "well") => {
      const agent = driver.join();
      for (;;) {
        await judge.settled();
        const next = queued.findIndex((one) => one.run === run);
        if (next < 0) break;
        const { row } = queued.splice(next, 1)[0]!;
        const group = groupOf(run.groups, row);
        const text = expectedText(files, run, row);
        const how = outcome(row);
        if (how === "stop") return;
        driver.assign(agent, run.id, row);
        for (const path of filesOf(run, group, row).outputs) world.write(path, how === "well" ? text : "half of it");
        if (how !== "silent") driver.end(agent, run.id, [row], how === "well" ? 0 : 1);
      }
      if (isFinishedRun(run)) judge.scheduler.dropRun(run);
    },
  };

  const look = async (tasks: readonly LookTask[]): Promise<Look[] | undefined> => {
    looks.push(tasks.length);
    if (world.hangs) return undefined;
    const seen = (paths: readonly string[]) => paths.map((path) => [path, files.get(path)?.time ?? null] as const);
    return tasks.map(({ mode, outputs, inputs }) => {
      const reason = weigh(mode, { outputs: seen(outputs), inputs: seen(inputs) }) ?? null;
      const text = inputs.map((path) => files.get(path)?.text).join();
      const contents = [...text].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 1e9, 7);
      return mode === "content" ? { reason, contents } : { reason };
    });
  };
  const judge = judgeFirst(inner, { look, close: () => undefined });
  const driver = createDriver({
    told: { ready: (run, from, count) => judge.scheduler.ready(run, from, count) },
  });
  judge.start({
    state: driver.state,
    clock: () => 5000,
    commit: (event) => {
      driver.send(event);
      return 0;
    },
    schedulePass: () => undefined,
  });
  return world;
};

export const skippedRows = (run: Run): number[] =>
  Array.from({ length: run.total }, (_, row) => row).filter((row) => isSkipped(run, row));

export type { State };
