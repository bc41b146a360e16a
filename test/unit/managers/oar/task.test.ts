import { describe, expect, it } from "vitest";
import type { OarQueue } from "../../../../src/managers/oar/keys.ts";
import { oarTask } from "../../../../src/managers/oar/task.ts";
import type { TaskAsk } from "../../../../src/managers/task-dialect.ts";
import { LEAST_TASK, refuse } from "../task-ask.ts";

const lines = (more: Partial<TaskAsk<OarQueue>> = {}): string[] =>
  oarTask.directives({ ...LEAST_TASK, ...more }).map((line) => line.replace(/^#OAR /, ""));
const read = (keys: Record<string, string>): Readonly<Record<string, string>> => oarTask.read(keys, refuse);

describe("a task as a job of OAR", () => {
  it("row 001-2: has its cores, memory, time, properties and types", () => {
    const said = lines({
      cores: 4,
      memory: 8 * 2 ** 30,
      walltime: 3660,
      partition: "default",
      account: "proj",
      own: { property: "drain='NO'", memoryPerCorePropertyName: "memcore", resourceSpec: "/nodes=9" },
      keys: read({ properties: "gpu_model='A100'", types: "besteffort timesharing=user,name" }),
    });
    expect(said).toEqual([
      "-n slw-1",
      "-l /nodes=1/core=4,walltime=1:01:00",
      "-p ((drain='NO') AND (gpu_model='A100')) AND (memcore >= 2048)",
      "-O /l/out",
      "-E /l/err",
      "-q default",
      "--project proj",
      "-t besteffort",
      "-t timesharing=user,name",
    ]);
  });

  it.each([
    ["ranks of one core anywhere", { ranks: { count: 6, by: "mpiexec" } }, "/core=6"],
    ["ranks of several cores, each on a node", { cores: 2, ranks: { count: 6, by: "mpiexec" } }, "/nodes=6/core=2"],
    ["ranks over nodes", { cores: 2, ranks: { count: 6, nodes: 3, by: "mpiexec" } }, "/nodes=3/core=4"],
    ["GPUs, with cores below each", { cores: 5, gpus: 2 }, "/nodes=1/gpu=2/core=3"],
    ["whole nodes", { exclusive: true, cores: 2 }, "/nodes=1"],
  ] as const)("%s", (_, more, spec) => {
    expect(lines(more)).toContain(`-l ${spec}`);
  });

  it("an array has files for each element, and -b its own queue", () => {
    expect(lines({ array: 2 })).toEqual(expect.arrayContaining(["-O /l/out.%jobid%", "-E /l/err.%jobid%"]));
    const { keys, resources } = oarTask.backend(`-q besteffort -t besteffort --property "x='y'" --cores 2`, refuse);
    expect(resources).toEqual({ cpus: 20_000 });
    expect(lines({ keys, partition: "default" })).toEqual(
      expect.arrayContaining(["-q besteffort", "-t besteffort", "-p x='y'"]),
    );
  });

  it("refuses what it cannot say", () => {
    expect(() => lines({ others: { matlab: 10_000 } })).toThrow(/counts no resources by such names/);
    expect(() => read({ types: "a;b" })).toThrow('types: "a;b" is not a type');
    expect(() => read({ properties: "x\n-l y" })).toThrow("properties: contains a line break");
    expect(() => read({ gres: "x" })).toThrow("gres: is not a key of tasks on OAR");
    expect(() => oarTask.backend("--project x", refuse)).toThrow("--project: is not one of");
    expect(oarTask.usage).toMatch(/-p, --property/);
  });
});
