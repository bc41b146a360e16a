import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, readdir } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCommands } from "../../src/managers/commands.ts";
import type { PilotAsk } from "../../src/managers/manager.ts";
import type { SgeQueue } from "../../src/managers/sge/keys.ts";
import type { JobRequest, JobStatus, Provider } from "../../src/managers/provider.ts";
import { sgeDirectives } from "../../src/managers/sge/directives.ts";
import { sgeIsTransient } from "../../src/managers/sge/driver/failures.ts";
import { createSgeProvider } from "../../src/managers/sge/driver/provider.ts";
import { sgeTask } from "../../src/managers/sge/task.ts";
import { taskJobName } from "../../src/managers/task-job-name.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { scriptRequest } from "../contract/provider-contract.ts";
import { until } from "../until.ts";
import { skipReason, startSge, type SgeLab } from "./lab/sge.ts";
import { becomeUser } from "./lab/users.ts";

const reason = skipReason();

/** What the driver says of every way in which a job on a real Grid Engine can end, and what survives what. */
const title = `Grid Engine's jobs${reason === undefined ? "" : ` (skipped: ${reason})`}`;

describe.skipIf(reason !== undefined)(title, () => {
  let lab: SgeLab;
  let provider: Provider;
  let jobs = 0;
  const create = (): Provider =>
    createSgeProvider({ run: createCommands({ env: lab.env, isTransient: sgeIsTransient, become: becomeUser }) });
  const request = async (
    line: string,
    ask: Partial<PilotAsk<SgeQueue>> = {},
    options: string[] = [],
  ): Promise<JobRequest> => {
    jobs += 1;
    const directory = join(lab.root, "jobs", String(jobs));
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0o777);
    return await scriptRequest({ name: `slw-${jobs}`, directory, line, options }, sgeDirectives, ask);
  };
  const submit = async (...job: Parameters<typeof request>): Promise<string> =>
    (await provider.submit(await request(...job))).nativeId;
  const becomes = (id: string, states: readonly string[], by = provider): Promise<JobStatus> =>
    until(`job ${id} to be ${states.join(" or ")}`, async () => {
      const status = (await by.poll([id])).get(id);
      return status !== undefined && states.includes(status.state) ? status : undefined;
    });
  const must = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await lab.run(argv);
    if (code !== 0) throw new Error(`${argv.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  };

  beforeAll(async () => {
    lab = await startSge({ nodes: 3, slots: 6, users: ["alice"] });
    provider = create();
  });
  afterAll(async () => lab.stop());

  it("says how each job ended, all asked about together", async () => {
    const cases: Record<string, [string, object]> = {
      missing: [await submit("/no/such/program"), { outcome: "failed", exitCode: 127 }],
      signal: [await submit("kill -SEGV $$"), { outcome: "failed", signal: 11 }],
      walltime: [await submit("sleep 1000", { walltime: 2 }), { outcome: "timeout" }],
      "exit 99": [await submit("exit 99"), { outcome: "failed", exitCode: 99 }],
    };
    const ids = Object.values(cases).map(([id]) => id);
    const ended = await until("all to end", async () => {
      const answers = await provider.poll(ids);
      return [...answers.values()].every(({ state }) => state === "ended") ? answers : undefined;
    });
    for (const [name, [id, expected]] of Object.entries(cases))
      expect([name, ended.get(id)]).toMatchObject([name, expected]);
  });

  it("shows a job in error with Grid Engine's reason, and as a failed start when it is deleted", async () => {
    const id = await submit("true", { stdout: "/no/such/directory/out" });
    const status = await until("the reason", async () => {
      const found = (await provider.poll([id])).get(id)!;
      return found.state === "held" && /open output file/.test(found.reason ?? "") ? found : undefined;
    });
    expect(status).toMatchObject({ raw: "Eqw", stuck: true });
    await provider.cancel([id]);
    expect(await becomes(id, ["ended"])).toMatchObject({
      outcome: "start-failed",
      reason: expect.stringContaining("output file"),
    });
  });

  it("refuses what could never run, and says why a job waits that can", async () => {
    const never = await request("true", { memory: 2 ** 40, own: { memResource: "mem_mb" } });
    await expect(provider.submit(never)).rejects.toMatchObject({
      code: "cluster-refused",
      facts: { detail: expect.stringContaining("no suitable queues") },
    });
    await must("qmod", "-d", "*");
    const id = await submit("true");
    await until("a reason", async () => (await provider.poll([id])).get(id)?.reason);
    expect((await provider.poll([id])).get(id)).toMatchObject({ state: "queued", raw: "qw" });
    const { partitions } = await provider.describe();
    expect(partitions?.map(({ name, isUp }) => [name, isUp])).toEqual([
      ["all.q", false],
      ["short.q", false],
    ]);
    await must("qmod", "-e", "*");
    expect(await becomes(id, ["ended"])).toMatchObject({ outcome: "done" });
    expect((await provider.describe()).partitions).toContainEqual({
      name: "short.q",
      isDefault: false,
      isUp: true,
      nodes: 3,
      cpusPerNode: 6,
      memoryPerNode: expect.any(Number),
      gpusPerNode: 2,
      gpuTypes: [],
      maxWalltime: 300,
    });
  });

  it("row 001-41, rows 001-47 to 001-57: what a task asks for by its keys, Grid Engine gives", async () => {
    jobs += 1;
    const directory = join(lab.root, "jobs", String(jobs));
    await mkdir(directory, { recursive: true });
    const refuse = (key: string, detail: string): never => {
      throw new Error(`${key} ${detail}`);
    };
    const keys = sgeTask.read({ hard: "-q all.q -l arch=lx-amd64", soft: "hostname=n2", prio: "-7" }, refuse);
    // the lab has no resource that counts cores: any that is counted does
    const own = { cpuResource: "gpus", memResource: "mem_mb", tmpResource: "tmp_mb", defaultPrio: -3 };
    const name = taskJobName(sgeTask, "repo:", "fit/3@x*?", "0123456789ab");
    const asked = await scriptRequest<SgeQueue>({ name, directory, line: "sleep 1000", options: [] }, (pilot) =>
      sgeTask.directives({
        ...pilot,
        own,
        keys,
        others: { num_proc: cpus().length * 10_000 },
        licences: new Set(),
        cores: 2,
        memory: 64 * 2 ** 20,
        tmp: 5 * 2 ** 20,
      }),
    );
    const { nativeId } = await provider.submit(asked);
    const shown = await must("qstat", "-j", nativeId);
    expect(shown).toMatch(/^job_name: +repo;fit\|3&x\+!-0123456789ab$/m);
    expect(shown).toMatch(/^priority: +-7$/m);
    expect(shown).toMatch(/^hard_queue_list: +all\.q$/m);
    expect(shown).toMatch(/^soft resource_list: +hostname=n2$/m);
    for (const request of ["gpus=2", "mem_mb=64", "tmp_mb=5", "arch=lx-amd64", `num_proc=${cpus().length}`])
      expect(/^hard resource_list:.*$/m.exec(shown)?.[0]).toContain(request);
    expect(await provider.list("repo;fit")).toEqual([{ name, nativeId }]);
    await provider.cancel([nativeId]);
    await becomes(nativeId, ["ended"]);
    expect(await provider.describe()).toMatchObject({ mostInArray: 75_000 });
  });

  it("ranks of a task share a parallel environment", async () => {
    jobs += 1;
    const directory = join(lab.root, "jobs", String(jobs));
    await mkdir(directory, { recursive: true });
    const asked = await scriptRequest<SgeQueue>(
      { name: `slw-${jobs}`, directory, line: 'echo "$NSLOTS" >slots', options: [] },
      (pilot) =>
        sgeTask.directives({
          ...pilot,
          own: { parallelEnvironment: "spread" },
          keys: {},
          others: {},
          licences: new Set(),
          cores: 2,
          ranks: { count: 3, by: "mpiexec" },
        }),
    );
    expect(await becomes((await provider.submit(asked)).nativeId, ["ended"])).toMatchObject({ outcome: "done" });
    expect(await readFile(join(directory, "slots"), "utf8")).toBe("6\n");
  });

  it("runs over several nodes, and tells the job's end from that of its parts", async () => {
    const line = [
      `for host in $(awk '{ print $1 }' "$PE_HOSTFILE"); do ${lab.bin}/qrsh -inherit -nostdin -V "$host" sh -c 'hostname; exit 4' & done`,
      "wait",
      "exit 0",
    ].join("\n");
    const sge = { parallelEnvironment: "spread", memResource: "mem_mb", hard: ["gpus=0"], soft: ["arch=lx-amd64"] };
    const asked = await request(line, { nodes: 3, cores: 1, memory: 2 ** 20, own: sge });
    const { nativeId } = await provider.submit(asked);
    expect(await becomes(nativeId, ["ended"])).toMatchObject({ outcome: "done", exitCode: 0 });
    const output = await readFile(join(asked.directory, "stdout"), "utf8");
    expect(output.split("\n").toSorted()).toEqual(["", "n1", "n2", "n3"]);
  });

  it("acts in another's name, and an heir of the driver too", async () => {
    const { nativeId } = await provider.submit({ ...(await request("id -un; sleep 1000")), user: "alice" });
    await becomes(nativeId, ["active"]);
    expect(await must("qstat", "-u", "alice")).toContain(nativeId);
    const heir = create();
    await becomes(nativeId, ["active"], heir);
    await heir.cancel([nativeId]);
    expect(await becomes(nativeId, ["ended"], heir)).toMatchObject({ outcome: "cancelled" });
    expect(await becomes(nativeId, ["ended"])).toMatchObject({ outcome: "cancelled" });
  });

  it("says of a job whose node died that it was lost, when the node is back", async () => {
    const asked = await request("echo begun; sleep 1000", { own: { hard: ["hostname=n2"] } });
    const { nativeId: id } = await provider.submit(asked);
    expect(await becomes(id, ["active"])).toMatchObject({ hosts: ["n2"] });
    // a node that dies before the job's first command puts the job back into the queue, and takes no other
    await until("its first command", async () =>
      (await readFile(join(asked.directory, "stdout"), "utf8").catch(() => "")).includes("begun"),
    );
    await lab.killNode("n2");
    expect((await provider.poll([id])).get(id)).toMatchObject({ state: "active" });
    await lab.startNode("n2");
    expect(await becomes(id, ["ended"])).toMatchObject({ outcome: "lost" });
  });

  it("leaves nothing behind", async () => {
    const other = await startSge({ nodes: 1 });
    const names = async (): Promise<string[]> => {
      const links = (await lab.run(["ip", "-o", "link"])).stdout;
      return [...(await readdir("/run/netns")), links].filter((text) => text.includes(other.bridge));
    };
    const asked = await request("sleep 54321", {}, []);
    const run = createCommands({ env: other.env });
    const { nativeId } = await createSgeProvider({ run }).submit(asked);
    await becomes(nativeId, ["active"], createSgeProvider({ run }));
    expect(await names()).not.toEqual([]);
    await other.stop();
    expect(existsSync(other.root)).toBe(false);
    expect(await names()).toEqual([]);
    expect(await processesUnder(other.root)).toEqual([]);
  });

  it("tells what an administrator deleted; jobs outlive the master, and commands wait for it", async () => {
    const [kept, deleted] = [await submit("sleep 1000"), await submit("sleep 1000")];
    for (const id of [kept, deleted]) await becomes(id, ["active"]);
    await must("qdel", deleted);
    expect(await becomes(deleted, ["ended"])).toMatchObject({ outcome: "cancelled" });
    await lab.killMaster();
    const impatient = createSgeProvider({ run: createCommands({ env: lab.env, pausesMs: [] }) });
    await expect(impatient.poll([kept])).rejects.toMatchObject({ code: "cluster-unreachable" });
    await expect(impatient.cancel([kept])).rejects.toMatchObject({ code: "cluster-unreachable" });
    await expect(impatient.submit(await request("true"))).rejects.toMatchObject({ code: "cluster-unreachable" });
    const [asked] = await Promise.all([provider.poll([kept]), lab.startMaster()]);
    expect(asked.get(kept)).toMatchObject({ state: "active" });
  });
});
