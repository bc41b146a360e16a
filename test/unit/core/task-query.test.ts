import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ending, NO_CODE } from "../../../src/core/events.ts";
import { attemptsOf } from "../../../src/core/past-attempts.ts";
import { type Run, groupOf } from "../../../src/core/run.ts";
import { Task, isFinalTask } from "../../../src/core/states.ts";
import { peek, stateOf } from "../../../src/core/table.ts";
import { type TaskCursor, type TaskQuery, durationOf, findTasks } from "../../../src/core/task-query.ts";
import { createDriver, group, spec } from "./model.ts";

const NOW = 10_000;

interface Step {
  readonly row: number;
  readonly from: number;
  readonly took: number | null;
  readonly code: number;
  readonly lost: boolean;
}

/** A run in which some tasks have ended, some run and some wait. */
const history = (counts: readonly number[], steps: readonly Step[]): { run: Run; agents: number[] } => {
  const driver = createDriver();
  const run = driver.submit(spec(counts.map((count, i) => group(`g${i % 3}${i}`, count, { retries: 1 }))));
  const agents = [driver.join(), driver.join()];
  const seqs = new Map<number, number>();
  for (const { row: any, from, took, code, lost } of steps) {
    const row = any % run.total;
    const agent = agents[any % 2]!;
    if (isFinalTask(stateOf(run.table, row)) || (peek(run.table, row)?.agent[row % run.table.pageRows] ?? 0) !== 0)
      continue;
    driver.assign(agent, run.id, row);
    if (took === null) continue;
    const seq = (seqs.get(agent) ?? 0) + 1;
    seqs.set(agent, seq);
    driver.send({
      type: "tasks.ended",
      at: from + took,
      agent,
      seq,
      parts: [
        {
          run: run.id,
          rows: Uint32Array.of(row),
          attempt: peek(run.table, row)!.attempt[row % run.table.pageRows]!,
          ending: lost ? Ending.INTERRUPTED : Ending.EXIT,
          code: lost ? NO_CODE : code,
          started: from,
          finished: from + took,
          outAt: -1,
          outBytes: 0,
          errBytes: 0,
          details: [],
        },
      ],
    });
  }
  return { run, agents };
};

/** All pages, one after the other, and how many turns they took. */
const pages = (run: Run, query: TaskQuery): number[] => {
  const rows: number[] = [];
  for (let after: TaskCursor | undefined; ;) {
    const search = findTasks(run, { ...query, after }, NOW);
    let step = search.next();
    while (step.done !== true) step = search.next();
    expect(step.value.rows.length).toBeLessThanOrEqual(query.limit);
    rows.push(...step.value.rows);
    if (step.value.next === undefined) return rows;
    after = step.value.next;
  }
};

const naive = (run: Run, query: TaskQuery): number[] => {
  const { states, names, isAt, longer, exitCodes, endedSince, lost, sort, reverse } = query;
  const rows = Array.from({ length: run.total }, (_, row) => row).filter((row) => {
    const page = peek(run.table, row);
    const slot = row % run.table.pageRows;
    return (
      (states?.has(stateOf(run.table, row)) ?? true) &&
      (names?.has(groupOf(run.groups, row).spec.name) ?? true) &&
      (isAt === undefined || (page !== undefined && page.agent[slot] !== 0 && isAt(page.agent[slot]!))) &&
      (exitCodes?.has(page?.exit[slot] ?? -1) ?? true) &&
      (endedSince === undefined || (page?.finished[slot] ?? 0) >= endedSince) &&
      (longer === undefined || durationOf(run, row, NOW) >= longer) &&
      (lost !== true || attemptsOf(run, row).some((attempt) => attempt.lost))
    );
  });
  if (sort === "index") return reverse ? rows.toReversed() : rows;
  const key = (row: number): number => {
    const took = durationOf(run, row, NOW);
    return took < 0 ? Infinity : reverse ? -took : took;
  };
  return rows.toSorted((a, b) => (key(a) === key(b) ? a - b : key(a) - key(b)));
};

describe("the table of a run's tasks", () => {
  it("page by page is what a naive filter and sort give, whatever is asked for", () => {
    const step = fc.record({
      row: fc.nat(60),
      from: fc.integer({ min: 1, max: 9000 }),
      took: fc.option(fc.nat(50)),
      code: fc.nat(3),
      lost: fc.boolean(),
    });
    const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
    const query = fc.record({
      states: some(fc.uniqueArray(fc.constantFrom<number>(...Object.values(Task)))),
      names: some(fc.uniqueArray(fc.constantFrom("g00", "g11", "g22", "none"))),
      host: some(fc.nat(1)),
      longer: some(fc.nat(50)),
      exitCodes: some(fc.uniqueArray(fc.nat(3))),
      endedSince: some(fc.integer({ min: 0, max: 9000 })),
      lost: fc.boolean(),
      sort: fc.constantFrom("index" as const, "duration" as const),
      reverse: fc.boolean(),
      limit: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 }),
        fc.array(step, { maxLength: 60 }),
        query,
        (counts, steps, { states, names, host, longer, exitCodes, endedSince, ...rest }) => {
          const { run, agents } = history(counts, steps);
          const asked: TaskQuery = {
            ...rest,
            ...(states && { states: new Set(states) }),
            ...(names && { names: new Set(names) }),
            ...(exitCodes && { exitCodes: new Set(exitCodes) }),
            ...(host !== undefined && { isAt: (agent: number) => agent === agents[host] }),
            ...(longer !== undefined && { longer }),
            ...(endedSince !== undefined && { endedSince }),
          };
          expect(pages(run, asked)).toEqual(naive(run, asked));
        },
      ),
    );
  });

  it("of a million tasks lets others have their turn", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("many", 1_000_000)]));
    for (const sort of ["index", "duration"] as const) {
      const search = findTasks(run, { states: new Set([Task.FAILED]), sort, reverse: false, limit: 100 }, NOW);
      let turns = 1;
      while (search.next().done !== true) turns += 1;
      expect(turns, sort).toBeGreaterThanOrEqual(20);
    }
  });
});
