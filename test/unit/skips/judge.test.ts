import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeEvent } from "../../../src/core/codec.ts";
import { type Run, runState } from "../../../src/core/run.ts";
import type { Dependency, GroupSpec } from "../../../src/core/spec.ts";
import { group, spec } from "../core/model.ts";
import { replayAll, same, snapshotOf } from "../core/replays.ts";
import { type World, createWorld, expectedText, skippedRows } from "./pipelines.ts";

const files = (name: string, count: number, more: Partial<GroupSpec> = {}): GroupSpec =>
  group(name, count, {
    outputs: [count === 1 ? `${name}.out` : `${name}-{item}.out`],
    skip: "newer",
    command: [name],
    ...more,
  });

const same3: Dependency = { group: 0, on: "ok", items: "same" };

/** align → call → merge over three samples. */
const pipeline = (more: Record<string, Partial<GroupSpec>> = {}) =>
  spec(
    [
      files("align", 3, { inputs: ["reads-{item}"], ...more["align"] }),
      files("call", 3, { after: [same3], inputs: ["align-{item}.out"], ...more["call"] }),
      files("merge", 1, { after: [{ group: 1, on: "ok" }], ...more["merge"] }),
    ],
    { cwd: "/w" },
  );

const withReads = (): World => {
  const world = createWorld();
  for (const n of [0, 1, 2]) world.write(`/w/reads-${n}`, `r${n}`);
  return world;
};

const runOnce = async (world: World, of = pipeline()): Promise<Run> => {
  const run = world.submit(of);
  await world.work(run);
  expect(runState(run)).toBe("DONE");
  return run;
};

describe("skipping what is done", () => {
  it("skips all of a run that is submitted again, and looks at no file where nothing is remembered", async () => {
    const world = withReads();
    expect(skippedRows(await runOnce(world))).toEqual([]);
    expect(world.looks).toEqual([]);
    const again = await runOnce(world);
    expect(skippedRows(again)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(again.skipped).toBe(7);
    // each stage in one piece, and so is each skip in the journal
    expect(world.looks).toEqual([3, 3, 1]);
    const skips = world.driver.events.flatMap((event) => (event.type === "tasks.skipped" ? event.parts : []));
    expect(skips.map(({ ranges }) => ranges)).toEqual([
      [0, 3],
      [3, 3],
      [6, 1],
    ]);
  });

  it("runs the line of a touched sample alone, and what gathers all of them", async () => {
    const world = withReads();
    await runOnce(world);
    world.touch("/w/reads-1");
    expect(skippedRows(await runOnce(world))).toEqual([0, 2, 3, 5]);
  });

  it("runs what made a deleted output, what changed and what waits for it", async () => {
    const world = withReads();
    await runOnce(world);
    world.files.delete("/w/call-2.out");
    expect(skippedRows(await runOnce(world))).toEqual([0, 1, 2, 3, 4]);
    expect(skippedRows(await runOnce(world, pipeline({ merge: { command: ["other"] } })))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(skippedRows(await runOnce(world, pipeline({ call: { env: { A: "1" } } })))).toEqual([0, 1, 2]);
    expect(skippedRows(await runOnce(world, { ...pipeline(), force: true }))).toEqual([]);
    expect(skippedRows(await runOnce(world, pipeline({ align: { skip: "never" } })))).toEqual([]);
  });

  it("does not skip what a later success of its predecessor, in a run that was given up, has overtaken", async () => {
    const world = withReads();
    await runOnce(world, pipeline({ call: { inputs: [] } }));
    world.touch("/w/reads-0");
    const cut = world.submit(pipeline({ call: { inputs: [] } }));
    await world.judge.settled();
    await world.work(cut, (row) => (row === 0 ? "well" : "stop"));
    world.driver.send({ type: "run.canceled", at: 6000, run: cut.id, reason: "test" });
    // align[0] is newer than call[0] now, and no declared input says so
    expect(skippedRows(await runOnce(world, pipeline({ call: { inputs: [] } })))).toEqual([0, 1, 2, 4, 5]);
  });

  it("nor what gathers all, where one of them has run since", async () => {
    const world = withReads();
    await runOnce(world);
    world.touch("/w/reads-0");
    const cut = world.submit(pipeline());
    await world.work(cut, (row) => (row === 6 ? "stop" : "well"));
    world.driver.send({ type: "run.canceled", at: 6000, run: cut.id, reason: "test" });
    expect(skippedRows(await runOnce(world))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("never skips what an attempt that did not succeed has left, also with present", async () => {
    for (const skip of ["newer", "present"] as const) {
      const of = spec([files("a", 2, { skip })], { cwd: "/w" });
      const world = withReads();
      await runOnce(world, of);
      const failed = world.submit({ ...of, force: true });
      await world.work(failed, (row) => (row === 0 ? "badly" : "well"));
      expect(runState(failed)).toBe("FAILED");
      expect(skippedRows(await runOnce(world, of))).toEqual([1]);
    }
  });

  it("present asks for the files alone; content for what the inputs hold", async () => {
    const present = pipeline({ align: { skip: "present" }, call: { skip: "present" }, merge: { skip: "present" } });
    const world = withReads();
    for (const n of [0, 1, 2]) world.write(`/w/align-${n}.out`, "from elsewhere");
    expect(skippedRows(await runOnce(world, present))).toEqual([0, 1, 2]);
    const content = pipeline({ align: { skip: "content" }, call: { skip: "content" } });
    expect(skippedRows(await runOnce(world, content))).toEqual([]);
    for (const n of [0, 1, 2]) world.touch(`/w/reads-${n}`);
    expect(skippedRows(await runOnce(world, content))).toEqual([0, 1, 2, 3, 4, 5, 6]);
    world.write("/w/reads-2", "other");
    expect(skippedRows(await runOnce(world, content))).toEqual([0, 1, 3, 4]);
  });

  it("runs everything where the file system does not answer, or what was remembered is gone", async () => {
    const world = withReads();
    await runOnce(world);
    world.hangs = true;
    expect(skippedRows(await runOnce(world))).toEqual([]);
    const other = createWorld();
    for (const [path, file] of world.files) other.files.set(path, file);
    expect(skippedRows(await runOnce(other))).toEqual([]);
  });

  it("a retry runs what was skipped, and what is cancelled while it is judged stays so", async () => {
    const world = withReads();
    await runOnce(world);
    const run = await runOnce(world);
    world.driver.send({ type: "run.retried", at: 7000, run: run.id, which: "all", rows: [1, 1] });
    await world.work(run);
    expect(runState(run)).toBe("DONE");
    expect(skippedRows(run)).toEqual([0, 2, 3, 4, 5, 6]);
    const cancelled = world.submit(pipeline());
    world.driver.send({ type: "run.canceled", at: 8000, run: cancelled.id, reason: "test" });
    await world.work(cancelled);
    expect([runState(cancelled), cancelled.skipped]).toEqual(["CANCELED", 0]);
  });

  it("an item that is gone is noticed by what gathers all, though nothing before it runs", async () => {
    const lists = (...items: string[]) =>
      [
        spec(
          [
            files("a", 1, { items: { kind: "list", count: 0 }, outputs: ["a-{item}"] }),
            files("b", 1, { after: [{ group: 0, on: "ok" }] }),
          ],
          { cwd: "/w" },
        ),
        new Map([[0, items]]),
      ] as const;
    const world = createWorld();
    const submit = async (...items: string[]): Promise<number[]> => {
      const run = world.submit(...lists(...items));
      await world.work(run);
      return skippedRows(run);
    };
    expect(await submit("x", "y")).toEqual([]);
    expect(await submit("x", "y")).toEqual([0, 1, 2]);
    expect(await submit("x")).toEqual([0]);
  });
});

type Step =
  | { do: "touch" | "edit" | "delete" | "spoil"; which: number }
  | { do: "command"; which: number }
  | { do: "run"; fails: number; silent: number; stops: number }
  | { do: "two" };

const stepOf: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom("touch" as const, "edit" as const, "delete" as const), which: fc.nat(11) }),
  fc.record({ do: fc.constant("command" as const), which: fc.nat(2) }),
  fc.record({ do: fc.constant("run" as const), fails: fc.nat(20), silent: fc.nat(20), stops: fc.nat(12) }),
  fc.record({ do: fc.constant("two" as const) }),
);

describe("whatever happens between and in runs", () => {
  it("a run that is done leaves what running everything would leave, and another one changes nothing", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(stepOf, { maxLength: 8 }),
        fc.boolean(),
        fc.boolean(),
        async (steps, declared, content) => {
          const world = withReads();
          const commands = ["align", "call", "merge"];
          const mode = content ? ("content" as const) : ("newer" as const);
          const of = () =>
            pipeline({
              align: { command: [commands[0]!], skip: mode },
              call: { command: [commands[1]!], skip: mode, ...(declared ? {} : { inputs: [] }) },
              merge: { command: [commands[2]!] },
            });
          // outputs are changed by their tasks alone: an edit of one is no reason to make it again
          const reads = (which: number): string => `/w/reads-${which % 3}`;
          const outputs = ["align-0", "align-1", "align-2", "call-0", "call-1", "call-2", "merge"];
          for (const [n, step] of steps.entries()) {
            if (step.do === "touch") world.touch(reads(step.which));
            if (step.do === "edit") world.write(reads(step.which), `r${n}`);
            if (step.do === "delete") world.files.delete(`/w/${outputs[step.which % 7]!}.out`);
            if (step.do === "command") commands[step.which] = `c${n}`;
            if (step.do === "run") {
              const run = world.submit(of());
              await world.work(run, (row) => {
                if (row === step.stops) return "stop";
                return row === step.fails ? "badly" : row === step.silent ? "silent" : "well";
              });
              world.driver.send({ type: "run.canceled", at: 6000, run: run.id, reason: "test" });
            }
            if (step.do === "two") {
              const runs = [world.submit(of()), world.submit(of())];
              for (const run of runs) await world.work(run);
            }
          }
          const run = await runOnce(world, of());
          for (let row = 0; row < run.total; row += 1) {
            const path = row < 6 ? `/w/${outputs[row]!}.out` : "/w/merge.out";
            expect(world.files.get(path)?.text, `row ${row}`).toBe(expectedText(world.files, run, row));
          }
          expect(skippedRows(await runOnce(world, of()))).toHaveLength(7);
          const records = world.driver.events.map((event) => encodeEvent(event));
          same(replayAll(records, 5), world.driver.state);
          const half = Math.floor(records.length / 2);
          same(
            replayAll([...snapshotOf(replayAll(records.slice(0, half), 5)), ...records.slice(half)], 5),
            world.driver.state,
          );
        },
      ),
      { numRuns: 150 },
    );
  });
});
