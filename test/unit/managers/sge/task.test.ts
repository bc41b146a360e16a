import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SgeQueue } from "../../../../src/managers/sge/keys.ts";
import { sgeTask } from "../../../../src/managers/sge/task.ts";
import type { TaskAsk } from "../../../../src/managers/task-dialect.ts";
import { LEAST_TASK, refuse } from "../task-ask.ts";

const MIB = 2 ** 20;
const lines = (more: Partial<TaskAsk<SgeQueue>> = {}): string[] =>
  sgeTask.directives({ ...LEAST_TASK, ...more }).map((line) => line.replace(/^#\$ /, ""));
const read = (keys: Record<string, string>): Readonly<Record<string, string>> => sgeTask.read(keys, refuse);

describe("a task as a job of Grid Engine", () => {
  it("row 001-41, rows 001-53 to 001-55: asks by the resources that the queue names", () => {
    const own = { cpuResource: "cpu_r", memResource: "mem_r", tmpResource: "tmp_r", gpuResource: "gpu" };
    const said = lines({ own, cores: 2, memory: 10 * MIB, tmp: 100 * MIB, gpus: 1, walltime: 660, partition: "all.q" });
    for (const line of ["-l cpu_r=2", "-l mem_r=10", "-l tmp_r=100", "-l gpu=1", "-l h_rt=660", "-q all.q", "-r n"])
      expect(said).toContain(line);
  });

  it("row 001-56: hard and soft: what begins with a dash are options of qsub, the rest requests", () => {
    const keys = read({ hard: "-q fast.q -l a=1", soft: "b=2,c=3" });
    const said = lines({ keys, own: { hard: ["x=1"] } });
    expect(said).toContain("-hard -l x=1");
    expect(said).toContain("-hard -q fast.q -l a=1");
    expect(said).toContain("-soft -l b=2 -hard");
    expect(said).toContain("-soft -l c=3 -hard");
  });

  it("row 001-57: any other resource is asked for by -l", () => {
    expect(lines({ others: { matlab: 20_000, half: 5000, none: 0 } })).toEqual(
      expect.arrayContaining(["-hard -l matlab=2", "-hard -l half=0.5"]),
    );
  });

  it("row 001-47, row 001-48: prio, else default-prio, else none", () => {
    const own = { defaultPrio: -5 };
    expect(lines({ own })).toContain("-p -5");
    expect(lines({ own, keys: read({ prio: "-100" }) })).toContain("-p -100");
    expect(lines().join("\n")).not.toMatch(/^-p /m);
  });

  it("ranks share a parallel environment, each with its cores", () => {
    const own = { parallelEnvironment: "mpi", memResource: "m" };
    const said = lines({ own, cores: 2, memory: 64 * MIB, ranks: { count: 6, nodes: 2, by: "mpiexec" } });
    expect(said).toContain("-pe mpi 12");
    expect(said).toContain("-l m=32");
    expect(() => lines({ ranks: { count: 6, by: "mpiexec" } })).toThrow("parallel environment");
  });

  it("what no resource of the queue can say is refused under the task's own name for it", () => {
    for (const [key, more] of [
      ["mem", { memory: MIB }],
      ["tmp", { tmp: MIB }],
      ["cpus", { cores: 2 }],
      ["gpus", { gpus: 1 }],
    ] as const) {
      let facts: unknown;
      try {
        lines(more);
      } catch (error) {
        facts = (error as { facts: unknown }).facts;
      }
      expect(facts).toMatchObject({ key, remedy: expect.stringMatching(/^Add /) });
    }
  });

  it("an array has a file for each element", () => {
    expect(lines({ array: 3 })).toEqual(expect.arrayContaining(["-o /l/out.$TASK_ID", "-e /l/err.$TASK_ID"]));
  });

  it.each([
    [{ hard: "-N other" }, "hard: -N is Slipway's own"],
    [{ soft: "-l a=1 -t 1-3" }, "soft: -t is Slipway's own"],
    [{ hard: "a=1\n-o /x" }, "hard: contains a line break"],
    [{ hard: "a = 1" }, 'hard: "=" is not a resource request'],
    [{ prio: "high" }, "prio: must be a whole number"],
    [{ prio: "2000" }, "prio: must be a whole number"],
    [{ partition: "x" }, "partition: is not a key of tasks on Grid Engine"],
  ])("refuses %j", (keys, message) => {
    expect(() => read(keys as Record<string, string>)).toThrow(message);
  });

  it("any keys are read or refused, and never make a line of their own", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.constantFrom("hard", "soft"), (value, key) => {
        let keys: Readonly<Record<string, string>>;
        try {
          keys = read({ [key]: value });
        } catch {
          return;
        }
        const said = sgeTask.directives({ ...LEAST_TASK, keys });
        for (const line of said) expect(line).toMatch(/^#\$ [^\n\r\0]*$/);
      }),
    );
  });
});

describe("-b for Grid Engine", () => {
  it("row 001-48, row 001-93: one whole number is the priority", () => {
    for (const text of ["-10", " -10 ", "0", "+5"])
      expect(sgeTask.backend(text, refuse)).toEqual({
        help: false,
        resources: {},
        keys: { prio: String(Number(text)) },
        notices: [],
      });
    expect(() => sgeTask.backend("5000", refuse)).toThrow("5000: is no priority");
  });

  it("row 001-42: anything else is ignored with a notice; -h is not", () => {
    expect(sgeTask.backend("-q all.q -l a=1", refuse)).toMatchObject({
      keys: {},
      notices: [expect.stringMatching("ignored")],
    });
    expect(sgeTask.backend("-h", refuse)).toMatchObject({ help: true, notices: [] });
    expect(sgeTask.usage).toMatch(/PRIORITY/);
  });
});
