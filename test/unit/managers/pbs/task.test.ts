import { describe, expect, it } from "vitest";
import type { PbsQueue } from "../../../../src/managers/pbs/keys.ts";
import { pbsTask } from "../../../../src/managers/pbs/task.ts";
import type { TaskAsk } from "../../../../src/managers/task-dialect.ts";
import { LEAST_TASK, refuse } from "../task-ask.ts";

const GIB = 2 ** 30;
const lines = (more: Partial<TaskAsk<PbsQueue>> = {}): string[] =>
  pbsTask.directives({ ...LEAST_TASK, ...more }).map((line) => line.replace(/^#PBS /, ""));
const read = (keys: Record<string, string>): Readonly<Record<string, string>> => pbsTask.read(keys, refuse);

describe("a task as a job of PBS", () => {
  it("row 001-2: has the task's amounts and the queue's names, and is not run again", () => {
    expect(
      lines({ cores: 4, memory: GIB, gpus: 1, walltime: 660, partition: "work", account: "proj", options: ["-m n"] }),
    ).toEqual([
      "-N slw-1",
      "-o /l/out",
      "-e /l/err",
      "-l select=1:ncpus=4:mem=1048576kb:ngpus=1",
      "-l walltime=00:11:00",
      "-q work",
      "-P proj",
      "-r n",
      "-W umask=0022",
      "-m n",
    ]);
  });

  it("select and place are merged as for launches: the task's amounts and number of chunks stay", () => {
    const keys = read({ select: "3:ncpus=9:mem=9gb:vntype=fast:host=n1", place: "pack:excl", partition: "big" });
    const said = lines({ keys, cores: 2, own: { selectOptions: "vntype=slow:arch=x" }, constraint: "ssd" });
    expect(said).toContain("-l select=1:ssd=True:vntype=fast:arch=x:mem=9gb:host=n1:ncpus=2");
    expect(said).toContain("-l place=pack:excl");
    expect(said).toContain("-q big");
  });

  it("ranks are chunks, or evenly spread over the nodes", () => {
    const each = { cores: 2, memory: GIB };
    expect(lines({ ...each, ranks: { count: 6, by: "mpiexec" } })).toContain(
      "-l select=6:ncpus=2:mem=1048576kb:mpiprocs=1",
    );
    const spread = lines({ ...each, ranks: { count: 5, nodes: 2, by: "mpiexec" } });
    expect(spread).toContain("-l select=1:ncpus=6:mem=3145728kb:mpiprocs=3+1:ncpus=4:mem=2097152kb:mpiprocs=2");
    expect(spread).toContain("-l place=scatter");
  });

  it("other resources are the whole job's", () => {
    expect(lines({ others: { matlab: 20_000 } })).toContain("-l matlab=2");
  });

  it("-b takes a short list, and refuses the rest by name", () => {
    expect(pbsTask.backend("-l select=1:vntype=x -l place=excl -l ncpus=2,mem=1gb -q fast", refuse)).toEqual({
      help: false,
      resources: { cpus: 20_000, mem: GIB },
      keys: { select: "1:vntype=x", place: "excl", partition: "fast" },
      notices: [],
    });
    expect(() => pbsTask.backend("-N x", refuse)).toThrow("-N: is not one of");
    expect(() => pbsTask.backend("-l walltime=5", refuse)).toThrow("-l: takes select, place, ncpus and mem");
    expect(pbsTask.backend("-h", refuse).help).toBe(true);
    expect(pbsTask.usage).toMatch(/select=CHUNK/);
    expect(pbsTask.array).toBeUndefined();
  });

  it("refuses what it cannot say", () => {
    expect(() => read({ select: "1:a b=c" })).toThrow("select: ");
    expect(() => read({ select: '1:x="y' })).toThrow("select: ");
    expect(() => read({ place: "anywhere" })).toThrow('place: "anywhere" is not a place');
    expect(() => read({ select: "1\n#PBS -q x" })).toThrow("select: contains a line break");
  });
});
