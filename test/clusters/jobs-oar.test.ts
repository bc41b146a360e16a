import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCommands } from "../../src/managers/commands.ts";
import { oarDirectives } from "../../src/managers/oar/directives.ts";
import { oarIsTransient } from "../../src/managers/oar/driver/failures.ts";
import { createOarProvider } from "../../src/managers/oar/driver/provider.ts";
import type { PilotAsk } from "../../src/managers/manager.ts";
import type { OarQueue } from "../../src/managers/oar/keys.ts";
import type { JobRequest, JobStatus, Provider } from "../../src/managers/provider.ts";
import { oarTask } from "../../src/managers/oar/task.ts";
import { taskJobName } from "../../src/managers/task-job-name.ts";
import { processesUnder } from "../cli/processes-under.ts";
import { scriptRequest } from "../contract/provider-contract.ts";
import { until } from "../until.ts";
import { skipReason, startOar, type OarLab } from "./lab/oar.ts";
import { becomeUser } from "./lab/users.ts";

const reason = skipReason();
const title = `OAR's jobs${reason === undefined ? "" : ` (skipped: ${reason})`}`;

/** What the driver says of every way in which a job on a real OAR can end, and what survives what. */
describe.skipIf(reason !== undefined)(title, () => {
  let lab: OarLab;
  let provider: Provider;
  let jobs = 0;
  const request = async (
    line: string,
    ask: Partial<PilotAsk<OarQueue>> = {},
    options: string[] = [],
  ): Promise<JobRequest> => {
    jobs += 1;
    const directory = join(lab.root, "jobs", String(jobs));
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0o777);
    const job = { name: `slw-${jobs}`, directory, line, options };
    // the driver runs as root, who may not submit
    return { ...(await scriptRequest(job, oarDirectives, ask)), user: lab.user };
  };
  const submit = async (...job: Parameters<typeof request>): Promise<string> =>
    (await provider.submit(await request(...job))).nativeId;
  const becomes = (id: string, states: readonly string[]): Promise<JobStatus> =>
    until(`job ${id} to be ${states.join(" or ")}`, async () => {
      const status = (await provider.poll([id])).get(id);
      return status !== undefined && states.includes(status.state) ? status : undefined;
    });
  const allEnded = (ids: readonly string[]): Promise<ReadonlyMap<string, JobStatus>> =>
    until("all to end", async () => {
      const answers = await provider.poll(ids);
      return [...answers.values()].every(({ state }) => state === "ended") ? answers : undefined;
    });

  beforeAll(async () => {
    lab = await startOar({ nodes: 2 });
    const run = createCommands({ isTransient: oarIsTransient, become: becomeUser });
    provider = createOarProvider({ run, memoryPerCoreProperty: "memcore" });
  });
  afterAll(async () => {
    const { root, bridge } = lab;
    await lab.stop();
    expect(existsSync(root)).toBe(false);
    expect(await processesUnder(root)).toEqual([]);
    expect((await readdir("/run/netns").catch(() => [])).filter((name) => name.startsWith(bridge))).toEqual([]);
  });

  it("says how each job ended, all asked about together", async () => {
    const cases: Record<string, [string, object]> = {
      missing: [await submit("/no/such/program"), { outcome: "failed", exitCode: 127 }],
      signal: [await submit("kill -SEGV $$"), { outcome: "failed", signal: 11 }],
      walltime: [await submit("sleep 1000", { walltime: 2 }), { outcome: "timeout", reason: /Elapsed/ }],
      output: [await submit("true", { stdout: "/no/such/out" }), { outcome: "start-failed", reason: /stdout/ }],
    };
    const removed = await submit("sleep 1000");
    await becomes(removed, ["active"]);
    await lab.run(["oardel", removed]);
    cases["administrator"] = [removed, { outcome: "cancelled", reason: /requested to frag/ }];
    const ended = await allEnded(Object.values(cases).map(([id]) => id));
    for (const [name, [id, expected]] of Object.entries(cases)) {
      const { reason: words, ...rest } = expected as { reason?: RegExp };
      expect([name, ended.get(id)]).toMatchObject([name, rest]);
      if (words !== undefined) expect(ended.get(id)?.reason).toMatch(words);
    }
  });

  it("runs over several nodes with memory asked as a property, in the job's directory, whatever the script's mode", async () => {
    const oar = { memoryPerCorePropertyName: "memcore", property: "memnode > 100" };
    const asked = await request('pwd; sort -u "$OAR_NODEFILE"', { nodes: 2, cores: 2, memory: 2 ** 30, own: oar });
    await chmod(asked.script!, 0o644);
    const { nativeId } = await provider.submit(asked);
    expect(await becomes(nativeId, ["ended"])).toMatchObject({ outcome: "done", hosts: ["n1", "n2"] });
    expect(await readFile(join(asked.directory, "stdout"), "utf8")).toBe(`${asked.directory}\nn1\nn2\n`);
  });

  it("refuses with OAR's words what could never run, root's jobs, and paths that its shell would read otherwise", async () => {
    const refusal = (words: string): object => ({
      code: "cluster-refused",
      facts: { detail: expect.stringContaining(words) },
    });
    const much = { memory: 2 ** 50, own: { memoryPerCorePropertyName: "memcore" } };
    await expect(submit("true", much)).rejects.toMatchObject(refusal("not enough resources"));
    const { user: _, ...asRoot } = await request("true");
    await expect(provider.submit(asRoot)).rejects.toMatchObject(refusal("root and oar users are not allowed"));
    await expect(provider.submit({ ...asRoot, script: "/tmp/$(touch x)" })).rejects.toMatchObject(
      refusal("characters"),
    );
  });

  it("row 001-2: what a task asks for by its keys, OAR gives; ranks are cores", async () => {
    const refuse = (key: string, detail: string): never => {
      throw new Error(`${key} ${detail}`);
    };
    const keys = oarTask.read({ properties: "network_address='n2'", types: "besteffort" }, refuse);
    jobs += 1;
    const directory = join(lab.root, "jobs", String(jobs));
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0o777);
    const name = taskJobName(oarTask, "repo:", "it's ü", "0123456789ab");
    const made = await scriptRequest<OarQueue>(
      { name, directory, line: 'sort -u "$OAR_NODEFILE" >nodes; wc -l <"$OAR_NODEFILE" >cores', options: [] },
      (pilot) =>
        oarTask.directives({
          ...pilot,
          own: { property: "drain='NO'", memoryPerCorePropertyName: "memcore" },
          keys,
          others: {},
          licences: new Set(),
          memory: 2 ** 20,
          ranks: { count: 2, by: "mpiexec" },
        }),
    );
    const { nativeId } = await provider.submit({ ...made, user: lab.user });
    expect(await provider.list("repo:it")).toEqual([{ name: "repo:it`s ü-0123456789ab", nativeId }]);
    expect((await allEnded([nativeId])).get(nativeId)).toMatchObject({ outcome: "done" });
    expect(await readFile(join(directory, "nodes"), "utf8")).toBe("n2\n");
    expect((await readFile(join(directory, "cores"), "utf8")).trim()).toBe("2");
    expect((await provider.describe()).mostInArray).toBeUndefined();
  });

  it("describes its largest node", async () => {
    expect(await provider.describe()).toMatchObject({
      version: expect.stringMatching(/^OAR 2\./),
      largest: { cpus: 40_000, mem: 8192 * 2 ** 20 },
    });
  });

  it("follows a job that could not start on a dead node to the one that OAR starts in its place", async () => {
    await lab.killNode("n1");
    const { nativeId } = await provider.submit(await request("true", { own: { property: "host = 'n1'" } }));
    const status = await becomes(nativeId, ["ended"]);
    expect(status).toMatchObject({ outcome: "lost", raw: "Error", successor: expect.stringMatching(/^\d+$/) });
    const successor = status.successor!;
    expect((await provider.poll([successor])).get(successor)?.state).toBe("queued");
    await lab.startNode("n1");
    expect(await becomes(successor, ["ended"])).toMatchObject({ outcome: "done" });
  });

  it("takes no answer for no jobs: jobs outlive the server and its database", async () => {
    const id = await submit("sleep 1000");
    await becomes(id, ["active"]);
    await lab.killServer();
    await lab.killDatabase();
    const run = createCommands({ isTransient: oarIsTransient, become: becomeUser, pausesMs: [], timeoutMs: 5000 });
    await expect(createOarProvider({ run }).poll([id])).rejects.toMatchObject({ code: "cluster-unreachable" });
    await lab.startDatabase();
    await lab.startServer();
    expect((await provider.poll([id])).get(id)).toMatchObject({ state: "active", hosts: [expect.any(String)] });
    await provider.cancel([id]);
    expect(await becomes(id, ["ended"])).toMatchObject({ outcome: "cancelled" });
  });
});
