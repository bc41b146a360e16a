import { describe, expect, it } from "vitest";
import type { Event } from "../../../src/core/events.ts";
import { isOver } from "../../../src/core/task-job.ts";
import { createJobAdoption } from "../../../src/jobs/adoption.ts";
import { intentOf } from "../../../src/jobs/names.ts";
import { createJobNotes } from "../../../src/jobs/notes.ts";
import type { FoundJob } from "../../../src/managers/provider.ts";
import { createDriver, group, spec } from "../core/model.ts";

const MARK = "mark";

/** A state with one run of five tasks, and a manager that lists what it is told. */
const stage = (found: readonly FoundJob[]) => {
  const driver = createDriver();
  const run = driver.submit(spec([group("a", 5, { job: { keys: {} } })]));
  const canceled: string[] = [];
  const lost: number[] = [];
  const parts = {
    engine: { state: driver.state, clock: () => 1, commit: (event: Event) => (driver.send(event), 0) },
    agents: { link: () => undefined, lose: (ids: readonly number[]) => void lost.push(...ids) },
    spools: { importAll: async () => undefined, prune: async () => undefined },
    mark: MARK,
    log: () => undefined,
  };
  const adoption = createJobAdoption(
    parts as never,
    { list: async () => found, cancel: async (ids: readonly string[]) => void canceled.push(...ids) } as never,
    () => [...driver.state.taskJobs.values()].filter((job) => !isOver(job)),
    {
      notes: createJobNotes(),
      changes: {
        takeBack: () => undefined,
        end: (job, elements) => {
          if (elements.length > 0) driver.change(job, elements, "ended");
        },
      },
    },
  );
  return { driver, run, adoption, canceled, lost };
};

const named = (id: number, nativeId: string, element?: number): FoundJob => ({
  name: `proj:a-${intentOf(MARK, id)}`,
  nativeId,
  ...(element === undefined ? {} : { array: { nativeId: "7", element } }),
});

describe("rule 3: a submission whose answer was lost", () => {
  it("is found again by the digits in its name, and carries on", async () => {
    const { driver, run, adoption } = stage([named(1, "42"), { name: "somebody-0123456789ab", nativeId: "9" }]);
    const job = driver.request(run.id, [3]);
    await adoption.catchUp();
    expect(job.elements[0]).toMatchObject({ state: "queued", nativeId: "42" });
    expect(driver.ready.get(run.id)?.has(3)).toBe(false);
  });

  it("that the manager never got is over, and its task is ready again without a loss", async () => {
    const { driver, run, adoption, lost } = stage([]);
    const job = driver.request(run.id, [3]);
    await adoption.catchUp();
    expect(job.elements[0]!.state).toBe("ended");
    expect(driver.ready.get(run.id)?.has(3)).toBe(true);
    expect(lost).toEqual([]);
  });

  it("of an array of which some elements have ended: those are ready again, the others carry on", async () => {
    const { driver, run, adoption } = stage([named(1, "7_2", 2), named(1, "7_0", 0)]);
    const job = driver.request(run.id, [0, 1, 2, 3]);
    await adoption.catchUp();
    expect(job.elements.map(({ state, nativeId }) => [state, nativeId])).toEqual([
      ["queued", "7_0"],
      ["ended", ""],
      ["queued", "7_2"],
      ["ended", ""],
    ]);
    expect([...driver.ready.get(run.id)!].toSorted()).toEqual([1, 3, 4]);
  });

  it("strays of this home are cancelled once; jobs of other homes never", async () => {
    const other = { name: `proj:a-${intentOf("another home", 1)}`, nativeId: "5" };
    const { driver, run, adoption, canceled } = stage([named(1, "42"), other]);
    driver.change(driver.request(run.id, [0]), [0], "ended");
    await adoption.catchUp();
    expect(canceled).toEqual(["42"]);
  });
});
