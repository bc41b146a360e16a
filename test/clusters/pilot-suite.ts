import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { CheckView, PilotView, RunView } from "../../src/api/schemas.ts";
import { type Client, connect } from "../../src/client/index.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { taskContract } from "../contract/task-contract.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { untilDead } from "./lab/daemons.ts";

/**
 * What fleets of pilots promise on every workload manager: tasks run there as they do on a laptop, whatever happens to
 * the pilots, the nodes and the server. Every task writes a line when it runs, so that executions can be counted.
 */
export interface PilotManager {
  readonly name: string;
  /** Why none of it can be tested here. */
  readonly unavailable?: string | undefined;
  boot(): Promise<BootedPilots>;
  /** Keys of a queue whose pilots the manager accepts, cannot start and keeps, and its words about that. */
  readonly stuck?: { readonly keys: Readonly<Record<string, unknown>>; readonly words: RegExp };
  /** What a job without `cores` gets on each of its nodes, which have more; with further keys of its queue. */
  readonly plain?: {
    readonly nodes: number;
    readonly cores: number;
    readonly keys?: Readonly<Record<string, unknown>>;
  };
  /** Its cancel sends TERM some seconds before it kills, if only to the processes on a job's first node. */
  readonly tellsFirst?: boolean;
  /** It starts jobs fast enough for the whole contract of tasks at once. */
  readonly together?: boolean;
  /** By the title of a promise, why it is not kept. */
  readonly skip?: Readonly<Record<string, string>>;
  /**
   * Further promises by title, each with a function that runs one command line on a pilot of the queue main and returns
   * its output.
   */
  readonly also?: Readonly<Record<string, (output: (script: string) => Promise<string>) => Promise<void>>>;
}

export interface BootedPilots {
  /** Keys of the cluster in clusters.yaml, without its queues. */
  readonly cluster: Readonly<Record<string, unknown>>;
  /** Keys of a queue whose pilots have one node and two cores; there is room for three at once. */
  readonly queue: Readonly<Record<string, unknown>>;
  /** Further keys that a pilot of two nodes needs. */
  readonly pair?: Readonly<Record<string, unknown>>;
  /** Keys that the manager refuses, such as a partition that does not exist, and words that it says about them. */
  readonly wrong: { readonly keys: Readonly<Record<string, unknown>>; readonly words: RegExp };
  /** No more tasks of one core than this run at once as jobs, or on pilots; 6 unless it says otherwise. */
  readonly mostTasks?: number;
  /** A walltime in seconds that is over soon. */
  readonly shortWalltime: number;
  /** Who runs the server, if the user who runs the tests cannot. */
  readonly user?: string;
  /** Where its home is, if not among the temporary files. */
  readonly under?: string;
  /** For the server and whatever it starts. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Called with the directory of the server's state. */
  readonly onHome?: (home: string) => void;
  /** The manager's own cancel: scancel, qdel, oardel. */
  cancelJob(nativeId: string): Promise<void>;
  /** The node on which a job runs loses its power; resolves with a function that brings it back. */
  killNodeOf?(nativeId: string): Promise<() => Promise<void>>;
  /** Ids of the jobs that the manager still has queued or running. */
  livingJobs(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

const MOST = 3;
const CORES = 2;
const ATTEMPT = 'echo "$SLIPWAY_TASK.$SLIPWAY_ATTEMPT" >>';

export const pilotSuite = (manager: PilotManager): void => {
  const { name, skip = {}, also = {}, plain, stuck, unavailable } = manager;
  const title = `pilots on ${name}${unavailable === undefined ? "" : ` (skipped: ${unavailable})`}`;
  const promise = (what: string, test: () => Promise<void>): void => {
    const reason = skip[what];
    it.skipIf(reason !== undefined)(reason === undefined ? what : `${what} (skipped: ${reason})`, test);
  };

  describe.skipIf(unavailable !== undefined)(title, () => {
    let booted: BootedPilots;
    let slipway: SlipwayHome;
    /** For what is asked again and again: a command for each would be most of what the machine does. */
    let client: Client;
    let files = 0;
    const submitted: number[] = [];

    const options = (): { env: Readonly<Record<string, string | undefined>> } => ({ env: booted.env ?? {} });
    const json = <T>(...words: string[]): Promise<T> => slipway.json<T>(words, options());
    const up = async (): Promise<void> => {
      const outcome = await slipway.run(["up"], options());
      expect(outcome.stderr + outcome.stdout).toContain("the server runs");
      client?.close();
      client = connect({ home: slipway.home });
    };
    const live = async (queue?: string): Promise<PilotView[]> =>
      (await client.pilots()).filter((pilot) => pilot.ended === null && (queue === undefined || pilot.queue === queue));
    const submit = async (queue: string, array: string, script: string): Promise<number> => {
      const words = ["--cluster", "hpc", "--queue", queue, "--array", array, "--", "sh", "-c", script];
      const { run } = await json<{ run: number }>("submit", ...words);
      submitted.push(run);
      return run;
    };
    /** Waits for its end and returns the run as it is then. */
    const ended = async (run: number, status: number): Promise<RunView> => {
      const outcome = await slipway.run(["wait", String(run)], { ...options(), timeoutMs: 170_000 });
      const view = await client.run(run);
      if (outcome.status !== status) {
        const told = (await slipway.run(["why", String(run)], options())).stdout;
        expect({ status: outcome.status, told, view }, told).toMatchObject({ status });
      }
      return view;
    };
    const fresh = (): string => {
      files += 1;
      return join(slipway.cwd, `file-${files}`);
    };
    const linesOf = async (path: string): Promise<string[]> =>
      (await readFile(path, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
    /** The fleet goes back to nothing, and so does the manager. */
    const empty = async (): Promise<void> => {
      await until("all pilots to end", async () => (await live()).length === 0);
      await until("all jobs to end", async () => (await booted.livingJobs()).length === 0);
    };
    /** One pilot that runs tasks of a run that continue until `gate` exists. */
    const busy = async (gate: string, tasks: number): Promise<{ run: number; ran: string; pilots: PilotView[] }> => {
      const ran = fresh();
      const script = `${ATTEMPT} ${ran}; until [ -e ${gate} ]; do sleep 0.1; done`;
      const run = await submit("main", `1-${tasks}`, script);
      await until("tasks to run", async () => (await linesOf(ran)).length >= Math.min(tasks, CORES));
      const pilots = (await live("main")).filter(({ agents }) => agents.some(({ running }) => running > 0));
      expect(pilots.length).toBeGreaterThan(0);
      return { run, ran, pilots };
    };

    beforeAll(async () => {
      booted = await manager.boot();
      slipway = await createHome({
        ...(booted.user === undefined ? {} : { user: booted.user }),
        ...(booted.under === undefined ? {} : { under: booted.under }),
      });
      booted.onHome?.(slipway.home);
      const fleet = { strategy: "auto", min: 0, max: MOST, idle: "2s", period: "1s" };
      const pair = { walltime: "30m", ...booted.queue, nodes: 2, ...booted.pair, fleet: { ...fleet, max: 1 } };
      const queues = {
        main: { walltime: "30m", ...booted.queue, fleet },
        pair,
        short: { ...booted.queue, walltime: booted.shortWalltime, "signal-before": "1s", fleet: { ...fleet, max: 1 } },
        wrong: { walltime: "30m", ...booted.queue, ...booted.wrong.keys, fleet: { ...fleet, max: 1 } },
        ...(plain === undefined
          ? {}
          : {
              plain: { ...(plain.nodes > 1 ? pair : booted.queue), cores: undefined, ...plain.keys, fleet: pair.fleet },
            }),
        ...(stuck === undefined
          ? {}
          : { stuck: { walltime: "30m", ...booted.queue, ...stuck.keys, fleet: { ...fleet, max: 1 } } }),
      };
      await mkdir(slipway.home, { mode: 0o700 });
      await writeFile(
        join(slipway.home, "clusters.yaml"),
        stringify({ clusters: { hpc: { ...booted.cluster, queues } } }),
      );
      for (const path of [slipway.home, join(slipway.home, "clusters.yaml")]) await slipway.own(path);
      await up();
    });
    afterAll(async () => {
      client?.close();
      try {
        await slipway?.cleanup();
      } finally {
        await booted?.stop();
      }
    });

    // tasks that a failed test left waiting at a gate would block its second try, and all other tests
    afterEach(async ({ task }) => {
      const runs = submitted.splice(0).map(String);
      if (task.result?.state !== "fail" || runs.length === 0) return;
      await slipway.run(["cancel", ...runs], options());
      await empty();
    });

    promise("2,000 tasks on a fleet that grows from nothing to its most, and goes back to nothing", async () => {
      expect(await booted.livingJobs()).toEqual([]);
      const earlier = (await client.pilots()).length;
      const ran = fresh();
      const run = await submit("main", "1-2000", `${ATTEMPT} ${ran}; sleep 0.02`);
      await until("the fleet to be full", async () => {
        const active = (await live("main")).filter(({ state }) => state === "PMGR_ACTIVE");
        return active.length === MOST || (await client.run(run)).finished !== null;
      });
      const view = await ended(run, 0);
      expect(view).toMatchObject({ counts: { DONE: 2000 }, losses: 0, retries: 0 });
      const lines = await linesOf(ran);
      expect([lines.length, new Set(lines).size]).toEqual([2000, 2000]);
      // including those that have gone since
      const pilots = (await client.pilots()).slice(earlier);
      expect(pilots.filter(({ active }) => active !== null).length).toBeGreaterThanOrEqual(2);
      expect(pilots.length).toBeLessThanOrEqual(2 * MOST);
      await empty();
    });

    promise("a pilot of several nodes has one agent on each, and leaves none behind", async () => {
      const gate = fresh();
      const ran = fresh();
      const run = await submit("pair", `1-${2 * CORES}`, `${ATTEMPT} ${ran}; until [ -e ${gate} ]; do sleep 0.1; done`);
      await until("tasks to run on both", async () => (await linesOf(ran)).length === 2 * CORES);
      const [pilot, ...others] = await live("pair");
      expect(others).toEqual([]);
      expect(pilot!.agents.map(({ running }) => running)).toEqual([CORES, CORES]);
      await writeFile(gate, "");
      expect(await ended(run, 0)).toMatchObject({ counts: { DONE: 2 * CORES }, losses: 0 });
      await empty();
    });

    if (plain !== undefined)
      promise(
        "without `cores` an agent takes what the manager gave its job on that node, not all that it sees",
        async () => {
          const gate = fresh();
          const run = await submit("plain", "1-2", `until [ -e ${gate} ]; do sleep 0.1; done`);
          const agents = await until("its agents", async () => {
            const found = (await live("plain")).flatMap((pilot) => pilot.agents);
            return found.length === plain.nodes ? found : undefined;
          });
          expect(agents.map(({ resources }) => resources["cpus"])).toEqual(Array(plain.nodes).fill(plain.cores));
          await writeFile(gate, "");
          expect(await ended(run, 0)).toMatchObject({ counts: { DONE: 2 } });
          await empty();
        },
      );

    for (const [what, test] of Object.entries(also))
      promise(what, () =>
        test(async (script) => {
          const run = await submit("main", "1-1", script);
          await ended(run, 0);
          return (await slipway.run(["logs", `${run}.1`], options())).stdout;
        }),
      );

    promise("a run that is cancelled ends on its pilots too", async () => {
      const gate = fresh();
      const { run } = await busy(gate, 50);
      expect((await slipway.run(["cancel", String(run)], options())).status).toBe(0);
      const view = await ended(run, 1);
      expect(view.counts).toEqual({ CANCELED: 50 });
      await empty();
    });

    promise("rule 5: tasks of a pilot that the manager cancels run again, at no cost to their retries", async () => {
      const gate = fresh();
      const { run, ran, pilots } = await busy(gate, 4);
      const [pilot] = pilots;
      await booted.cancelJob(pilot!.nativeId!);
      await until("the pilot to be gone", async () => !(await live()).some(({ id }) => id === pilot!.id));
      await writeFile(gate, "");
      const view = await ended(run, 0);
      expect(view).toMatchObject({ counts: { DONE: 4 }, retries: 0 });
      // an agent that is asked to end gives its tasks back, one that is killed loses them
      expect((await linesOf(ran)).length).toBeGreaterThan(4);
      const gone = (await client.pilots()).find(({ id }) => id === pilot!.id)!;
      expect(gone.reason).not.toBe("");
      await empty();
    });

    if (manager.tellsFirst === true)
      promise("a pilot of several nodes that the manager cancels tells all its tasks, on every node", async () => {
        const gate = fresh();
        const ran = fresh();
        const told = fresh();
        const wait = `until [ -e ${gate} ]; do sleep 0.1; done`;
        // it still dies of the signal: an exit code could be its own, if the manager signals the task itself
        const script = `trap '${ATTEMPT} ${told}; trap - TERM; kill $$' TERM; ${ATTEMPT} ${ran}; ${wait}`;
        const run = await submit("pair", `1-${2 * CORES}`, script);
        await until("tasks to run on both", async () => (await linesOf(ran)).length === 2 * CORES);
        const [pilot] = await live("pair");
        await booted.cancelJob(pilot!.nativeId!);
        await until("the pilot to be gone", async () => !(await live()).some(({ id }) => id === pilot!.id));
        // the manager may signal some of them as well
        expect([...new Set(await linesOf(told))].toSorted()).toEqual(["1.1", "2.1", "3.1", "4.1"]);
        await writeFile(gate, "");
        expect(await ended(run, 0)).toMatchObject({ counts: { DONE: 2 * CORES }, retries: 0 });
        await empty();
      });

    promise("rule 5: tasks of a node that dies run again elsewhere", async () => {
      const gate = fresh();
      const { run, pilots } = await busy(gate, 4);
      const [pilot] = pilots;
      const mend = await booted.killNodeOf!(pilot!.nativeId!);
      try {
        await until("the pilot to be gone", async () => !(await live()).some(({ id }) => id === pilot!.id));
        await writeFile(gate, "");
        const view = await ended(run, 0);
        expect(view).toMatchObject({ counts: { DONE: 4 }, retries: 0 });
        expect(view.losses).toBeGreaterThan(0);
      } finally {
        await mend();
      }
      await empty();
    });

    promise("a task that is longer than what is left of its pilot is run again on another", async () => {
      const ran = fresh();
      // its pilot ends under it before then
      const script = `${ATTEMPT} ${ran}; [ "$SLIPWAY_ATTEMPT" != 1 ] || sleep 1000`;
      const run = await submit("short", "1-1", script);
      const view = await ended(run, 0);
      expect(view).toMatchObject({ counts: { DONE: 1 }, retries: 0 });
      const task = await client.task(run, 1);
      expect(task.attempts.map(({ exitCode }) => exitCode)).toEqual([null, 0]);
      expect(new Set(task.attempts.map(({ pilot }) => pilot)).size).toBe(2);
      await empty();
    });

    promise("a queue that the manager refuses says why, and holds up no other", async () => {
      const early = await slipway.run(
        ["submit", "--cluster", "hpc", "--queue", "wrong", "--quiet", "--", "true"],
        options(),
      );
      // a manager that lists its queues is not asked: what it does not have is refused by what it last said
      if (early.status !== 0) {
        expect(early).toMatchObject({ status: 2, stderr: expect.stringMatching(/has no \w+ 'nowhere/) });
        expect(await ended(await submit("main", "1-3", "true"), 0)).toMatchObject({ counts: { DONE: 3 } });
        await empty();
        return;
      }
      const refused = await submit("wrong", "1-3", "true");
      await until("the refusal", async () => {
        const { fleets } = await client.status();
        const fleet = fleets.find(({ queue }) => queue === "wrong")!;
        return booted.wrong.words.test(`${fleet.problem} ${fleet.failure}`);
      });
      await until("why to tell it", async () =>
        booted.wrong.words.test((await slipway.run(["why", String(refused)], options())).stdout),
      );
      expect(await ended(await submit("main", "1-3", "true"), 0)).toMatchObject({ counts: { DONE: 3 } });
      await slipway.run(["cancel", String(refused), String(Number(early.stdout))], options());
      await ended(refused, 1);
      await empty();
    });

    if (stuck !== undefined)
      promise("a pilot that the manager could not start and keeps is given up as a failed start", async () => {
        const run = await submit("stuck", "1-1", "true");
        const pilot = await until("its pilot to be given up", async () =>
          (await client.pilots()).find(({ queue, ended: at }) => queue === "stuck" && at !== null),
        );
        expect(pilot).toMatchObject({ state: "FAILED", reason: expect.stringMatching(stuck.words) });
        expect((await slipway.run(["why", String(run)], options())).stdout).toMatch(stuck.words);
        await slipway.run(["cancel", String(run)], options());
        await ended(run, 1);
        await empty();
      });

    promise("clusters check lets the manager judge each queue, and leaves no job", async () => {
      const words = ["clusters", "check", "hpc"];
      const view = await slipway.json<CheckView>(words, { ...options(), statuses: [4], timeoutMs: 170_000 });
      const wrong = view.checks.filter(({ ok }) => !ok);
      expect(wrong.filter(({ queue }) => queue !== "wrong")).toEqual([]);
      expect(wrong.map(({ detail }) => detail).join("\n")).toMatch(booted.wrong.words);
      expect(view.checks).toContainEqual(expect.objectContaining({ what: "submission", queue: "main", ok: true }));
      await empty();
    });

    for (const via of ["pilot", "job"] as const)
      taskContract(
        via,
        () => ({
          slipway,
          env: booted.env,
          cluster: "hpc",
          queue: "main",
          most: booted.mostTasks ?? MOST * CORES,
          cancelJob: booted.cancelJob,
        }),
        { together: manager.together === true },
      );

    promise(
      "rule 3: a server that is killed and started again finds its pilots; nothing is lost or run twice",
      async () => {
        const ran = fresh();
        const run = await submit("main", "1-150", `${ATTEMPT} ${ran}; sleep 0.1`);
        await until("tasks to run", async () => (await linesOf(ran)).length > 10);
        const before = (await live()).filter(({ state }) => state === "PMGR_ACTIVE").map(({ nativeId }) => nativeId);
        const { pid } = (await readEndpoint(slipway.home))!;
        process.kill(pid, "SIGKILL");
        await untilDead(pid);
        await up();
        const view = await ended(run, 0);
        expect(view).toMatchObject({ counts: { DONE: 150 }, losses: 0, retries: 0 });
        const lines = await linesOf(ran);
        expect([lines.length, new Set(lines).size]).toEqual([150, 150]);
        const all = await client.pilots();
        for (const id of before) expect(all.filter(({ nativeId }) => nativeId === id)).toHaveLength(1);
        await empty();
      },
    );
  });
};
