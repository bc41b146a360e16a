import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/**
 * Dependencies, retries, max-fails and priorities, through the command line; the expected results are computed here.
 */

let slipway: SlipwayHome;

const start = async (resources: string): Promise<void> => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), `clusters: { local: { resources: { ${resources} } } }\n`);
  await slipway.run(["up"]);
};
const write = async (name: string, content: string): Promise<string> => {
  await writeFile(join(slipway.cwd, name), content);
  return name;
};
const lines = async (name: string): Promise<string[]> =>
  (await readFile(join(slipway.cwd, name), "utf8")).split("\n").slice(0, -1);
const submit = async (...args: string[]): Promise<number> =>
  (await slipway.json<{ run: number }>(["submit", ...args])).run;
const show = (id: number): Promise<RunView> => slipway.json<RunView>(["show", String(id)]);
const task = (id: number, index: number): Promise<TaskView> => slipway.json<TaskView>(["show", `${id}.${index}`]);
const finish = async (...args: string[]): Promise<RunView> =>
  slipway.json<RunView>(["run", ...args], { statuses: [0, 1], timeoutMs: 115_000 });

describe("10,000 tasks in three stages with failures and retries", () => {
  beforeAll(() => start("cpu: 4"));
  afterAll(() => slipway.cleanup());

  const PREPARE = 100;
  const WORK = 4944;
  const SURE = 4950;
  const RETRIES = 2;
  /** Whether an attempt fails: as good as random, and the same for the shell and for this test. */
  const fails = (seed: number, item: number, attempt: number): boolean =>
    ((item * item * (attempt + seed) + item * 7919 + attempt * 104_729) % 10_007) % 4 === 0;
  const shell = (seed: number): string =>
    `[ $(( ((SLIPWAY_ITEM * SLIPWAY_ITEM * ({attempt} + ${seed}) + SLIPWAY_ITEM * 7919 + {attempt} * 104729) % 10007) % 4 )) -ne 0 ]`;
  /** The same, but the fourth attempt always succeeds. */
  const shellSure = (seed: number): string => `[ {attempt} -gt 3 ] || ${shell(seed)}`;
  /** Attempts a task needs; more than `most` when all of these fail. */
  const needed = (seed: number, item: number, most: number): number => {
    for (let attempt = 1; attempt <= most; attempt++) if (!fails(seed, item, attempt)) return attempt;
    return most + 1;
  };
  const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

  it("row 001-1: ends with exactly the expected states, counts, retries and attempts", async () => {
    const note = (stage: string): string => `echo ${stage} {item} {attempt} >> attempts.txt; `;
    await write(
      "graph.yaml",
      `name: graph
tasks:
  - name: prepare
    each: { array: 1-${PREPARE} }
    retries: 3
    run: "${note("prepare")}${shellSure(1)}"
  - name: work
    each: { array: 1-${WORK} }
    after: prepare
    retries: ${RETRIES}
    run: "${note("work")}${shell(2)}"
  - name: sure
    each: { array: 1-${SURE} }
    after: prepare
    retries: 3
    run: "${note("sure")}${shellSure(3)}"
  - { name: merge-work, after: work, run: "echo merge-work >> handlers.txt" }
  - { name: merge-sure, after: sure, run: "echo merge-sure >> handlers.txt" }
  - { name: report, after: { work: any, sure: any }, run: "echo report >> handlers.txt" }
  - { name: alarm, after: { work: failed }, run: "echo alarm >> handlers.txt" }
  - { name: never, after: { sure: failed }, run: "echo never >> handlers.txt" }
  - { name: last, after: [report, { merge-work: any }], run: "echo last >> handlers.txt" }
`,
    );
    const begun = performance.now();
    const run = await finish("graph.yaml");
    console.log(`10,000 tasks: ${((performance.now() - begun) / 1000).toFixed(1)} s`);

    const expected: string[] = [];
    let retries = 0;
    /** Notes what each task of a stage must have done, and returns those that fail for good. */
    const stage = (name: string, seed: number, items: number, sure: boolean): number[] => {
      const failed: number[] = [];
      for (const item of range(items)) {
        const attempts = needed(seed, item, RETRIES + 1);
        if (attempts > RETRIES + 1 && !sure) failed.push(item);
        const made = sure ? attempts : Math.min(attempts, RETRIES + 1);
        retries += made - 1;
        for (let attempt = 1; attempt <= made; attempt++) expected.push(`${name} ${item} ${attempt}`);
      }
      return failed;
    };
    stage("prepare", 1, PREPARE, true);
    const failed = stage("work", 2, WORK, false);
    stage("sure", 3, SURE, true);
    expect(failed.length).toBeGreaterThan(10);

    expect(run).toMatchObject({ name: "graph", state: "FAILED", total: 10_000, unneeded: 1, retries, losses: 0 });
    // merge-work is cancelled because work failed; never was not needed.
    expect(run.counts).toEqual({ DONE: 10_000 - failed.length - 2, FAILED: failed.length, CANCELED: 2 });
    const groups = Object.fromEntries(run.groups!.map(({ name, counts }) => [name, counts]));
    expect(groups).toEqual({
      prepare: { DONE: PREPARE },
      work: { DONE: WORK - failed.length, FAILED: failed.length },
      sure: { DONE: SURE },
      "merge-work": { CANCELED: 1 },
      "merge-sure": { DONE: 1 },
      report: { DONE: 1 },
      alarm: { DONE: 1 },
      never: { CANCELED: 1 },
      last: { DONE: 1 },
    });
    // Every attempt ran once: none twice, none left out.
    expect((await lines("attempts.txt")).toSorted()).toEqual(expected.toSorted());
    const handlers = await lines("handlers.txt");
    expect(handlers.toSorted()).toEqual(["alarm", "last", "merge-sure", "report"]);
    expect(handlers.indexOf("report")).toBeLessThan(handlers.indexOf("last"));

    for (const item of [failed[0]!, failed.at(-1)!]) {
      const view = await task(run.id, PREPARE + item - 1);
      expect(view).toMatchObject({ name: `work[${item}]`, state: "FAILED", exitCode: 1, item: String(item) });
      expect(view.attempts.map(({ n, exitCode }) => [n, exitCode])).toEqual(range(RETRIES + 1).map((n) => [n, 1]));
    }
    const merge = await task(run.id, PREPARE + WORK + SURE);
    expect(merge).toMatchObject({ name: "merge-work", state: "CANCELED", attempts: [] });
    expect(merge.reason).toContain("work");
  });
});

describe("small graphs, one slot", () => {
  beforeAll(() => start("cpu: 1"));
  afterAll(() => slipway.cleanup());

  it("a chain runs in order; all tasks of a stage end before the next begins", async () => {
    await write(
      "chain.yaml",
      `tasks:
  - { name: c, after: b, run: "echo c >> chain.txt" }
  - { name: a, each: { array: 1-5 }, run: "echo a >> chain.txt" }
  - { name: b, after: a, each: { values: [x, y] }, run: "echo b >> chain.txt" }
`,
    );
    expect((await finish("chain.yaml")).state).toBe("DONE");
    expect((await lines("chain.txt")).join("")).toBe("aaaaabbc");
  });

  it("when a task fails, those that needed it are CANCELED, through all stages, with the reason", async () => {
    await write(
      "cascade.yaml",
      `tasks:
  - { name: a, run: "exit 3" }
  - { name: b, after: a, each: { array: 1-3 }, run: "true" }
  - { name: c, after: b, run: "true" }
  - { name: d, after: { c: any }, run: "echo after all" }
  - { name: e, after: { b: failed }, run: "true" }
`,
    );
    const run = await finish("cascade.yaml");
    expect(run).toMatchObject({ state: "FAILED", counts: { FAILED: 1, CANCELED: 4, DONE: 2 } });
    for (const [index, name] of [
      [1, "a"],
      [3, "a"],
      [4, "b"],
    ] as const) {
      const view = await task(run.id, index);
      expect(view.state).toBe("CANCELED");
      expect(view.reason, String(index)).toMatch(new RegExp(`\\b${name}\\b`));
    }
    expect((await slipway.run(["logs", `${run.id}.5`])).stdout).toBe("after all\n");
  });

  it("handlers that were not needed: exit status 0, not counted as cancelled, and who waits for them goes on", async () => {
    await write(
      "handlers.yaml",
      `tasks:
  - { name: a, run: "true" }
  - { name: alarm, after: { a: failed }, each: { array: 1-3 }, run: "false" }
  - { name: behind, after: alarm, run: "true" }
  - { name: always, after: { alarm: any }, run: "true" }
`,
    );
    const outcome = await slipway.run(["run", "handlers.yaml"]);
    expect(outcome.status).toBe(0);
    expect(outcome.stdout + outcome.stderr).toMatch(/: done, 3 done, 3 not needed/);
    const [run] = await slipway.json<RunView[]>(["list", "--limit", "1"]);
    expect(run).toMatchObject({ state: "DONE", counts: { DONE: 3, CANCELED: 3 }, unneeded: 3 });
    expect((await slipway.run(["wait", String(run!.id)])).status).toBe(0);
  });

  it("a handler that is needed, and what fails in it", async () => {
    await write(
      "needed.yaml",
      `tasks:
  - { name: a, each: { array: 1-3 }, run: "[ {item} -ne 2 ]" }
  - { name: fix, after: { a: failed }, run: "echo fixed" }
  - { name: more, after: fix, run: "true" }
`,
    );
    const run = await finish("needed.yaml");
    expect(run).toMatchObject({ state: "FAILED", counts: { DONE: 4, FAILED: 1 }, unneeded: 0 });
  });

  it("retry of a run whose handler was not needed comes to its end; of one that only has such a handler it does nothing", async () => {
    await write(
      "retried.yaml",
      `tasks:
  - { name: a, run: "true" }
  - { name: fix, after: { a: failed }, run: "true" }
  - { name: bad, run: "[ -e good ]" }
`,
    );
    const { id } = await finish("retried.yaml");
    await write("good", "");
    expect(await slipway.json(["retry", String(id)])).toEqual({ run: id, reopened: 1 });
    expect((await slipway.run(["wait", String(id)])).status).toBe(0);
    expect(await show(id)).toMatchObject({ state: "DONE", counts: { DONE: 2, CANCELED: 1 }, unneeded: 1 });
    expect(await slipway.json(["retry", String(id)])).toEqual({ run: id, reopened: 0 });
    expect(await show(id)).toMatchObject({ state: "DONE" });
  });

  it("retries with a delay wait that long, and why says so", async () => {
    const id = await submit("--retries", "1", "--retry-delay", "1h", "--", "false");
    await until("it waits for its next try", async () => {
      const { cause } = await slipway.json<{ cause: string }>(["why", `${id}.0`]);
      return cause === "retry-delay";
    });
    await slipway.run(["cancel", String(id)]);
    expect((await slipway.run(["wait", String(id)])).status).toBe(1);
    const quick = await finish("--retries", "2", "--retry-delay", "0.2s", "--", "false");
    expect(quick).toMatchObject({ counts: { FAILED: 1 }, retries: 2 });
    const [first, second, third] = (await task(quick.id, 0)).attempts;
    expect(Date.parse(second!.started!) - Date.parse(first!.finished!)).toBeGreaterThanOrEqual(200);
    expect(Date.parse(third!.started!) - Date.parse(second!.finished!)).toBeGreaterThanOrEqual(200);
  });

  it("max-fails: more failures than that cancel the rest, with the reason; as many do not", async () => {
    const run = await finish("--array", "1-3000", "--max-fails", "3", "--", "false");
    expect(run.state).toBe("FAILED");
    expect(run.reason).toContain("max-fails");
    const { FAILED = 0, CANCELED = 0 } = run.counts;
    expect(FAILED + CANCELED).toBe(3000);
    // Tasks that had begun when the fourth failed may have failed too.
    expect(FAILED).toBeGreaterThanOrEqual(4);
    expect(CANCELED).toBeGreaterThan(1000);
    const fine = await finish("--array", "1-10", "--max-fails", "3", "--", "sh", "-c", "[ {item} -gt 3 ]");
    expect(fine).toMatchObject({ counts: { DONE: 7, FAILED: 3 }, reason: null });
    expect((await finish("--array", "1-3", "--max-fails", "0", "--", "false")).counts["FAILED"]).toBeGreaterThanOrEqual(
      1,
    );
  });

  it("priorities: higher first, among runs and among the tasks of a file; those of an array in order", async () => {
    const gate = createGate(slipway.cwd, "priority");
    const first = await submit("--priority", "100", "--", ...gate.command);
    await gate.arrived(1);
    const writes = (name: string): string[] => ["--", "sh", "-c", `echo ${name}{item} >> order.txt`];
    const low = await submit("--array", "1-3", "--priority", "-5", ...writes("low"));
    const middle = await submit("--array", "1-3", ...writes("middle"));
    const high = await submit("--array", "1-3", "--priority", "7", ...writes("high"));
    await write(
      "priorities.yaml",
      `tasks:
  - { name: x, priority: -1, run: "echo x >> order.txt" }
  - { name: y, priority: 20, run: "echo y >> order.txt" }
  - { name: z, priority: 3, run: "echo z >> order.txt" }
`,
    );
    const file = await submit("priorities.yaml");
    gate.open();
    expect((await slipway.run(["wait", ...[first, low, middle, high, file].map(String)])).status).toBe(0);
    const order = await lines("order.txt");
    expect(order).toHaveLength(12);
    // One task may already have been handed over, to start without a pause when the slot is free.
    const handed = order[0] === "low1" ? order.splice(0, 1) : [];
    const three = (name: string): string[] => [1, 2, 3].map((n) => `${name}${n}`);
    expect(order).toEqual(["y", ...three("high"), "z", ...three("middle"), "x", ...three("low").slice(handed.length)]);
  });
});

describe("earlier runs", () => {
  beforeAll(() => start("cpu: 2"));
  afterAll(() => slipway.cleanup());

  it("--after waits for runs that have not ended; several too", async () => {
    const gate = createGate(slipway.cwd, "before");
    const a = await submit("--", "sh", "-c", `${gate.script}; echo a >> runs.txt`);
    const b = await submit("--array", "1-2", "--", "sh", "-c", `${gate.script}; echo b >> runs.txt`);
    const c = await submit("--after", `${a},${b}`, "--", "sh", "-c", "echo c >> runs.txt");
    await gate.arrived(2);
    const why = await slipway.json<{ cause: string; detail: string }>(["why", String(c)]);
    expect(why.cause).toBe("dependencies");
    expect(why.detail).toContain(String(a));
    gate.open();
    expect((await slipway.run(["wait", String(c)])).status).toBe(0);
    expect((await lines("runs.txt")).at(-1)).toBe("c");
  });

  it("a run that ended before counts as it ended: ok, any, failed; in a file for one task, or for all", async () => {
    const good = (await finish("--", "true")).id;
    const bad = (await finish("--", "false")).id;
    await write(
      "after.yaml",
      `tasks:
  - { name: one, after: "run:${good}", run: "true" }
  - { name: two, after: "run:${bad}", run: "true" }
  - { name: three, after: { "run:${bad}": any }, run: "true" }
  - { name: four, after: { "run:${bad}": failed }, run: "true" }
  - { name: five, after: { "run:${good}": failed }, run: "true" }
  - { name: six, after: [one, "run:${good}", { "run:${bad}": any }], run: "true" }
`,
    );
    const run = await finish("after.yaml");
    const states = Object.fromEntries(run.groups!.map(({ name, counts }) => [name, Object.keys(counts)[0]]));
    expect(states).toEqual({
      one: "DONE",
      two: "CANCELED",
      three: "DONE",
      four: "DONE",
      five: "CANCELED",
      six: "DONE",
    });
    expect(run).toMatchObject({ state: "CANCELED", unneeded: 1 });
    expect((await task(run.id, 1)).reason).toMatch(new RegExp(`run:?\\s?${bad}\\b`));

    await write("whole.yaml", `after: { "${bad}": any }\ntasks: [{ run: "true" }]\n`);
    expect((await finish("whole.yaml")).state).toBe("DONE");
    const canceled = await finish("--after", String(bad), "--array", "1-3", "--", "true");
    expect(canceled).toMatchObject({ state: "CANCELED", counts: { CANCELED: 3 } });
  });

  it("a run that fails later takes those that wait for it along", async () => {
    const gate = createGate(slipway.cwd, "later");
    const a = await submit("--", "sh", "-c", `${gate.script}; exit 1`);
    const b = await submit("--after", String(a), "--array", "1-3", "--", "true");
    const c = await submit("--after", String(b), "--", "true");
    gate.open();
    expect((await slipway.run(["wait", String(a), String(b), String(c)])).status).toBe(1);
    expect((await show(b)).counts).toEqual({ CANCELED: 3 });
    expect((await show(c)).counts).toEqual({ CANCELED: 1 });
  });

  it("a cycle and an unknown name are errors that name them", async () => {
    await write(
      "cycle.yaml",
      "tasks:\n - {name: a, run: x, after: c}\n - {name: b, run: x, after: a}\n - {name: c, run: x, after: {b: any}}\n - {name: d, run: x, after: a}\n",
    );
    const cycle = await slipway.run(["run", "cycle.yaml"]);
    expect(cycle.status).toBe(2);
    expect(cycle.stderr).toMatch(/cycle\.yaml:\d+/);
    expect(cycle.stderr).toMatch(/a.*c.*b|c.*b.*a|b.*a.*c/);
    expect(cycle.stderr).not.toMatch(/\bd\b/);
    await write("unknown.yaml", "tasks:\n - {name: merge, run: x}\n - {name: b, run: x, after: merg}\n");
    const unknown = await slipway.run(["run", "unknown.yaml"]);
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toMatch(/unknown\.yaml:3.*no task is named 'merg'.*merge/);
  });
});
