import { describe, expect, it } from "vitest";
import { createChains } from "../../../src/agent/chains.ts";
import { createLocalQueue } from "../../../src/agent/local-queue.ts";
import type { Result } from "../../../src/agent/results.ts";
import { SlotPool } from "../../../src/agent/slots.ts";
import type { AgentTask } from "../../../src/agent/task.ts";
import type { RunTemplate } from "../../../src/agent/templates.ts";
import { Ending } from "../../../src/core/events.ts";
import { FRACTION } from "../../../src/core/resources.ts";

const runOf = (id: number): RunTemplate => ({ id, groups: new Map([[0, {}]]) }) as unknown as RunTemplate;

let ids = 0;
const taskOf = (run: RunTemplate, more: Partial<AgentTask> = {}): AgentTask =>
  ({
    id: (ids += 1),
    shape: "cpus=1",
    priority: 0,
    run,
    group: 0,
    alone: false,
    resources: { cpus: FRACTION },
    ...more,
  }) as AgentTask;

const took = (ms: number): Result => ({ ending: Ending.EXIT, started: 0, finished: ms }) as Result;

describe("short tasks wait in a slot", () => {
  const pool = new SlotPool({ capacity: { cpus: FRACTION }, cpus: [0], gpus: [] });
  const short = runOf(1);

  /** Which tasks of the short run are put behind this one. */
  const behind = (running: AgentTask, learnt?: number): number => {
    const chains = createChains(pool);
    const slot = pool.allocate(running.resources)!;
    chains.open(running, slot);
    chains.learn(taskOf(short), took(1));
    if (learnt !== undefined) chains.learn(running, took(learnt));
    const queue = createLocalQueue<AgentTask>();
    for (let i = 0; i < 3; i += 1) queue.push(taskOf(short));
    let begun = 0;
    chains.extend(queue, () => (begun += 1));
    pool.release(slot);
    return begun;
  };

  it("behind one that is short as well", () => {
    expect(behind(taskOf(short))).toBe(3);
    expect(behind(taskOf(runOf(2)), 1)).toBe(3);
  });

  it("as soon as there are any for it, whatever was in the queue before; never more than twenty milliseconds of them", () => {
    const chains = createChains(pool);
    const running = taskOf(short);
    const slot = pool.allocate(running.resources)!;
    const queue = createLocalQueue<AgentTask>();
    const begun: AgentTask[] = [];
    const extend = (): number => {
      begun.length = 0;
      chains.extend(queue, (task) => begun.push(task));
      return begun.length;
    };
    chains.open(running, slot);
    chains.learn(running, took(1));
    expect(extend()).toBe(0);
    const large = taskOf(short, { shape: "cpus=2" });
    queue.push(large);
    expect(extend()).toBe(0);
    queue.remove(large);
    for (let i = 0; i < 40; i += 1) queue.push(taskOf(short));
    expect(extend()).toBe(20);
    const [first, ...others] = [running, ...begun];
    chains.leave(first!);
    expect(extend(), "not before half of them are gone").toBe(0);
    for (const task of others.slice(0, 10)) chains.leave(task);
    expect(extend()).toBe(11);
    pool.release(slot);
  });

  it("never behind one of which nothing is known, that takes long, or that may take its spawner with it", () => {
    expect(behind(taskOf(runOf(2)))).toBe(0);
    expect(behind(taskOf(runOf(2)), 600_000)).toBe(0);
    expect(behind(taskOf(short, { alone: true }))).toBe(0);
  });
});
