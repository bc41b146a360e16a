import { describe, expect, it } from "vitest";
import { jobNameOf, projectOf } from "../../../src/batch/job-labels.ts";
import { LAUNCH_DEFAULTS } from "../../../src/batch/settings.ts";
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
    projectOf(manager, { projectSource }, from);

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
