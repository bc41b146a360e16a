import { describe, expect, it } from "vitest";
import { Ending } from "../../../src/core/events.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { type Surroundings, whyTask } from "../../../src/views/why.ts";
import { createDriver, group, spec } from "../core/model.ts";

const around = (state: Surroundings["state"]): Surroundings => ({
  state,
  now: 5000,
  blocked: null,
  able: true,
  place: "local",
  fleetProblem: null,
  lastFailure: null,
  livePilots: 1,
  waitingPilots: [],
  stalledBy: () => null,
  connectedAgents: 1,
  suspectAgents: 0,
  tooLate: false,
  runningTasks: 1,
  waitingTasks: 1,
  sharedWait: null,
  heldBack: () => false,
  before: () => 0,
  job: null,
  expected: () => ({ ms: 60_000, basis: "unknown" }),
});

describe("why", () => {
  it("says of a task that was killed for memory what it had and what it gets, whether it waits, runs or failed", () => {
    const driver = createDriver();
    const resources = { cpus: FRACTION, mem: 4 };
    const run = driver.submit(spec([group("a", 2, { resources, memRetry: 1 })]));
    const agent = driver.join();
    const why = (): string => whyTask(around(driver.state), run, 0, null).detail;
    const kill = (): void => driver.end(agent, run.id, [0], -9, Ending.MEMORY);
    const said = "attempt 1 was killed for memory at 4B; tried again with 8B";
    driver.assign(agent, run.id, 0);
    expect(why()).not.toContain("memory");
    kill();
    expect(why()).toContain(`asks for cpus 1, mem 8B; ${said}`);
    driver.assign(agent, run.id, 0);
    expect(why()).toContain(`(cpus 1, mem 8B); ${said}`);
    kill();
    expect(why()).toBe(`over its memory limit after 2 attempts; ${said}`);
  });

  it("names the one task that another waits for because of its item, or was cancelled for", () => {
    const driver = createDriver();
    const same = { group: 0, on: "ok", items: "same" } as const;
    const run = driver.submit(spec([group("align", 3), group("call", 3, { after: [same] })]));
    const agent = driver.join();
    const why = (row: number): string => whyTask(around(driver.state), run, row, null).detail;
    expect(why(4)).toBe("it waits for 1.1 (align[1])");
    driver.assign(agent, run.id, 1);
    driver.end(agent, run.id, [1], 1);
    expect(why(4)).toBe("align failed for this item: 1.1 (align[1])");
    const keyed = driver.submit(
      spec([
        group("align", 2, { items: { kind: "list", count: 0 } }),
        group("call", 1, { items: { kind: "list", count: 0 }, after: [{ ...same, items: { by: "s" } }] }),
      ]),
      {
        json: true,
        items: new Map([
          [0, ['{"s":"x","n":1}', '{"s":"x","n":2}']],
          [1, ['{"s":"x"}']],
        ]),
      },
    );
    driver.assign(agent, keyed.id, 0);
    driver.end(agent, keyed.id, [0], 0);
    expect(whyTask(around(driver.state), keyed, 2, null).detail).toBe(
      'it waits for align with its s (1 of 2 ended, such as 2.1 (align[{"s":"x","n":2}]))',
    );
  });
});
