import { existsSync } from "node:fs";
import { chmod, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCommands } from "../../src/managers/commands.ts";
import { pbsDirectives } from "../../src/managers/pbs/directives.ts";
import { pbsTask } from "../../src/managers/pbs/task.ts";
import { taskJobName } from "../../src/managers/task-job-name.ts";
import { pbsIsTransient } from "../../src/managers/pbs/driver/failures.ts";
import { createPbsProvider } from "../../src/managers/pbs/driver/provider.ts";
import type { PilotAsk } from "../../src/managers/manager.ts";
import type { PbsQueue } from "../../src/managers/pbs/keys.ts";
import type { JobStatus, Provider } from "../../src/managers/provider.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { scriptRequest } from "../contract/provider-contract.ts";
import { until } from "../until.ts";
import { startPbs, type PbsLab } from "./lab/pbs.ts";

/** Every end of a job as the PBS driver reports it, and what it says when there is nothing to report. */

let lab: PbsLab;
let provider: Provider;
let jobs = 0;

beforeAll(async () => {
  lab = await startPbs({ nodes: 3, history: true, copyMs: 60_000 });
  const run = createCommands({ env: lab.env, isTransient: pbsIsTransient, pausesMs: [50] });
  provider = createPbsProvider({ run });
});
afterAll(() => lab.stop());

const submit = async (
  line: string,
  ask: Partial<PilotAsk<PbsQueue>> = {},
  options: readonly string[] = [],
): Promise<{ id: string; directory: string }> => {
  jobs += 1;
  const directory = join(lab.root, `job-${jobs}`);
  await mkdir(directory);
  await chmod(directory, 0o777);
  const job = await scriptRequest({ name: `ends-${jobs}`, directory, line, options }, pbsDirectives, ask);
  return { id: (await provider.submit(job)).nativeId, directory };
};
const statusOf = async (id: string): Promise<JobStatus> => (await provider.poll([id])).get(id)!;
const reaches = (id: string, ...states: JobStatus["state"][]): Promise<JobStatus> =>
  until(`job ${id} to be ${states.join(" or ")}`, async () => {
    const status = await statusOf(id);
    return states.includes(status.state) ? status : undefined;
  });

describe("tasks as jobs on PBS", () => {
  it("row 001-2: ranks of a task are spread over nodes, with what its keys say of each chunk", async () => {
    jobs += 1;
    const directory = join(lab.root, `job-${jobs}`);
    await mkdir(directory);
    const refuse = (key: string, detail: string): never => {
      throw new Error(`${key} ${detail}`);
    };
    const keys = pbsTask.read({ select: "9:ncpus=9", place: "scatter:excl" }, refuse);
    const name = taskJobName(pbsTask, "repo:", "fit/3 ü", "0123456789ab");
    const job = await scriptRequest<PbsQueue>(
      { name, directory, line: `cat "$PBS_NODEFILE" >${directory}/ranks`, options: [] },
      (pilot) =>
        pbsTask.directives({
          ...pilot,
          keys,
          others: {},
          licences: new Set(),
          memory: 2 ** 20,
          ranks: { count: 3, nodes: 2, by: "mpiexec" },
        }),
    );
    const { nativeId } = await provider.submit(job);
    expect(await reaches(nativeId, "ended")).toMatchObject({ outcome: "done" });
    const ranks = (await readFile(join(directory, "ranks"), "utf8")).trim().split("\n");
    expect([ranks.length, new Set(ranks).size]).toEqual([3, 2]);
    expect(name).toBe("repo.fit.3_u-0123456789ab");
  });
});

describe("ends of jobs on PBS", () => {
  it("its walltime is over: timeout, with PBS's own words", async () => {
    const { id } = await submit("sleep 1000", { walltime: 1 });
    expect(await reaches(id, "ended")).toMatchObject({
      outcome: "timeout",
      reason: expect.stringContaining("exceeded resource walltime"),
    });
  });

  it("its node dies: lost; one that may run again is queued again, whatever its last status", async () => {
    const on = { own: { selectOptions: "host=n3" } };
    const once = await submit("sleep 1000", on);
    const again = await submit("sleep 1000", { ...on, skipOptions: ["-r n"], options: ["-r y"] });
    for (const { id } of [once, again]) expect((await reaches(id, "active")).hosts).toEqual(["n3"]);
    await lab.killNode("n3");
    expect(await reaches(once.id, "ended")).toMatchObject({ outcome: "lost" });
    const waiting = await reaches(again.id, "queued");
    expect([waiting.outcome, waiting.exitCode, waiting.hosts]).toEqual([undefined, undefined, undefined]);
    await lab.startNode("n3");
    await reaches(again.id, "active");
    await provider.cancel([again.id]);
    expect(await reaches(again.id, "ended")).toMatchObject({ outcome: "cancelled" });
  });

  it("what it depends on failed: it never started, although its substate is that of success", async () => {
    const first = await submit("exit 1");
    const second = await submit("true", {}, ["-W", `depend=afterok:${first.id}`]);
    expect(await reaches(second.id, "ended")).toMatchObject({
      outcome: "start-failed",
      reason: expect.stringContaining(`afterok:${first.id}`),
    });
  });

  it("its output is there when it has ended, and not before: while PBS copies it, the job is active", async () => {
    const stdout = join(lab.root, "not-yet", "out");
    const { id } = await submit("echo said; exit 4", { stdout });
    const copying = await until("PBS to copy", async () => {
      const status = await statusOf(id);
      return status.raw === "E" ? status : undefined;
    });
    expect([copying.state, copying.outcome, copying.exitCode]).toEqual(["active", undefined, undefined]);
    expect(await provider.list("ends-")).toContainEqual(expect.objectContaining({ nativeId: id }));
    // PBS retries until it exists
    await mkdir(dirname(stdout));
    expect(await reaches(id, "ended")).toMatchObject({ raw: "F", outcome: "failed", exitCode: 4 });
    expect(await readFile(stdout, "utf8")).toBe("said\n");
  });

  it("deleted, and its script ended with 0: cancelled", async () => {
    const { id, directory } = await submit(
      'trap "exit 0" TERM; touch "$PBS_O_WORKDIR/begun"; while :; do sleep 0.05; done',
    );
    await until("the trap", () => existsSync(join(directory, "begun")));
    await lab.run(["qdel", id]);
    expect(await reaches(id, "ended")).toMatchObject({ raw: "F", outcome: "cancelled", exitCode: 0 });
  });

  it("it can never run: queued, with the reason", async () => {
    const { id } = await submit("true", { cores: 99 });
    await until("the reason", async () => (await statusOf(id)).reason?.startsWith("Can Never Run"));
    expect((await statusOf(id)).state).toBe("queued");
    await provider.cancel([id]);
    expect(await reaches(id, "ended")).toMatchObject({ outcome: "cancelled" });
  });

  it("a server that cannot be reached ends nothing, and takes nothing that would be taken twice", async () => {
    const { id } = await submit("sleep 1000");
    await reaches(id, "active");
    await lab.cutServer();
    await expect(provider.poll([id])).rejects.toMatchObject({ code: "cluster-unreachable" });
    await expect(provider.list("ends-")).rejects.toMatchObject({ code: "cluster-unreachable" });
    await expect(submit("true")).rejects.toMatchObject({ code: "cluster-unreachable" });
    await lab.mendServer();
    expect((await statusOf(id)).state).toBe("active");
    expect((await provider.list("ends-")).map(({ nativeId }) => nativeId)).toEqual([id]);
    await provider.cancel([id]);
    await reaches(id, "ended");
  });

  it("a submission leaves no process behind that holds the script's path, as one under way does", async () => {
    const { id, directory } = await submit("sleep 1000", {}, ["-h"]);
    const holding = (await processesUnder(lab.root)).filter(({ command }) => command.includes(directory));
    expect(holding).toEqual([]);
    await provider.cancel([id]);
  });

  it("directives: chunks on nodes of their own, project, output where it was asked for, readable for others", async () => {
    const { id, directory } = await submit('cat "$PBS_NODEFILE"; echo oops >&2', {
      nodes: 2,
      cores: 2,
      gpus: 1,
      memory: 100 * 1024 ** 2,
      account: "proj1",
      exclusive: true,
    });
    expect(await reaches(id, "ended")).toMatchObject({ outcome: "done", hosts: ["n1", "n2"] });
    expect(await readFile(join(directory, "stdout"), "utf8")).toBe("n1\nn2\n");
    expect(await readFile(join(directory, "stderr"), "utf8")).toBe("oops\n");
    const { stdout } = await lab.run(["qstat", "-x", "-f", id]);
    expect(stdout).toContain("place = scatter:excl");
    expect(stdout).toContain("project = proj1");
  });
});
