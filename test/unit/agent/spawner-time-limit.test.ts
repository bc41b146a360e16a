import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { createAssignedTasks } from "../../../src/agent/assigned-tasks.ts";
import { createExecutor } from "../../../src/agent/executor.ts";
import { createNodeClock } from "../../../src/agent/node-clock.ts";
import { openOutputStream } from "../../../src/agent/output/stream.ts";
import type { Result } from "../../../src/agent/results.ts";
import type { AgentSettings } from "../../../src/protocol/agent-settings.ts";
import { SlotPool } from "../../../src/agent/slots.ts";
import { defineRun } from "../../../src/agent/templates.ts";
import { Ending } from "../../../src/core/events.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import type { GroupTemplate } from "../../../src/protocol/messages.ts";
import { directory, nativePath, nodeEntry, removeDirectory } from "./spawner-harness.ts";

const DAY_S = 86_400;
const RESOURCES = { cpus: FRACTION };

const runWith = (timeLimit: number) => {
  const group = { index: 0, name: "a", first: 0, env: {}, executor: "process", resources: RESOURCES, priority: 0 };
  return defineRun(undefined, {
    t: "define",
    run: 1,
    runName: "r",
    cwd: directory,
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    numbering: { start: 0, step: 1 },
    groups: [{ ...group, command: "echo begun; exec sleep 600", timeLimit } as unknown as GroupTemplate],
  });
};

describe("a task's time limit", () => {
  afterEach(() => void vi.useRealTimers());
  afterAll(removeDirectory);

  it("is kept when it is longer than a timer of Node can wait (24.8 days)", async () => {
    let tellEnd!: (result: Result) => void;
    const ended = new Promise<Result>((resolve) => {
      tellEnd = resolve;
    });
    const output = await openOutputStream(join(directory, "limit.out"));
    const executor = await createExecutor({
      uuid: "0123456789",
      settings: { scratch: directory, graceMs: 0, pin: false, spawner: "auto" } as unknown as AgentSettings,
      cgroup: null,
      oomKillsFile: undefined,
      gpus: { indices: [], vendor: null },
      environment: [],
      output,
      clock: createNodeClock(),
      spawners: 1,
      nativePath,
      nodeEntry,
      onSpawner: () => Promise.resolve(),
      onEnd: (_task, result) => tellEnd(result),
      onDropped: () => undefined,
      onBroken: () => undefined,
    });
    const pool = new SlotPool({ capacity: RESOURCES, cpus: [0], gpus: [] });
    const task = createAssignedTasks().make({
      owner: { ended: () => undefined, dropped: () => undefined },
      shape: "a",
      priority: 0,
      run: runWith(60 * DAY_S),
      group: 0,
      row: 0,
      attempt: 1,
      item: undefined,
      resources: RESOURCES,
      timeLimit: 60 * DAY_S,
      alone: false,
    });
    task.chain = { slot: pool.allocate(RESOURCES)!, shape: "a", members: [task] };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    executor.start(task, undefined);
    while (task.output === undefined) await new Promise((resolve) => setImmediate(resolve));

    vi.advanceTimersByTime(25 * DAY_S * 1000);
    expect(task.ending).toBeUndefined();
    vi.advanceTimersByTime(35 * DAY_S * 1000 - 1);
    expect(task.ending).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(task.ending).toBe(Ending.TIME_LIMIT);

    vi.useRealTimers();
    expect(await ended).toMatchObject({ ending: Ending.TIME_LIMIT, detail: `over its time limit of ${60 * DAY_S} s` });
    await executor.close();
    await output.close();
  });
});
