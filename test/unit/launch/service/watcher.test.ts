import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { apply } from "../../../../src/core/apply.ts";
import type { Event } from "../../../../src/core/events.ts";
import { NO_EFFECTS, createState } from "../../../../src/core/state.ts";
import { SlipwayError } from "../../../../src/errors.ts";
import { CommandError } from "../../../../src/managers/commands.ts";
import type { JobRequest, JobStatus, Provider } from "../../../../src/managers/provider.ts";
import type { Engine } from "../../../../src/server/engine.ts";
import type { LaunchCluster } from "../../../../src/launch/service/cluster.ts";
import { type OutputStore, createOutputStore } from "../../../../src/launch/service/output.ts";
import type { Storage } from "../../../../src/launch/service/storage.ts";
import { type Watcher, createWatcher } from "../../../../src/launch/service/watcher.ts";

/** A manager as data: what it knows of jobs, and what it was asked. */
let jobs: Map<string, { name: string; status: JobStatus }>;
let polls: string[][];
let submitted: JobRequest[];
let cancelled: string[];
let onSubmit: (job: JobRequest) => void;
let root: string;
let watcher: Watcher | undefined;
let state: ReturnType<typeof createState>;
let committed: Event[];

const provider: Provider = {
  describe: async () => ({ version: "x", largest: {} }),
  submit: async (job) => {
    submitted.push(job);
    onSubmit(job);
    const nativeId = String(jobs.size + 1);
    jobs.set(nativeId, { name: job.name, status: { state: "queued", raw: "Q" } });
    return { nativeId };
  },
  poll: async (ids) => {
    polls.push([...ids]);
    return new Map(ids.map((id) => [id, jobs.get(id)?.status ?? { state: "ended", outcome: "unknown", raw: "gone" }]));
  },
  cancel: async (ids) => {
    cancelled.push(...ids);
    for (const id of ids) jobs.get(id)!.status = { state: "ended", outcome: "cancelled", raw: "C" };
  },
  list: async (prefix) =>
    [...jobs].filter(([, { name }]) => name.startsWith(prefix)).map(([nativeId, { name }]) => ({ nativeId, name })),
};

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-watcher-"));
  [jobs, polls, submitted, cancelled, committed] = [new Map(), [], [], [], []];
  onSubmit = () => undefined;
  state = createState();
});
afterEach(async () => {
  watcher?.close();
  watcher = undefined;
  await rm(root, { recursive: true, force: true });
});

let now = 1000;
const commit = (event: Event): number => {
  committed.push(event);
  apply(state, event, NO_EFFECTS);
  return committed.length;
};
const engine = {
  get state() {
    return state;
  },
  clock: () => (now += 1),
  commit,
  whenDurable: async () => undefined,
} as unknown as Engine;

const request = (id: number, user = ""): void =>
  void commit({
    type: "launch.requested",
    at: 1,
    launch: id,
    uuid: `u${id}`,
    cluster: "hpc",
    user,
    jobName: `slipway_cmd-${id}`,
    directory: join(root, String(id)),
    files: {
      script: join(root, `${id}.sh`),
      options: [],
      stdout: join(root, `${id}.out`),
      stderr: join(root, `${id}.err`),
      exitCode: join(root, `${id}.exit`),
      nativeId: join(root, `${id}.native`),
    },
    tokenHash: "",
    about: { name: "x", type: "cmd", pool: "", slots: 1, nodes: 1, image: "", command: [], notes: [] },
  });

const start = (parts: { storage?: Partial<Storage>; output?: Partial<OutputStore> } = {}): Watcher => {
  const cluster = {
    config: { name: "hpc" },
    settings: { jobNamePrefix: "slipway", retention: 0 },
    provider: () => provider,
  } as unknown as LaunchCluster;
  watcher = createWatcher({
    engine,
    clusters: new Map([["hpc", cluster]]),
    storage: {
      make: async () => undefined,
      remove: async () => undefined,
      sweep: async () => undefined,
      ...parts.storage,
    },
    output: { ...createOutputStore(join(root, "kept")), ...parts.output },
    log: () => undefined,
    periodMs: 3_600_000,
  });
  return watcher;
};

const launch = (id: number) => state.launches.get(id)!;

describe("watching launches", () => {
  it("asks about all jobs of a cluster with one poll, and tells only what is new", async () => {
    const watching = start();
    for (let id = 1; id <= 50; id += 1) {
      request(id);
      await watching.submit(launch(id));
    }
    polls.length = 0;
    await watching.look("hpc");
    expect(polls).toEqual([Array.from({ length: 50 }, (_, i) => String(i + 1))]);
    const before = committed.length;
    await watching.look("hpc");
    expect(committed.length).toBe(before);
    jobs.get("7")!.status = { state: "active", raw: "R", hosts: ["n1"] };
    await watching.look("hpc");
    expect(committed.length).toBe(before + 1);
    expect(launch(7)).toMatchObject({ state: "running", hosts: ["n1"] });
  });

  it("rule 3: what a server before this one journaled is found by name or by what the script wrote, else submitted once", async () => {
    for (const id of [1, 2, 3]) request(id);
    jobs.set("81", { name: "slipway_cmd-1", status: { state: "active", raw: "R" } });
    await writeFile(join(root, "2.native"), "82\n");
    await writeFile(join(root, "2.exit"), "4\n");
    const watching = start();
    await watching.look("hpc");
    await watching.look("hpc");
    expect(launch(1)).toMatchObject({ nativeId: "81", state: "running" });
    expect(launch(2)).toMatchObject({ nativeId: "82", state: "failed", exitCode: 4 });
    expect(submitted.map(({ name }) => name)).toEqual(["slipway_cmd-3"]);
    expect(launch(3)).toMatchObject({ state: "pending", nativeId: "2" });
  });

  it("what its script wrote is taken for the manager's id only where it looks like one", async () => {
    request(1);
    await writeFile(join(root, "1.native"), "82 \u001b[31mred\n");
    const watching = start();
    await watching.look("hpc");
    expect(submitted.map(({ name }) => name)).toEqual(["slipway_cmd-1"]);
    expect(launch(1)).toMatchObject({ nativeId: "1" });
  });

  it("rule 3: a submission that did not answer in time is looked up, and not given again when it was taken", async () => {
    const watching = start();
    request(1);
    onSubmit = (job) => {
      jobs.set("91", { name: job.name, status: { state: "queued", raw: "Q" } });
      throw new CommandError("no answer", ["sbatch"], true);
    };
    await watching.submit(launch(1));
    expect(launch(1)).toMatchObject({ state: "pending", nativeId: "" });
    await watching.look("hpc");
    expect(launch(1)).toMatchObject({ nativeId: "91" });
    expect(submitted).toHaveLength(1);
  });

  it("a refusal is the launch's end, with the manager's words", async () => {
    const watching = start();
    request(1);
    onSubmit = () => {
      throw new SlipwayError("cluster-refused", { cluster: "Slurm", detail: "invalid account" });
    };
    await expect(watching.submit(launch(1))).rejects.toMatchObject({ code: "cluster-refused" });
    expect(launch(1)).toMatchObject({ state: "failed", reason: "invalid account" });
    expect(launch(1).cleaned).toBeGreaterThan(0);
  });

  it("a cancellation asked before the manager's answer, or before this server, reaches the job", async () => {
    const watching = start();
    request(1);
    onSubmit = () => commit({ type: "launch.changed", at: 2, launch: 1, cancelBy: "alice" });
    await watching.submit(launch(1));
    await watching.look("hpc");
    expect(cancelled).toEqual(["1"]);
    expect(launch(1)).toMatchObject({ state: "cancelled", cancelBy: "alice" });
    watching.close();
    onSubmit = () => undefined;
    request(2);
    commit({ type: "launch.changed", at: 2, launch: 2, cancelBy: "bob" });
    const successor = start();
    await successor.look("hpc");
    // nobody had taken it: there is nothing left to submit
    expect(launch(2)).toMatchObject({ state: "cancelled" });
    expect(submitted).toHaveLength(1);
  });

  it("a manager that does not answer changes nothing", async () => {
    const watching = start();
    request(1);
    await watching.submit(launch(1));
    const { poll } = provider;
    try {
      provider.poll = () => Promise.reject(new SlipwayError("cluster-unreachable", { cluster: "x", detail: "down" }));
      const before = committed.length;
      await watching.look("hpc");
      expect(committed.length).toBe(before);
    } finally {
      provider.poll = poll;
    }
    jobs.get("1")!.status = { state: "ended", outcome: "done", raw: "CD", exitCode: 0 };
    await watching.look("hpc");
    expect(launch(1)).toMatchObject({ state: "succeeded" });
  });

  describe("one user's job never delays another's", () => {
    /** Ten of alice's and one of bob's have ended, alice's first. */
    const ended = async (watching: Watcher): Promise<void> => {
      for (let id = 1; id <= 11; id += 1) {
        request(id, id === 11 ? "bob" : "alice");
        await watching.submit(launch(id));
      }
      for (const job of jobs.values()) job.status = { state: "ended", outcome: "unknown", raw: "gone" };
      await writeFile(join(root, "11.exit"), "0\n");
    };

    it("an exit code that is a pipe", async () => {
      const watching = start();
      await ended(watching);
      execFileSync(
        "mkfifo",
        Array.from({ length: 10 }, (_, i) => join(root, `${i + 1}.exit`)),
      );
      await watching.look("hpc");
      expect(launch(11)).toMatchObject({ state: "succeeded", exitCode: 0 });
      expect(launch(1)).toMatchObject({ state: "lost", exitCode: null });
    });

    it.each(["log", "directory"])("a %s that takes for ever", async (what) => {
      const never = new Promise<never>(() => undefined);
      const kept = createOutputStore(join(root, "kept"));
      const cleared: string[] = [];
      const watching = start({
        output: { collect: async (id, files) => (what === "log" && id < 11 ? never : kept.collect(id, files)) },
        storage: {
          remove: async (directory) => {
            if (what === "directory" && Number(basename(directory)) < 11) return never;
            cleared.push(directory);
          },
        },
      });
      await ended(watching);
      await watching.look("hpc", 11);
      expect(launch(11)).toMatchObject({ state: "succeeded", exitCode: 0 });
      expect(watching.isOver(launch(11))).toBe(true);
      expect(cleared).toEqual([join(root, "11")]);
      // and what comes later is seen as well
      request(12, "bob");
      await watching.submit(launch(12));
      jobs.get("12")!.status = { state: "ended", outcome: "done", raw: "CD", exitCode: 0 };
      await watching.look("hpc", 12);
      expect(launch(12)).toMatchObject({ state: "succeeded" });
      expect(watching.isOver(launch(1))).toBe(false);
    });

    it("exit codes are the shell's, or none", async () => {
      const watching = start();
      const notes = ["256", "1e3", "9".repeat(200), "-1", "0x10", "255"];
      for (const [i, note] of notes.entries()) {
        request(i + 1, "alice");
        await watching.submit(launch(i + 1));
        await writeFile(join(root, `${i + 1}.exit`), `${note}\n`);
      }
      for (const job of jobs.values()) job.status = { state: "ended", outcome: "unknown", raw: "gone" };
      await watching.look("hpc");
      expect(notes.map((_, i) => launch(i + 1).exitCode)).toEqual([null, null, null, null, null, 255]);
    });
  });
});
