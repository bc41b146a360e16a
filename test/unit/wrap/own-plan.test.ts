import { describe, expect, it } from "vitest";
import { SlipwayError } from "../../../src/errors.ts";
import { type OwnPlan, ownPlanOf, type OwnPlanOptions, type QueueFacts } from "../../../src/wrap/plan/own-plan.ts";
import { bytesOf } from "../../../src/wrap/plan/values.ts";

const QUEUE: QueueFacts = { walltime: 3600, cores: 4, memory: 8e9, nodes: 1, max: 10 };
const OPTIONS: OwnPlanOptions = { queue: QUEUE, ports: { scheduler: 8700, dashboard: 8701 } };
const plan = (parameters: object = {}, options: Partial<OwnPlanOptions> = {}): OwnPlan =>
  ownPlanOf(parameters, { ...OPTIONS, ...options }).plan;
const option = ({ worker }: OwnPlan, name: string): string | undefined => {
  const at = worker.options.indexOf(name);
  return at < 0 ? undefined : worker.options[at + 1];
};

describe("what parameters mean to a queue of Slipway's own", () => {
  it("what the queue gives need not be given, and what is given wins", () => {
    expect(plan()).toMatchObject({
      queue: { walltime: "01:00:00", cores: 4, memory: "8000000000B" },
      minimum: 0,
      maximum: 10,
      perJob: 1,
    });
    expect(
      plan({ walltime: "00:10:00", cores: 2, memory: "1GiB", "maximum-jobs": 3, interactive: true }),
    ).toMatchObject({
      queue: { walltime: "00:10:00", cores: 2, memory: "1073741824B" },
      minimum: 1,
      maximum: 3,
    });
  });

  it("names what neither gives; a walltime may be missing", () => {
    const bare = { queue: { nodes: 1, max: 1 } };
    expect(() => plan({}, bare)).toThrow(
      expect.objectContaining({ facts: expect.objectContaining({ key: "cores, memory" }) }),
    );
    const given = plan({ cores: 1, memory: "1GB" }, bare);
    expect(given.queue).not.toHaveProperty("walltime");
    expect(given.fleet).toEqual({ strategy: "auto", parallelism: 1, idle: 10 });
  });

  it("each parameter about jobs becomes a key of the queue", () => {
    const { queue } = plan({
      tmpdir: "/fast/tmp",
      partition: "qcpu",
      project: "capsid",
      job_extra_directives: ["--exclusive"],
      job_script_prologue: ["module load python"],
      memory_per_core_property_name: "memcore",
      job_cpu: 8,
    });
    expect(queue).toEqual({
      walltime: "01:00:00",
      cores: 8,
      memory: "8000000000B",
      scratch: "/fast/tmp",
      partition: "qcpu",
      account: "capsid",
      options: ["--exclusive"],
      prologue: ["module load python"],
      "memory-per-core-property-name": "memcore",
    });
    // a worker takes all that its job has, with the threads that cores say
    const reserved = plan({ job_cpu: 8 });
    expect([reserved.worker.cpus, option(reserved, "--nthreads")]).toEqual([8, "12"]);
    expect(plan({ memory_per_core_property_name: "not_applicable" }).queue["memory-per-core-property-name"]).toBe(
      "none",
    );
    // the queue's own stay where nothing is given
    expect(Object.keys(plan().queue)).toEqual(["walltime", "cores", "memory"]);
  });

  it("lifetime ± stagger is when pilots take nothing new; without either a fleet has its own rule", () => {
    expect(plan().fleet).not.toHaveProperty("lifetime");
    expect(plan({ lifetime: "20s", "lifetime-stagger": "1s" }).fleet).toMatchObject({ lifetime: 19, stagger: 2 });
    expect(plan({ "lifetime-stagger": "5m" }).fleet).toMatchObject({ lifetime: 3600 - 300 - 60 - 300, stagger: 600 });
    // never so wide that some end as they start
    expect(plan({ lifetime: "20s", "lifetime-stagger": "4m" }).fleet).toMatchObject({ lifetime: 10, stagger: 20 });
    expect(() => plan({ walltime: "00:04:00", "lifetime-stagger": "4m" })).toThrow(SlipwayError);
    expect(() => plan({ lifetime: "0s" })).toThrow(/lifetime/);
  });

  it("a head in a pilot is no reason for one more pilot, unless there are very many", () => {
    const roundUp = (value: number): number => Math.ceil(value - 1e-9);
    const parallelism = Number(plan({}, { isHeadInPilot: true }).fleet["parallelism"]);
    for (const workers of [1, 2, 10, 100, 899]) expect(roundUp((workers + 1 / 1024) * parallelism)).toBe(workers);
    expect(roundUp((1 / 1024) * parallelism)).toBe(1);
    expect(plan({ maximum_jobs: 900 }, { isHeadInPilot: true }).fleet["parallelism"]).toBe(1);
  });
});

describe("what parameters mean to workers", () => {
  it("options of dask worker, and variables as on the other path; nothing of a lifetime, which its pilot knows", () => {
    const made = plan(
      { "dask-resources": { S: 6 }, transformation_throttle: 2, "internal-port-range": "9000-9099" },
      { interface: "ib0" },
    );
    expect([option(made, "--nthreads"), option(made, "--memory-limit"), option(made, "--death-timeout")]).toEqual([
      "8",
      "8000000000",
      "60",
    ]);
    expect(["--worker-port", "--nanny-port", "--resources", "--interface"].map((name) => option(made, name))).toEqual([
      "9000:9099",
      "9000:9099",
      "S=6",
      "ib0",
    ]);
    expect(made.worker.variables).toMatchObject({
      SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: "2",
      PYTHON_CPU_COUNT: "4",
      DASK_DISTRIBUTED__WORKER__DAEMON: "False",
      DASK_DISTRIBUTED__SCHEDULER__UNKNOWN_TASK_DURATION: "1m",
      DASK_DISTRIBUTED__WORKER__RESOURCES: "{'S': 6}",
    });
    const names = Object.keys(made.worker.variables).join(" ");
    expect(names).not.toMatch(/LIFETIME|TEMPORARY/);
  });

  it("extra_dask_config reaches scheduler and workers; tls is everybody's", () => {
    const made = plan(
      { extra_dask_config: { "distributed.scheduler.allowed-failures": "0", "array.chunk-size": "1MiB" } },
      { tls: { certificate: "/c.pem", key: "/k.pem" } },
    );
    expect(made.texts).toEqual({ "distributed.scheduler.allowed-failures": "0", "array.chunk-size": "1MiB" });
    expect(made.worker.variables).toMatchObject({
      DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES: "0",
      DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION: "True",
      DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY: "/k.pem",
    });
    expect(made.dask["distributed.comm.tls.scheduler.cert"]).toBe("/c.pem");
    expect(made.targetDuration).toBe("10m");
  });

  it("sizes are read as Dask reads them", () => {
    expect(["1kB", "1KiB", "500MB", "1.5 GiB", "7B"].map(bytesOf)).toEqual([1000, 1024, 5e8, 1.5 * 2 ** 30, 7]);
  });
});
