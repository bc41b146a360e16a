import { describe, expect, it } from "vitest";
import { SlipwayError } from "../../../src/errors.ts";
import { type Plan, planOf, type PlanOptions } from "../../../src/wrap/plan/plan.ts";
import { PARAMETERS } from "../../../src/wrap/plan/parameters.ts";

const REQUIRED = { walltime: "01:00:00", cores: 4, memory: "8GB", maximum_jobs: 10 };
const OPTIONS: PlanOptions = { ports: { scheduler: 8700, dashboard: 8701 }, jobName: "dask-0a1b2c3d" };

const plan = (parameters: object = {}, options: Partial<PlanOptions> = {}): Plan =>
  planOf({ ...REQUIRED, ...parameters }, { ...OPTIONS, ...options }).plan;
const warnings = (parameters: object): readonly string[] => planOf({ ...REQUIRED, ...parameters }, OPTIONS).warnings;
const refusal = (parameters: unknown): SlipwayError => {
  try {
    planOf(parameters, OPTIONS);
  } catch (error) {
    if (error instanceof SlipwayError) return error;
    throw error;
  }
  throw new Error("it was not refused");
};
const refusedWith = (parameters: object): SlipwayError => refusal({ ...REQUIRED, ...parameters });
const flags = (made: Plan): readonly string[] => made.jobqueue["worker-extra-args"] as string[];

describe("what is propagated, row by row", () => {
  it("row 002-6: they go into the prologue, after the lines of the user; row 002-28: which must be a list", () => {
    const own = ["module load python", "cd /scratch"];
    expect(plan({ job_script_prologue: own }).prologue.own).toEqual(own);
    expect(plan().prologue.own).toBeNull();
    expect(plan().jobqueue).not.toHaveProperty("job-script-prologue");
    expect(refusedWith({ job_script_prologue: "module load python" }).facts).toMatchObject({
      key: "job_script_prologue",
    });
  });

  it("row 002-8: keys of scheduler, worker and nanny also become DASK_ variables, others do not", () => {
    const { dask, prologue } = plan({
      extra_dask_config: { "distributed.nanny.environ": "{'A': 1}", "array.chunk-size": "1MiB" },
    });
    const names = prologue.exports.map((line) => /^export (\w+)=/.exec(line)![1]);
    expect(names).toEqual([
      "SEAMLESS_WORKER_TRANSFORMATION_THROTTLE",
      "DASK_DISTRIBUTED__WORKER__DAEMON",
      "DASK_TEMPORARY_DIRECTORY",
      "DASK_DISTRIBUTED__SCHEDULER__UNKNOWN_TASK_DURATION",
      "DASK_DISTRIBUTED__WORKER__LIFETIME__STAGGER",
      "DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION",
      "DASK_DISTRIBUTED__NANNY__ENVIRON",
    ]);
    expect(dask).toHaveProperty(["distributed.adaptive.target-duration"]);
  });

  it("rows 002-17, 002-18, 002-19: constants; python holds unless --python names another", () => {
    expect(plan().jobqueue).toMatchObject({ processes: 1, python: "python" });
    expect(plan({}, { python: "/opt/my env/bin/python" }).jobqueue["python"]).toBe("'/opt/my env/bin/python'");
    expect(plan().dask["distributed.worker.daemon"]).toBe(false);
    expect(plan().prologue.exports).toContain("export DASK_DISTRIBUTED__WORKER__DAEMON=False");
  });

  it("rows 002-20, 002-21, 002-22, 002-52: walltime, cores, memory and maximum_jobs must be there", () => {
    expect(plan().jobqueue).toMatchObject({ walltime: "01:00:00", cores: 4, memory: "8GB" });
    expect(plan().maximum).toBe(10);
    const error = refusal({});
    expect(error.code).toBe("bad-parameter");
    expect(error.facts["key"]).toBe("walltime, cores, memory, maximum_jobs");
    expect(error.hint).toContain('"cores": 4');
    for (const name of Object.keys(REQUIRED)) {
      const { [name as keyof typeof REQUIRED]: _, ...rest } = REQUIRED;
      expect(refusal(rest).facts["key"]).toBe(name);
    }
  });

  it("row 002-23: tmpdir goes to local-directory and temp-directory, and to the key that Dask reads", () => {
    expect(plan().jobqueue).toMatchObject({ "local-directory": "/tmp", "temp-directory": "/tmp" });
    expect(plan({ tmpdir: "/scratch" }).dask["temporary-directory"]).toBe("/scratch");
    const expanded = plan({ tmpdir: "$TMPDIR" });
    expect(expanded.jobqueue["local-directory"]).toBe("$TMPDIR");
    expect(expanded.dask).not.toHaveProperty("temporary-directory");
  });

  it("rows 002-24, 002-26, 002-27: partition, project and memory_per_core_property_name, where given", () => {
    const given = plan({ partition: "fast", project: "capsid", memory_per_core_property_name: "memcore" });
    expect(given.jobqueue).toMatchObject({
      queue: "fast",
      project: "capsid",
      "memory-per-core-property-name": "memcore",
    });
    expect(given.renamed).toEqual({ project: "account" });
    for (const key of ["queue", "project", "memory-per-core-property-name", "job-extra-directives"])
      expect(plan().jobqueue).not.toHaveProperty(key);
    expect(refusedWith({ partition: "fast\n#SBATCH --uid=0" }).facts["key"]).toBe("partition");
  });

  it("row 002-25: job_extra_directives must be a list of lines", () => {
    expect(plan({ job_extra_directives: ["-p grappe"] }).jobqueue["job-extra-directives"]).toEqual(["-p grappe"]);
    for (const wrong of ["-p grappe", [1], ["a\nb"], { a: 1 }])
      expect(refusedWith({ job_extra_directives: wrong }).facts["key"]).toBe("job_extra_directives");
  });

  it("row 002-29: PYTHON_CPU_COUNT gets the value of SLURM_JOB_CPUS_PER_NODE, on Slurm only", () => {
    const { managers, exports } = plan().prologue;
    expect(managers).toEqual({ slurm: ['export PYTHON_CPU_COUNT="$SLURM_JOB_CPUS_PER_NODE"'] });
    expect(exports.join()).not.toContain("PYTHON_CPU_COUNT");
  });

  it("row 002-30: worker_extra_args is refused, with the reason", () => {
    for (const name of ["worker_extra_args", "worker-extra-args"]) {
      const error = refusedWith({ [name]: ["--no-nanny"] });
      expect(error.facts["key"]).toBe(name);
      expect(error.message).toContain("superfluous");
    }
  });

  it("rows 002-31, 002-41, 002-42: the wrapper uses them itself: threads are cores x throttle", () => {
    expect(flags(plan())[0]).toBe("--nthreads 12");
    expect(flags(plan({ transformation_throttle: 1 }))[0]).toBe("--nthreads 4");
    expect(plan({ cores: 2 }).local["threads_per_worker"]).toBe(6);
  });

  it("rows 002-39, 002-40: transformation_throttle, 3 unless given, is told to workers", () => {
    expect(plan().prologue.exports).toContain("export SEAMLESS_WORKER_TRANSFORMATION_THROTTLE=3");
    expect(plan({ transformation_throttle: 5 }).variables).toEqual({ SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: "5" });
    for (const wrong of [0, 1.5, "3", true])
      expect(refusedWith({ transformation_throttle: wrong }).facts["key"]).toBe("transformation_throttle");
  });

  it("rows 002-32, 002-33: unknown-task-duration and target-duration, under the keys that distributed reads", () => {
    expect(plan().dask).toMatchObject({
      "distributed.scheduler.unknown-task-duration": "1m",
      "distributed.adaptive.target-duration": "10m",
    });
    const given = plan({ unknown_task_duration: "00:00:30", "target-duration": "1h30m" });
    expect(given.dask).toMatchObject({
      "distributed.scheduler.unknown-task-duration": "30s",
      "distributed.adaptive.target-duration": "5400s",
    });
  });

  it("row 002-34: internal-port-range, else --port-range, becomes the workers' and nannies' options", () => {
    const portRange = { from: 8700, to: 8799 };
    const of = (range: string): string[] => [`--worker-port ${range}`, `--nanny-port ${range}`];
    expect(flags(plan({}, { portRange }))).toEqual(expect.arrayContaining(of("8700:8799")));
    expect(flags(plan({ "internal-port-range": "9000-9010" }, { portRange }))).toEqual(
      expect.arrayContaining(of("9000:9010")),
    );
    expect(flags(plan()).join()).not.toContain("port");
    for (const wrong of ["9000", "9010-9000", "0-10", "1-70000", 9000, "a-b"])
      expect(refusedWith({ "internal-port-range": wrong }).facts["key"]).toBe("internal-port-range");
  });

  it("rows 002-35, 002-36, 002-37: lifetime is walltime - stagger - 1m, in whole seconds", () => {
    const keys = (made: Plan): unknown[] => [
      made.dask["distributed.worker.lifetime.duration"],
      made.dask["distributed.worker.lifetime.stagger"],
    ];
    expect(keys(plan())).toEqual(["3300s", "4m"]);
    expect(keys(plan({ "lifetime-stagger": "30s" }))).toEqual(["3510s", "30s"]);
    expect(keys(plan({ lifetime: "20 minutes" }))).toEqual(["20 minutes", "4m"]);
    expect(flags(plan())).toEqual(expect.arrayContaining(["--lifetime 3300s", "--lifetime-stagger 4m"]));
    expect(plan().prologue.exports).toContain("export DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION=3300s");
    expect(plan().dask).not.toHaveProperty(["distributed.worker.lifetime"]);
    expect(plan({ walltime: "1-00:00:00" }).jobqueue["walltime"]).toBe("24:00:00");
    expect(plan({ walltime: "90m" }).managers["lsf"]).toEqual({ walltime: "01:30" });
  });

  it("row 002-36: a walltime that leaves no lifetime is refused, with the smallest that works", () => {
    const error = refusedWith({ walltime: "00:05:00" });
    expect(error.facts["key"]).toBe("walltime");
    expect(error.message).toContain("00:05:00");
    expect(error.message).toContain("lifetime-stagger (4m)");
    expect(error.hint).toContain("00:05:01");
    expect(plan({ walltime: "00:05:01" }).dask["distributed.worker.lifetime.duration"]).toBe("1s");
    // with a lifetime of its own nothing is subtracted
    expect(plan({ walltime: "00:05:00", lifetime: "20s" }).dask["distributed.worker.lifetime.duration"]).toBe("20s");
    expect(warnings({ lifetime: "20s" })).toEqual([expect.stringContaining("20s ± 240s")]);
    expect(warnings({ lifetime: "1h" })).toEqual([expect.stringContaining("longer than walltime")]);
  });

  it("rows 002-38, 002-57: dask-resources, as a key, a variable and an option that replaces what is configured", () => {
    const given = plan({ "dask-resources": { S: 6, GPU: 0.5 } });
    expect(given.dask["distributed.worker.resources"]).toEqual({ S: 6, GPU: 0.5 });
    expect(flags(given)).toContain("--resources 'S=6,GPU=0.5'");
    expect(plan().dask).not.toHaveProperty(["distributed.worker.resources"]);
    for (const wrong of ["S=6", { "S T": 1 }, { S: "6" }, { S: -1 }, [1]])
      expect(refusedWith({ "dask-resources": wrong }).facts["key"]).toBe("dask-resources");
  });

  it("row 002-43: extra_dask_config is a dict of texts, set as Dask reads variables; it wins over the rest", () => {
    const given = plan({ extra_dask_config: { "distributed.worker.daemon": "True", "array.slicing": "x" } });
    expect(given.texts).toEqual({ "distributed.worker.daemon": "True", "array.slicing": "x" });
    expect(given.dask).not.toHaveProperty(["distributed.worker.daemon"]);
    expect(given.prologue.exports).toContain("export DASK_DISTRIBUTED__WORKER__DAEMON=True");
    for (const [wrong, key] of [
      ["x", "extra_dask_config"],
      [{ "distributed.worker.daemon": false }, "extra_dask_config"],
      [{ "a b": "x" }, "extra_dask_config"],
      [{ "distributed.worker.lifetime": "20s" }, "extra_dask_config.distributed.worker.lifetime"],
      [{ "distributed.worker.Resources": "x" }, "extra_dask_config.distributed.worker.Resources"],
    ] as const)
      expect(refusedWith({ extra_dask_config: wrong }).facts["key"]).toBe(key);
  });

  it("row 002-45: ports and host are the scheduler's options", () => {
    expect(plan().jobqueue["scheduler-options"]).toEqual({ port: 8700, dashboard_address: ":8701" });
    expect(plan({}, { host: "10.0.0.1" }).jobqueue["scheduler-options"]).toEqual({
      port: 8700,
      dashboard_address: "10.0.0.1:8701",
      host: "10.0.0.1",
    });
    expect(plan({}, { host: "10.0.0.1" }).local).toMatchObject({
      host: "10.0.0.1",
      scheduler_port: 8700,
      n_workers: 0,
    });
  });

  it("row 002-50: on OAR memory_per_core_property_name cannot be left out", () => {
    expect(plan().missing).toEqual({ oar: "memory_per_core_property_name" });
    expect(plan({ memory_per_core_property_name: "memcore" }).missing).toEqual({});
  });

  it("row 002-51: interactive keeps one job", () => {
    expect(plan().minimum).toBe(0);
    expect(plan({ interactive: true }).minimum).toBe(1);
    expect(refusedWith({ interactive: 1 }).facts["key"]).toBe("interactive");
  });

  it("row 002-62: job_cpu is Slurm's own", () => {
    expect(plan({ job_cpu: 8 }).managers["slurm"]).toEqual({ "job-cpu": 8 });
    expect(plan({ job_cpu: 8 }).jobqueue).not.toHaveProperty("job-cpu");
    expect(flags(plan({ job_cpu: 8 }))[0]).toBe("--nthreads 12");
  });

  it("what cures Dask's own troubles is set: ghosts, orphans, and a name to find jobs by", () => {
    expect(plan().dask["distributed.deploy.lost-worker-timeout"]).toBe("1s");
    expect(plan().jobqueue).toMatchObject({ "death-timeout": 60, name: "dask-0a1b2c3d" });
  });

  it("security: all of Dask's connections are encrypted, here and in workers", () => {
    const { dask, prologue } = plan({ security: true }, { tls: { certificate: "/s/c.pem", key: "/s/k.pem" } });
    expect(dask["distributed.comm.require-encryption"]).toBe(true);
    expect(prologue.exports).toContain("export DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY=/s/k.pem");
  });
});

describe("parameters that are wrong", () => {
  it("`parameters` must be a dict", () => {
    for (const wrong of [undefined, null, [], "x", 1]) {
      const error = refusal(wrong);
      expect(error.facts["key"]).toBe("parameters");
      expect(error.hint).toContain('"walltime"');
    }
  });

  it("each type says what it wants, and null is as good as nothing", () => {
    const wrong: [string, unknown][] = [
      ["cores", "4"],
      ["cores", 0],
      ["memory", 8],
      ["memory", "lots"],
      ["walltime", "1:30"],
      ["walltime", 3600],
      ["walltime", "00:00:00"],
      ["tmpdir", "/my dir"],
      ["lifetime", "soon"],
      ["lifetime", "0s"],
      ["job_cpu", 1.5],
      ["security", "yes"],
      ["maximum_jobs", -1],
    ];
    for (const [name, value] of wrong) expect(refusedWith({ [name]: value }).facts["key"]).toBe(name);
    expect(plan({ partition: null }).jobqueue).not.toHaveProperty("queue");
    expect(refusedWith({ lifetime_stagger: "1m", "lifetime-stagger": "1m" }).message).toContain("twice");
  });

  it("what is not known is warned of, with what was meant", () => {
    expect(warnings({ maximum_job: 4, queue: "fast" })).toEqual([
      expect.stringContaining("maximum_jobs?"),
      expect.stringContaining("'queue'"),
    ]);
  });

  it("every parameter of the table that must be given has an example, and every default passes its own check", () => {
    expect(PARAMETERS.length).toBe(new Set(PARAMETERS.map(({ name }) => name)).size);
    expect(() => plan()).not.toThrow();
  });
});
