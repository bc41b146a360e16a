import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { slotEnvironment, type SlotFacts, taskEnvironment, type TaskFacts } from "../../../src/agent/environment.ts";
import { SlotPool } from "../../../src/agent/slots.ts";
import { toUnits, type Resources } from "../../../src/core/resources.ts";

const units = (amounts: Record<string, number>): Resources =>
  Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, toUnits(name, value)]));

const environment = (
  resources: Resources,
  facts: Partial<TaskFacts & SlotFacts> = {},
  gpus: SlotFacts["gpus"] = { indices: [], vendor: null },
): Record<string, string> => {
  const pool = new SlotPool({
    capacity: { ...units({ cpus: 8, gpus: gpus.indices.length, mem: 2 ** 40, tmp: 2 ** 40, "a-b.c": 9 }) },
    cpus: [4, 5, 6, 7],
    gpus: gpus.indices,
  });
  const all = {
    runId: 3,
    taskIndex: 17,
    attempt: 2,
    name: "dock",
    item: "a=b c",
    slot: pool.allocate(resources)!,
    resources,
    token: "t0",
    gpus,
    ...facts,
  };
  const entries = [...slotEnvironment(all), ...taskEnvironment(all)];
  const names = entries.map((entry) => entry.slice(0, entry.indexOf("=")));
  expect(new Set(names).size).toBe(names.length);
  return Object.fromEntries(entries.map((entry, nth) => [names[nth], entry.slice(entry.indexOf("=") + 1)]));
};

describe("the environment of a task", () => {
  it("tells a task what it is and has", () => {
    expect(environment(units({ cpus: 2, mem: 5e8, tmp: 1e9, "a-b.c": 2 }))).toEqual({
      SLIPWAY_RUN: "3",
      SLIPWAY_TASK: "17",
      SLIPWAY_ATTEMPT: "2",
      SLIPWAY_NAME: "dock",
      SLIPWAY_ITEM: "a=b c",
      SLIPWAY_CPUS: "2",
      SLIPWAY_CPU_IDS: "4,5",
      SLIPWAY_MEM: "500000000",
      SLIPWAY_TMP: "1000000000",
      SLIPWAY_GPUS: "0",
      SLIPWAY_RESOURCE_A_B_C: "2",
      SLIPWAY_TOKEN: "t0",
      OMP_NUM_THREADS: "2",
    });
  });

  it("is documented, variable by variable", () => {
    const documented = readFileSync(new URL("../../../docs/run-file.md", import.meta.url), "utf8");
    const gpus = { indices: ["0", "1"], vendor: null };
    const found = environment(units({ cpus: 1, gpus: 1, mem: 1e6, tmp: 1e6 }), {}, gpus);
    expect(Object.keys(found).filter((name) => !documented.includes(`\`${name}\``))).toEqual([]);
    expect(documented).toMatch(/`SLIPWAY_MEM`.*\bbytes\b/);
  });

  it("gives one thread to fractions, and leaves the user's own number alone", () => {
    expect(environment(units({ cpus: 0.25 }))).toMatchObject({ SLIPWAY_CPUS: "0.25", OMP_NUM_THREADS: "1" });
    expect(environment(units({ cpus: 2.5 }))["OMP_NUM_THREADS"]).toBe("2");
    expect(environment(units({ cpus: 2 }), { env: { OMP_NUM_THREADS: "9" } })).not.toHaveProperty("OMP_NUM_THREADS");
  });

  it("names no core ids when some are virtual", () => {
    expect(environment(units({ cpus: 6 }), { item: null })).toMatchObject({ SLIPWAY_CPU_IDS: "", SLIPWAY_ITEM: "" });
  });

  it("shows exactly the slot's devices, in the words of the vendor", () => {
    const nvidia = { indices: ["GPU-a", "GPU-b", "GPU-c"], vendor: "nvidia" } as const;
    const two = environment(units({ gpus: 2 }), {}, nvidia);
    expect(two).toMatchObject({ CUDA_VISIBLE_DEVICES: "GPU-a,GPU-b", SLIPWAY_GPUS: "2" });
    expect(two).not.toHaveProperty("ROCR_VISIBLE_DEVICES");
    expect(environment(units({ cpus: 1 }), {}, nvidia)["CUDA_VISIBLE_DEVICES"]).toBe("");
    const amd = environment(units({ gpus: 1.5 }), {}, { indices: ["4", "6"], vendor: "amd" });
    expect(amd).toMatchObject({ ROCR_VISIBLE_DEVICES: "4,6", HIP_VISIBLE_DEVICES: "0,1", GPU_DEVICE_ORDINAL: "0,1" });
    expect(amd).not.toHaveProperty("CUDA_VISIBLE_DEVICES");
    expect(environment(units({ gpus: 0.5 }), {}, { indices: ["1"], vendor: null })).toMatchObject({
      CUDA_VISIBLE_DEVICES: "1",
      ROCR_VISIBLE_DEVICES: "1",
      HIP_VISIBLE_DEVICES: "0",
      ZE_AFFINITY_MASK: "1",
      SLIPWAY_GPUS: "0.5",
    });
  });

  it("leaves out an item that no process could be started with", () => {
    const longest = 131_072 - "SLIPWAY_ITEM=".length - 1;
    expect(environment({}, { item: "x".repeat(longest) })).toHaveProperty("SLIPWAY_ITEM");
    expect(environment({}, { item: "x".repeat(longest + 1) })).not.toHaveProperty("SLIPWAY_ITEM");
    expect(environment({}, { item: "€".repeat(longest / 2) })).not.toHaveProperty("SLIPWAY_ITEM");
  });
});
