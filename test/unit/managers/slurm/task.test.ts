import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SlurmQueue } from "../../../../src/managers/slurm/keys.ts";
import { slurmTask } from "../../../../src/managers/slurm/task.ts";
import type { TaskAsk } from "../../../../src/managers/task-dialect.ts";
import { LEAST_TASK, refuse } from "../task-ask.ts";

const GIB = 2 ** 30;
const options = (more: Partial<TaskAsk<SlurmQueue>> = {}): string[] =>
  slurmTask.directives({ ...LEAST_TASK, ...more }).map((line) => line.replace(/^#SBATCH /, ""));
const read = (keys: Record<string, string>): Readonly<Record<string, string>> => slurmTask.read(keys, refuse);
const backend = (text: string) => slurmTask.backend(text, refuse);

describe("a task as a job of Slurm", () => {
  it("row 001-59: has the queue's and the task's own, and is not started again", () => {
    expect(
      options({
        cores: 16,
        memory: 64 * GIB,
        gpus: 2,
        tmp: GIB,
        walltime: 6 * 3600 + 60,
        partition: "cpu",
        account: "proj",
        qos: "high",
        constraint: "ib",
        reservation: "tuesday",
        options: ["--mail-type=END"],
        nice: 30,
      }),
    ).toEqual([
      "--output=/l/out",
      "--error=/l/err",
      "--job-name=slw-1",
      "--nodes=1",
      "--ntasks-per-node=1",
      "--cpus-per-task=16",
      "--mem=65536M",
      "--tmp=1024M",
      "--gres=gpu:2",
      "--time=361",
      "--partition=cpu",
      "--account=proj",
      "--qos=high",
      "--constraint=ib",
      "--reservation=tuesday",
      "--nice=30",
      "--no-requeue",
      "--mail-type=END",
    ]);
  });

  it("rows 001-69 to 001-76: its keys are passed on as they are, over the queue's", () => {
    const keys = read({
      partition: "gpu",
      qos: "q",
      features: "a&b",
      gres: "nvme:1",
      licence: "foo:2",
      excludes: "n9",
      nodes: "n[1-2]",
      reserv: "r",
    });
    const said = options({ keys, partition: "cpu", qos: "low", constraint: "c", reservation: "x", gpus: 1 });
    for (const option of [
      "--partition=gpu",
      "--qos=q",
      "--constraint='a&b'",
      "--gres=gpu:1,nvme:1",
      "--licenses=foo:2",
      "--exclude=n9",
      "--nodelist='n[1-2]'",
      "--reservation=r",
    ])
      expect(said).toContain(option);
    expect(said.filter((option) => option.startsWith("--partition"))).toHaveLength(1);
  });

  it("where a queue's jobs go holds for tasks, what its pilots have does not", () => {
    const own = { parts: [{ excludes: "bad", nodes: "n[1-9]", gres: "gpu:8", licence: "foo" }, { qos: "x" }] };
    const said = options({ own });
    expect(said).toContain("--exclude=bad");
    expect(said).toContain("--nodelist='n[1-9]'");
    expect(said.join(" ")).not.toMatch(/gres|licenses|hetjob/);
    expect(options({ own, keys: { excludes: "n1" } })).toContain("--exclude=n1");
  });

  it("row 001-75, row 001-78: no index is index 0, and nodes as text, nodelist and nodes0 are the same", () => {
    for (const name of ["nodes", "nodelist", "nodes0"]) expect(read({ [name]: "n1" })).toEqual({ nodelist: "n1" });
    expect(read({ gres0: "a", partition0: "b" })).toEqual({ gres: "a", partition: "b" });
    expect(() => read({ gres: "a", gres0: "b" })).toThrow("gres0: means the same as 'gres'");
    expect(() => read({ nodes: "n1", nodelist: "n2" })).toThrow("nodelist: means the same as 'nodes'");
  });

  it("row 001-77: an index makes a heterogeneous job, whose ranks are in part 0; it is no array", () => {
    const keys = read({ gres: "a:1", gres2: "c:3", partition1: "p1" });
    const said = options({ keys, cores: 2, ranks: { count: 4, by: "srun" }, partition: "p" });
    const parts = said.join("\n").split("hetjob\n");
    expect(parts).toHaveLength(3);
    expect(parts[0]).toMatch(/--ntasks=4\n[\s\S]*--gres=a:1\n[\s\S]*--partition=p\n/);
    expect(parts[1]).toMatch(/--ntasks-per-node=1\n[\s\S]*--partition=p1\n/);
    expect(parts[2]).toMatch(/--gres=c:3\n[\s\S]*--partition=p\n/);
    expect(slurmTask.array!.allows!({ keys, own: {} })).toBe(false);
    expect(slurmTask.array!.allows!({ keys: read({ gres0: "a" }), own: {} })).toBe(true);
  });

  it("row 001-79: any other resource is a licence where Slurm has one of that name, else gres", () => {
    const said = options({
      keys: { licence: "foo:1", gres: "x:1" },
      others: { matlab: 25_000, disk: 10_000, none: 0 },
      licences: new Set(["matlab"]),
    });
    expect(said).toContain("--licenses=foo:1,matlab:3");
    expect(said).toContain("--gres=x:1,disk:1");
  });

  it("ranks are tasks of Slurm, with what each asks for", () => {
    const each = { cores: 2, memory: 3 * GIB, gpus: 1, tmp: GIB };
    expect(options({ ...each, ranks: { count: 8, nodes: 3, by: "srun" } }).slice(3, 10)).toEqual([
      "--nodes=3",
      "--ntasks=8",
      "--ntasks-per-node=3",
      "--cpus-per-task=2",
      "--mem-per-cpu=1536M",
      "--tmp=3072M",
      "--gpus-per-task=1",
    ]);
    const anywhere = options({ ...each, ranks: { count: 8, by: "srun" } });
    expect(anywhere).toContain("--ntasks=8");
    expect(anywhere.join("\n")).not.toMatch(/--nodes|--ntasks-per-node|--mem=/);
    expect(slurmTask.ranks).toBe("srun");
  });

  it("an array has a file for each element; a % in a path stays one", () => {
    expect(options({ array: 10, stdout: "/a%b/out" }).slice(0, 2)).toEqual([
      "--output=/a%%b/out.%a",
      "--error=/l/err.%a",
    ]);
  });

  it("refuses what is no key, with the nearest name, and what is no line", () => {
    expect(() => read({ partiton: "x" })).toThrow(
      "partiton: is not a key of tasks on Slurm; did you mean 'partition'?",
    );
    expect(() => read({ gres10: "x" })).toThrow("gres10: is not a key");
    expect(() => read({ nodes: "4" })).toThrow("nodes: is a number");
    for (const value of ["", " ", "a\nb", "a\rb", "a\0b"]) expect(() => read({ gres: value })).toThrow("gres: ");
  });

  it("hostile values stay one word of one line", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (value) => {
        let keys: Readonly<Record<string, string>>;
        try {
          keys = read({ gres: value });
        } catch {
          return;
        }
        const lines = options({ keys });
        expect(lines.join("\n").split("\n")).toHaveLength(lines.length);
        const said = lines.find((line) => line.startsWith("--gres="))!.slice("--gres=".length);
        if (/^[\w:,.-]+$/.test(value)) expect(said).toBe(value);
        else expect(said).toBe(`'${value.replaceAll("'", `'\\''`)}'`);
      }),
    );
  });

  it("its variables reach the task", () => {
    for (const name of ["SLURM_JOB_ID", "SLURMD_NODENAME"]) expect(slurmTask.variables.test(name)).toBe(true);
    for (const name of ["SLURMX", "MY_SLURM_X", "PATH"]) expect(slurmTask.variables.test(name)).toBe(false);
  });
});

describe("-b for Slurm", () => {
  it.each([
    ["001-81", "-c 4", "--cpus-per-task=4", { resources: { cpus: 40_000 } }],
    ["001-82", "--mem 10G", "--mem=10G", { resources: { mem: 10 * GIB } }],
    ["001-83", "--tmp 500", "--tmp=500M", { resources: { tmp: 500 * 2 ** 20 } }],
    ["001-84", "-C a&b", "--constraint='a&b'", { keys: { features: "a&b" } }],
    ["001-85", "-x n[1-3]", "--exclude n[1-3]", { keys: { excludes: "n[1-3]" } }],
    ["001-86", "--gres gpu:1", "--gres=gpu:1", { keys: { gres: "gpu:1" } }],
    ["001-87", "-Lfoo:2", "--licenses foo:2", { keys: { licence: "foo:2" } }],
    ["001-88", "-w n1", "--nodelist=n1", { keys: { nodelist: "n1" } }],
    ["001-89", "-p gpu", "--partition=gpu", { keys: { partition: "gpu" } }],
    ["001-90", "-q high", "--qos=high", { keys: { qos: "high" } }],
    ["001-91", "--reservation r", "--reservation=r", { keys: { reserv: "r" } }],
  ])("row %s: %s, %s", (_, short, long, wanted) => {
    const whole = { help: false, resources: {}, keys: {}, notices: [], ...wanted };
    expect(backend(short)).toEqual(whole);
    expect(backend(long)).toEqual(whole);
  });

  it("row 001-80: several, separated by blanks and quoted as in a shell; of one given twice the last counts", () => {
    expect(backend(`  -c 2 --gres="a b"  -C 'x|y' --mem=1G -c3 `)).toEqual({
      help: false,
      resources: { cpus: 30_000, mem: GIB },
      keys: { gres: "a b", features: "x|y" },
      notices: [],
    });
    expect(backend("")).toMatchObject({ resources: {}, keys: {} });
  });

  it("row 001-92: -h and --help ask for the usage, which names every option", () => {
    for (const text of ["-h", "--help", "-c 2 -h"]) expect(backend(text).help).toBe(true);
    for (const name of ["-c, --cpus-per-task", "--mem", "--tmp", "-C, --constraint", "-x, --exclude", "--gres"])
      expect(slurmTask.usage).toContain(name);
    for (const name of [
      "-L, --licenses",
      "-w, --nodelist",
      "-p, --partition",
      "-q, --qos",
      "--reservation",
      "-h, --help",
    ])
      expect(slurmTask.usage).toContain(name);
  });

  it.each([
    ["--nice=5", "--nice: is not one of -c --cpus-per-task"],
    ["--partion=x", "did you mean '--partition'?"],
    ["-N 2", "-N: is not one of"],
    ["gpu", "gpu: is not an option"],
    ["-", "-: is not an option"],
    ["-c", "-c: needs a value"],
    ["--mem=", "--mem: needs a value"],
    ["-c many", "-c: must be a number"],
    ["--mem 1Q", '--mem: "1Q" is not a valid size'],
    ["-p 'a\nb'", "-p: contains a line break"],
    ["-p 'a", "has an open quote"],
  ])("refuses %j and names it", (text, message) => {
    expect(() => backend(text)).toThrow(message);
  });

  it("any text is read or refused, and any value comes through as it was quoted", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        try {
          backend(text);
        } catch (error) {
          expect(String(error)).toMatch(/: (is not|needs|has an|must|contains|is empty|is longer|".*" is)/s);
        }
      }),
    );
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (value) => {
        fc.pre(value.trim() !== "");
        const quoted = `'${value.replaceAll("'", `'\\''`)}'`;
        expect(backend(`-p ${quoted}`).keys).toEqual({ partition: value });
        expect(backend(`--partition=${quoted}`).keys).toEqual({ partition: value });
      }),
    );
  });
});
