import { describe, expect, it } from "vitest";
import { jobNameOf, projectOf } from "../../../../src/launch/plan/job-labels.ts";
import { MANAGERS } from "../../../../src/managers/managers.ts";
import { LAUNCH_DEFAULTS } from "../../../../src/launch/plan/settings.ts";
import { ID, plan, refused } from "./sample.ts";

describe("common options", () => {
  it("of Slurm", () => {
    const { directives } = plan(
      { name: "a b", type: "exp", slots: 0, project: "p 1", walltime: "1d2h3m4s" },
      { directory: "/shared/100=x", cluster: ["job-name-prefix: det-ai"] },
    );
    expect(directives.slice(0, 8)).toEqual([
      "#SBATCH --job-name=det-ai_exp-a-b-f53889084a0b4510-b19cc33ba8a50203",
      "#SBATCH --output=/shared/100=x/output.log",
      "#SBATCH --error=/shared/100=x/error.log",
      "#SBATCH --chdir=/shared/100=x",
      "#SBATCH --partition=gpu",
      "#SBATCH --wckey=p_1",
      "#SBATCH --no-requeue",
      "#SBATCH --time=1-02:04:00",
    ]);
  });

  it("of PBS", () => {
    const { directives, walltime } = plan(
      { name: "a b", type: "gc", slots: 0, project: "p/1", walltime: 3661 },
      { manager: "pbs" },
    );
    expect(walltime).toBe(3661);
    expect(directives).toEqual([
      "#PBS -N slipway_gc-a-b-f53889084a0b4510-b19cc33ba8a50203",
      "#PBS -q gpu",
      "#PBS -o /shared/jobs/7/output.log",
      "#PBS -e /shared/jobs/7/error.log",
      "#PBS -V",
      "#PBS -r n",
      "#PBS -W umask=0022",
      "#PBS -P p_1",
      "#PBS -l select=1",
      "#PBS -l walltime=01:01:01",
    ]);
  });

  it("of a queue apply, but for what a launch decides", () => {
    const queue =
      '{ partition: gpu, account: a1, qos: q, constraint: "x|y", walltime: 1h, options: ["--mem=1G -N 4"] }';
    const { directives, notes } = plan({ resource_pool: "mine" }, { cluster: [`queues: { mine: ${queue} }`] });
    expect(directives).toEqual(
      expect.arrayContaining([
        "#SBATCH --account=a1",
        "#SBATCH --qos=q",
        String.raw`#SBATCH --constraint=x\|y`,
        "#SBATCH --time=0-01:00:00",
        "#SBATCH --mem=1G",
      ]),
    );
    expect(directives.filter((line) => line.includes("--nodes"))).toHaveLength(1);
    expect(notes.join("\n")).toContain("-N");
    const own = plan(
      { resource_pool: "mine", slurm: { sbatch_args: ["-A other", "-t 5"] } },
      { cluster: [`queues: { mine: ${queue} }`] },
    );
    expect(own.directives.filter((line) => /--(account|time)=/.test(line))).toEqual([
      "#SBATCH --account=other",
      "#SBATCH --time=5",
    ]);
  });

  it("a directory that containers could not be given is refused", () => {
    const error = refused(() => plan({}, { directory: "/a:b/c" }));
    expect(error.facts["key"]).toBe("job_storage_root");
  });
});

describe("PBS's place, reservation and constraint", () => {
  const of = (launch: Record<string, unknown>, queue = "{ partition: gpu }") => {
    const found = plan(
      { resource_pool: "mine", ...launch },
      { manager: "pbs", cluster: [`queues: { mine: ${queue} }`] },
    );
    const resource = (name: string): string[] =>
      found.directives.filter((line) => line.startsWith(`#PBS -l ${name}=`)).map((line) => line.slice(8 + name.length));
    return { ...found, place: resource("place"), select: resource("select") };
  };
  const per = (slots: number, each: number, args: readonly string[] = []) => ({
    slots,
    pbs: { slots_per_node: each, pbsbatch_args: args },
  });

  it("slots_per_node puts each chunk on a node of its own", () => {
    const { place, select, sizing } = of(per(4, 2));
    expect([select, place]).toEqual([["=2:ngpus=2"], ["=scatter"]]);
    expect(sizing).toMatchObject({ slots: 4, slotsPerNode: 2, nodes: { min: 2, max: 2 } });
    // without it, or with a single chunk, there is nothing to arrange
    expect(of({ slots: 4 })).toMatchObject({ place: [], sizing: { nodes: { min: 1, max: 4 } } });
    expect(of(per(2, 2)).place).toEqual([]);
    expect(of({ slots: 0 }).place).toEqual([]);
  });

  it("the queue's place and exclusive apply; how chunks are spread, slots_per_node decides", () => {
    expect(of({ slots: 4 }, '{ place: "scatter:excl" }').place).toEqual(["=scatter:excl"]);
    expect(of({ slots: 4 }, "{ place: excl }").place).toEqual(["=free:excl"]);
    expect(of({ slots: 4 }, "{ exclusive: true }").place).toEqual(["=free:excl"]);
    expect(of(per(4, 1), "{ exclusive: true }").place).toEqual(["=scatter:excl"]);
    expect(of(per(4, 1), '{ options: ["-l place=exclhost"] }').place).toEqual(["=scatter:exclhost"]);
    const packed = of(per(4, 1), '{ place: "pack:excl" }');
    expect(packed.place).toEqual(["=scatter:excl"]);
    expect(packed.notes.join("\n")).toMatch(/pack.*slots_per_node/);
    expect(of({ slots: 4 }, "{ place: scatter }").sizing).toMatchObject({ slotsPerNode: 1, nodes: { min: 4, max: 4 } });
  });

  it("a user's own place is kept", () => {
    expect(of(per(4, 1, ["-l place=pack"]), "{ place: scatter }").place).toEqual(["=pack"]);
    expect(of(per(4, 1, ["-l place=pack"])).notes.join("\n")).toMatch(/place=pack.*slots_per_node/);
    expect(of(per(4, 1, ["-l place=excl"])).place).toEqual(["=scatter:excl"]);
    expect(of({ slots: 4, pbs: { pbsbatch_args: ["-l walltime=10,place=scatter:group=rack"] } }).place).toEqual([
      "=scatter:group=rack",
    ]);
    expect(of(per(4, 1, ["-l place=pack"]), "{ exclusive: true }").place).toEqual(["=pack:excl"]);
  });

  it("a reservation is the queue that the job goes to", () => {
    const lines = of({ slots: 0 }, "{ partition: gpu, reservation: R12 }").directives;
    expect(lines.filter((line) => line.startsWith("#PBS -q"))).toEqual(["#PBS -q R12"]);
    expect(of({ slots: 0 }, "{ reservation: R12 }").directives).toContain("#PBS -q R12");
  });

  it("a constraint is a resource of each chunk", () => {
    expect(of({ slots: 2 }, "{ constraint: bigmem }").select).toEqual(["=2:ngpus=1:bigmem=True"]);
    expect(of({ slots: 2 }, '{ constraint: "arch=linux:model=a" }').select).toEqual(["=2:ngpus=1:arch=linux:model=a"]);
    const own = { slots: 2, pbs: { pbsbatch_args: ["-l select=1:model=b"] } };
    expect(of(own, '{ constraint: "model=a" }').select).toEqual(["=2:ngpus=1:model=b"]);
  });
});

describe("job names", () => {
  it("are PREFIX_TYPE-NAME-ID-ID in what every manager takes, at most 230 characters", () => {
    const of = (name: string) => jobNameOf(LAUNCH_DEFAULTS, { type: "cmd", name }, ID);
    expect(of("2-trial-2")).toBe("slipway_cmd-2-trial-2-f53889084a0b4510-b19cc33ba8a50203");
    expect(of("a/b: [c] „ü“")).toBe("slipway_cmd-a-b-c-f53889084a0b4510-b19cc33ba8a50203");
    expect(of("ü")).toBe("slipway_cmd-job-f53889084a0b4510-b19cc33ba8a50203");
    const long = of("x".repeat(500));
    expect(long).toHaveLength(230);
    expect(long).toMatch(/^[A-Za-z0-9._+-]+-f53889084a0b4510-b19cc33ba8a50203$/);
  });
});

describe("WCKey and project", () => {
  const spec = { project: "p", workspace: "w", labels: ["a", "proj-x", "proj-y/z", "proj-"] };
  const of = (manager: "slurm" | "pbs", projectSource: typeof LAUNCH_DEFAULTS.projectSource, from = spec) =>
    projectOf(MANAGERS[manager].launch, { projectSource }, from);

  it("come from what job_project_source names", () => {
    expect(of("slurm", { from: "project" })).toBe("p");
    expect(of("slurm", { from: "workspace" })).toBe("w");
    expect(of("slurm", { from: "label", prefix: "proj-" })).toBe("x_y/z");
    expect(of("pbs", { from: "label", prefix: "proj-" })).toBe("x_y_z");
    expect(of("slurm", { from: "label", prefix: "" })).toBe("a_proj-x_proj-y/z_proj-");
    expect(of("slurm", { from: "label", prefix: "none" })).toBeUndefined();
    expect(of("slurm", { from: "project" }, { ...spec, project: " " })).toBeUndefined();
  });

  it("have what the manager forbids replaced", () => {
    const all = 'a/b[c]d"e;f:g|h<i>j+k,l?m*n';
    expect(of("pbs", { from: "project" }, { ...spec, project: all })).toBe("a_b_c_d_e_f_g_h_i_j_k_l_m_n");
    expect(of("pbs", { from: "project" }, { ...spec, project: "ü 1" })).toBe("_1");
    expect(of("slurm", { from: "project" }, { ...spec, project: "a,b*c 'd'" })).toBe("a_b_c_d_");
  });
});
