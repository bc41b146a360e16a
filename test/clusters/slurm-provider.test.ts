import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createCommands, type RunCommand } from "../../src/managers/commands.ts";
import type { PilotAsk } from "../../src/managers/manager.ts";
import type { SlurmQueue } from "../../src/managers/slurm/keys.ts";
import type { JobStatus, Provider } from "../../src/managers/provider.ts";
import { slurmDirectives } from "../../src/managers/slurm/directives.ts";
import { slurmTask } from "../../src/managers/slurm/task.ts";
import type { TaskAsk } from "../../src/managers/task-dialect.ts";
import { slurmIsTransient } from "../../src/managers/slurm/driver/failures.ts";
import { createSlurmProvider } from "../../src/managers/slurm/driver/provider.ts";
import { scriptRequest } from "../contract/provider-contract.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

const reason = skipReason({ accounting: true });
const MIB = 1024 * 1024;

/** What really happens to jobs on a Slurm, and what the provider makes of it. */
describe.skipIf(reason !== undefined)(`slurm provider${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let lab: SlurmLab;
  let directory: string;
  let provider: Provider;
  let jobs = 0;
  let timed: string;

  const create = (run: RunCommand = createCommands({ env: lab.env, isTransient: slurmIsTransient })): Provider =>
    createSlurmProvider({ run });

  const submit = async (
    line: string,
    ask: Partial<PilotAsk<SlurmQueue>> = {},
    more: { name?: string; user?: string } = {},
  ): Promise<string> => {
    const own = join(directory, String((jobs += 1)));
    await mkdir(own);
    await chmod(own, 0o777);
    const job = { name: more.name ?? `slw-${jobs}`, directory: own, line, options: [] };
    const request = await scriptRequest(job, slurmDirectives, { walltime: 1800, ...ask });
    return (await provider.submit({ ...request, ...(more.user === undefined ? {} : { user: more.user }) })).nativeId;
  };

  /** A task's job: its keys as its author wrote them. */
  const submitTask = async (
    line: string,
    { keys = {}, ...ask }: Partial<TaskAsk<SlurmQueue>>,
    array?: number,
  ): Promise<{ id: string; elements: readonly string[]; directory: string }> => {
    const own = join(directory, String((jobs += 1)));
    await mkdir(own);
    const refuse = (key: string, detail: string): never => {
      throw new Error(`${key} ${detail}`);
    };
    const task = {
      keys: slurmTask.read(keys, refuse),
      others: {},
      licences: new Set(await provider.licences!()),
      ...ask,
    };
    const request = await scriptRequest<SlurmQueue>(
      { name: slurmTask.jobName(`slw-${jobs}: a task/ü%`), directory: own, line, options: [] },
      (pilot) => slurmTask.directives({ ...pilot, ...task, ...(array === undefined ? {} : { array }) }),
    );
    const { nativeId, elements = [] } = await provider.submit({
      ...request,
      ...(array === undefined ? {} : { array }),
    });
    return { id: nativeId, elements, directory: own };
  };

  const reaches = (id: string, ...states: JobStatus["state"][]): Promise<JobStatus> =>
    until(`job ${id} to be ${states.join(" or ")}`, async () => {
      const status = (await provider.poll([id])).get(id)!;
      return states.includes(status.state) ? status : undefined;
    });

  const shown = async (id: string): Promise<string> => (await lab.run(["scontrol", "-o", "show", "job", id])).stdout;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "slw-"));
    await chmod(directory, 0o755);
    lab = await startSlurm({
      nodes: 2,
      accounting: true,
      cgroups: true,
      preemption: true,
      users: ["alice"],
      credentialSeconds: 5,
      extra: ['PriorityParameters="time_origin=2024-02-03 04:05+01:00,nice_factor=0.25"'],
    });
    provider = create(lab.run);
    // the controller checks it twice a minute: that time passes during the other tests
    timed = await submit("sleep 1000", { walltime: 60, partition: "plain" }, { name: "timed" });
    await reaches(timed, "active");
    expect((await lab.run(["scontrol", "update", `jobid=${timed}`, "endtime=now+2"])).stderr).toBe("");
  });
  afterEach(async () => {
    await provider.cancel((await provider.list("slw-")).map(({ nativeId }) => nativeId));
  });
  afterAll(async () => {
    await lab?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it("row 001-59, rows 001-69 to 001-76, row 001-79: what a task asks for by its keys, Slurm gives", async () => {
    const [here, other] = lab.nodes;
    const { id } = await submitTask("sleep 1000", {
      cores: 2,
      memory: 200 * MIB,
      walltime: 3660,
      partition: "batch",
      account: "proj",
      keys: {
        partition: "short,batch",
        qos: "low",
        features: "common",
        gres: "gpu:a100:1",
        licence: "foo:1",
        excludes: other!,
        nodes: here!,
      },
      others: { bar: 20_000 },
    });
    expect(await reaches(id, "active", "ended")).toMatchObject({ state: "active", hosts: [here] });
    const text = await shown(id);
    for (const words of [
      "QOS=low",
      "Features=common",
      "Licenses=bar:2,foo:1",
      `ReqNodeList=${here}`,
      `ExcNodeList=${other}`,
    ])
      expect(text.replace("foo:1,bar:2", "bar:2,foo:1")).toContain(words);
    for (const words of ["gres/gpu=1", "MinMemoryNode=200M", "CPUs/Task=2", "Requeue=0", "Account=proj"])
      expect(text).toContain(words);
    await expect(submitTask("true", { keys: { reserv: "nosuch" } })).rejects.toMatchObject({ code: "cluster-refused" });
    await expect(submitTask("true", { others: { nosuch: 10_000 } })).rejects.toMatchObject({ code: "cluster-refused" });
  });

  it("row 001-77, row 001-78: keys with an index make a heterogeneous job; its command runs in part 0", async () => {
    const { id, directory: own } = await submitTask('hostname >where; echo "$SLURM_HET_SIZE" >>where', {
      keys: { nodes0: lab.nodes[1]!, partition1: "plain", licence1: "foo:1" },
    });
    expect(await reaches(id, "ended")).toMatchObject({ outcome: "done" });
    expect((await readFile(join(own, "where"), "utf8")).split("\n").slice(0, 2)).toEqual([lab.nodes[1], "2"]);
  });

  it("ranks of a task are Slurm's tasks, each with its cores, memory and GPUs", async () => {
    const { id, directory: own } = await submitTask(
      "srun sh -c 'echo $SLURM_PROCID $(hostname) $CUDA_VISIBLE_DEVICES' >ranks",
      {
        cores: 1,
        memory: 60 * MIB,
        gpus: 1,
        ranks: { count: 3, nodes: 2, by: "srun" },
      },
    );
    expect(await reaches(id, "ended")).toMatchObject({ outcome: "done" });
    const ranks = (await readFile(join(own, "ranks"), "utf8")).trim().split("\n").toSorted();
    expect(ranks.map((line) => line.split(" ").length)).toEqual([3, 3, 3]);
    expect(new Set(ranks.map((line) => line.split(" ")[1])).size).toBe(2);
  });

  it("an array: each element has its output, and Slurm says how large one may be", async () => {
    expect(await provider.describe()).toMatchObject({ mostInArray: 1001 });
    const { elements, directory: own } = await submitTask('echo "$SLURM_ARRAY_TASK_ID"', {}, 2);
    for (const id of elements) expect(await reaches(id, "ended")).toMatchObject({ outcome: "done" });
    for (const element of [0, 1]) expect(await readFile(join(own, `stdout.${element}`), "utf8")).toBe(`${element}\n`);
  });

  it("row 001-64, rows 001-66 to 001-68: knows the licences, the rules of nice values, and changes them", async () => {
    expect((await provider.licences!()).toSorted()).toEqual(["bar", "foo"]);
    const later = { options: ["--begin=now+1hour"] };
    const first = await submitTask("true", { ...later, nice: 30 });
    const { elements } = await submitTask("true", { ...later, nice: 5000 }, 2);
    const { priority, parameters } = await provider.niceRules!();
    expect(parameters).toEqual({ time_origin: "2024-02-03 04:05+01:00", nice_factor: "0.25" });
    expect(priority).toBeGreaterThanOrEqual(1000);
    const nices = async (): Promise<string[]> =>
      (await lab.run(["squeue", "-h", "-r", "--states=PENDING", "-O", "ArrayTaskID:|,Nice:"])).stdout
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "")
        .toSorted();
    expect(await nices()).toEqual(["0|5000", "1|5000", "N/A|30"]);
    const ended = await submit("true");
    await reaches(ended, "ended");
    await provider.renice!([
      { nativeId: first.id, nice: 7 },
      { nativeId: elements[1]!, nice: 7 },
      { nativeId: ended, nice: 7 },
      { nativeId: "999999", nice: 7 },
    ]);
    expect(await nices()).toEqual(["0|5000", "1|7", "N/A|7"]);
    await provider.renice!([]);
  });

  it("asks for all that a pilot can ask for, and Slurm gives it", async () => {
    const id = await submit("sleep 1000", {
      nodes: 2,
      cores: 2,
      memory: 300 * MIB,
      gpus: 2,
      partition: "short",
      account: "proj",
      qos: "low",
      constraint: "common&a100",
      walltime: 301,
      exclusive: true,
      options: ["--comment='two words'"],
    });
    const status = await reaches(id, "active", "ended");
    expect(status).toMatchObject({ state: "active", hosts: lab.nodes.slice(0, 2) });
    const text = await shown(id);
    for (const words of [
      "NumNodes=2",
      "CPUs/Task=2",
      "MinMemoryNode=300M",
      "gres/gpu=",
      "Partition=short",
      "Account=proj",
      "QOS=low",
      "Features=common&a100",
      "TimeLimit=00:06:00",
      "Requeue=0",
      "Comment=two words",
    ])
      expect(text).toContain(words);
    await provider.cancel([id]);
    expect(await reaches(id, "ended")).toMatchObject({ outcome: "cancelled" });
  });

  it("starts a heterogeneous job of parts in two partitions, in another's name", async () => {
    const parts = [
      { features: "common", licence: "foo:1" },
      { partition: "big", gres: "gpu:a100:3" },
    ];
    const id = await submit("sleep 1000", { own: { parts } }, { user: "alice" });
    expect(await reaches(id, "active", "ended")).toMatchObject({ state: "active" });
    const text = await shown(id);
    expect(text).toContain("HetJobOffset=1");
    expect(text).toContain("Licenses=foo:1");
    expect(text).toContain("Partition=big");
    expect(text).toContain("UserId=alice");
    await provider.cancel([id]);
    await reaches(id, "ended");
  });

  it("lets no variable of the server's environment overrule the script or the listing", async () => {
    const variables = {
      SBATCH_PARTITION: "nowhere",
      SQUEUE_PARTITION: "plain",
      SBATCH_TIMELIMIT: "1",
      SLURM_CLUSTERS: "x",
    };
    Object.assign(process.env, variables);
    try {
      const id = await submit("sleep 1000", { partition: "high" });
      expect(await reaches(id, "active", "ended")).toMatchObject({ state: "active" });
      expect((await provider.list("slw-")).map(({ nativeId }) => nativeId)).toEqual([id]);
      await provider.cancel([id]);
      await reaches(id, "ended");
    } finally {
      for (const name of Object.keys(variables)) delete process.env[name];
    }
  });

  /** While the controller does not answer, the provider must not say that anything has ended. */
  const isNotFooled = async (id: string): Promise<void> => {
    // how long a command tries to reach its controller
    const env = { SLURM_CONF: join(directory, "slurm.conf") };
    const settings = await readFile(lab.env["SLURM_CONF"]!, "utf8");
    await writeFile(env.SLURM_CONF, settings.replace(/MessageTimeout=.*/, "MessageTimeout=2"));
    const impatient = create(createCommands({ env, isTransient: slurmIsTransient, pausesMs: [], mostAtOnce: 9 }));
    const request = await scriptRequest({ name: "slw-x", directory, line: "true", options: [] }, slurmDirectives);
    const answers = [
      impatient.poll([id]),
      impatient.list("slw-"),
      impatient.describe(),
      impatient.submit(request),
      impatient.cancel([id]),
    ];
    for (const { status, reason } of (await Promise.allSettled(answers)) as PromiseRejectedResult[]) {
      expect(status).toBe("rejected");
      expect(reason).toMatchObject({ code: "cluster-unreachable" });
    }
  };

  it("tells how each job ended, is not fooled by a controller that is silent, and tells the same when only the accounting remembers", async () => {
    const [first = "", second = ""] = lab.nodes;
    const ids = {
      timeout: timed,
      done: await submit("true"),
      failed: await submit("exit 3"),
      killed: await submit("kill -9 $$"),
      "out-of-memory": await submit(`head -c 300000000 /dev/zero | tail >/dev/null`, { memory: 30 * MIB }),
      "start-failed": await submit("true", { stdout: "/no/such/place/out" }),
      lost: await submit("sleep 1000", { options: [`--nodelist=${second}`] }),
      cancelled: await submit("sleep 1000", { options: [`--nodelist=${first}`] }),
      preempted: await submit("sleep 1000", { partition: "big", qos: "low", cores: 2 }),
    };
    for (const name of ["lost", "cancelled", "preempted"] as const) await reaches(ids[name], "active");
    // the others may run on the node that goes down
    for (const name of ["timeout", "done", "failed", "killed", "out-of-memory", "start-failed"] as const)
      await reaches(ids[name], "ended");
    await lab.downNode(second);
    await provider.cancel([ids.cancelled]);
    const urgent = await submit("sleep 1000", { partition: "big", qos: "urgent", cores: 2 });

    const expected: Record<keyof typeof ids, Partial<JobStatus>> = {
      timeout: { outcome: "timeout" },
      done: { outcome: "done", exitCode: 0 },
      failed: { outcome: "failed", exitCode: 3 },
      killed: { outcome: "failed", signal: 9 },
      "out-of-memory": { outcome: "out-of-memory" },
      "start-failed": { outcome: "start-failed" },
      lost: { outcome: "lost" },
      cancelled: { outcome: "cancelled" },
      preempted: { outcome: "preempted" },
    };
    for (const [name, status] of Object.entries(expected))
      expect(await reaches(ids[name as keyof typeof ids], "ended"), name).toMatchObject(status);
    await lab.upNode(second);

    await lab.stopController();
    try {
      await isNotFooled(urgent);
      await lab.forgetJobs();
    } finally {
      await lab.startController();
    }
    expect((await lab.run(["squeue", "--states=all", "--noheader"])).stdout).toBe("");
    const successor = create();
    for (const [name, status] of Object.entries(expected)) {
      const id = ids[name as keyof typeof ids];
      // the accounting lags by seconds
      const told = await until(`the accounting to know ${name}`, async () => {
        const answer = (await successor.poll([id])).get(id)!;
        return answer.state === "ended" ? answer : undefined;
      });
      expect(told, name).toMatchObject(status);
    }
  });
});
