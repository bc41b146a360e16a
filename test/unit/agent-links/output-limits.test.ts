import { describe, expect, it } from "vitest";
import type { OutputLimitsMessage } from "../../../src/protocol/messages.ts";
import { createOutputLimiter } from "../../../src/agent-links/output-limits.ts";
import { createDriver, group, spec } from "../core/model.ts";

const setUp = (outputPerRun: number) => {
  const driver = createDriver();
  const run = driver.submit(spec([group("g", 4)]));
  const agents = [driver.join(), driver.join()] as const;
  driver.assign(agents[0], run.id, 0);
  driver.assign(agents[1], run.id, 1);
  const told: OutputLimitsMessage[] = [];
  const limiter = createOutputLimiter({
    state: driver.state,
    limits: { outputPerTask: 100, outputPerRun },
    tell: (message) => told.push(message),
  });
  return { driver, run, agents, told, limiter };
};

describe("output of a run over all agents", () => {
  it("is over its limit when what ended and what still runs have left so much together; agents are told once", () => {
    const { run, agents, told, limiter } = setUp(1000);
    expect(limiter.limitsOf(run)).toEqual({ perTask: 100, perRun: 1000, over: false });
    limiter.progress(agents[0], run.id, 0, 1, 400);
    limiter.progress(agents[1], run.id, 1, 1, 500);
    limiter.progress(agents[1], run.id, 1, 1, 550);
    expect(told).toEqual([]);
    limiter.progress(agents[0], run.id, 0, 1, 450);
    limiter.progress(agents[0], run.id, 0, 1, 460);
    expect(told).toEqual([{ t: "output", run: run.id, perTask: 100, perRun: 1000, over: true }]);
    expect(limiter.limitsOf(run).over).toBe(true);
  });

  it("an attempt that has ended is not counted twice", () => {
    const { run, agents, told, limiter } = setUp(1000);
    limiter.progress(agents[0], run.id, 0, 1, 900);
    limiter.ended(agents[0], run.id, 0);
    run.outputBytes += 900;
    limiter.check(run.id);
    expect(told).toEqual([]);
    run.outputBytes += 100;
    limiter.check(run.id);
    expect(told).toHaveLength(1);
  });

  it("counts only what the agent was given, and forgets agents that are gone", () => {
    const { run, agents, told, limiter } = setUp(1000);
    for (const [agent, id, row, attempt] of [
      [agents[1], run.id, 0, 1],
      [agents[0], run.id, 0, 2],
      [agents[0], run.id, 99, 1],
      [agents[0], 77, 0, 1],
    ] as const)
      limiter.progress(agent, id, row, attempt, 5000);
    limiter.progress(agents[0], run.id, 0, 1, 900);
    limiter.gone(agents[0]);
    limiter.progress(agents[1], run.id, 1, 1, 900);
    expect(told).toEqual([]);
  });
});
