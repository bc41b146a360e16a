import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PilotView, RunView } from "../../src/api/schemas.ts";
import { type Client, connect } from "../../src/client/index.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

const reason = skipReason();
const TASKS = 2;

/**
 * What Slurm or its administrators do to pilots: `pilots list` and `why` report each case in Slurm's word and in plain
 * words, and it costs the tasks nothing. Every queue has its own node, so that everything happens side by side.
 */
describe.skipIf(reason !== undefined)(
  `states of pilots on Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let slipway: SlipwayHome;
    let client: Client | undefined;

    const QUEUES = [
      "held",
      "suspended",
      "preempted",
      "requeued",
      "putback",
      "drained",
      "cancelled",
      "memory",
      "lost",
    ] as const;
    type Queue = (typeof QUEUES)[number];
    const nodeOf = (queue: Queue): string => lab.nodes[QUEUES.indexOf(queue)]!;
    const MORE: Readonly<Partial<Record<Queue, Readonly<Record<string, unknown>>>>> = {
      held: { options: ["--hold"] },
      requeued: { "skip-options": ["--no-requeue"], options: ["--requeue"] },
      putback: { "skip-options": ["--no-requeue"], options: ["--requeue"] },
      memory: { memory: "400M" },
    };

    const admin = async (...argv: string[]): Promise<string> => {
      const { code, stdout, stderr } = await lab.run(argv);
      expect({ argv, code, stderr }).toMatchObject({ code: 0 });
      return stdout.trim();
    };
    const pilotsOf = async (queue: Queue): Promise<PilotView[]> => {
      client ??= connect({ home: slipway.home });
      return (await client.pilots()).filter((pilot) => pilot.queue === queue);
    };
    const submit = async (queue: Queue, script: string, ...more: string[]): Promise<number> => {
      const words = ["--cluster", "hpc", "--queue", queue, "--array", `1-${TASKS}`, ...more, "--", "sh", "-c", script];
      return (await slipway.json<{ run: number }>(["submit", ...words])).run;
    };
    const gateOf = (queue: Queue): string => join(slipway.cwd, `gate-${queue}`);
    const doneOf = (queue: Queue): string => join(slipway.cwd, `done-${queue}`);
    /** Tasks that run until the queue's gate is open, and then say so. */
    const start = async (queue: Queue): Promise<number> => {
      for (const path of [gateOf(queue), doneOf(queue)]) await rm(path, { force: true });
      return submit(queue, `until [ -e ${gateOf(queue)} ]; do sleep 0.1; done; echo $SLIPWAY_TASK >>${doneOf(queue)}`);
    };
    const startedOn = async (queue: Queue): Promise<{ run: number; pilot: PilotView }> => {
      const run = await start(queue);
      const pilot = await until(`tasks of ${queue} to run`, async () =>
        (await pilotsOf(queue)).find(({ agents }) => agents.some(({ running }) => running === TASKS)),
      );
      return { run, pilot };
    };
    /** What `pilots list` says of any of its pilots, and `why` of the run. */
    const isTold = async (queue: Queue, words: RegExp): Promise<void> => {
      await until(`pilots list to tell ${words}`, async () =>
        (await pilotsOf(queue)).some(({ waiting, reason }) => words.test(`${waiting} ${reason}`)),
      );
    };
    const whyTells = async (what: string, words: RegExp): Promise<string> =>
      until(`why ${what} to tell ${words}`, async () => {
        const { stdout } = await slipway.run(["why", what]);
        return words.test(stdout) ? stdout : undefined;
      });
    /** Opens its gate: all end as done, each once. */
    const endsWell = async (queue: Queue, run: number): Promise<RunView> => {
      await writeFile(gateOf(queue), "");
      const { status } = await slipway.run(["wait", String(run)], { timeoutMs: 170_000 });
      const told = (await slipway.run(["why", String(run)])).stdout;
      expect(status, told).toBe(0);
      const view = await slipway.json<RunView>(["show", String(run)]);
      expect(view).toMatchObject({ counts: { DONE: TASKS }, retries: 0 });
      const lines = (await readFile(doneOf(queue), "utf8")).trim().split("\n");
      expect(lines.toSorted()).toEqual(Array.from({ length: TASKS }, (_, i) => String(i + 1)));
      return view;
    };
    /** A job that may take the place of a pilot. */
    const intrude = (queue: Queue): Promise<string> =>
      admin(
        "sbatch",
        "--parsable",
        "-p",
        "high",
        "--exclusive",
        "-w",
        nodeOf(queue),
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 300",
      );

    beforeAll(async () => {
      lab = await startSlurm({
        nodes: QUEUES.length,
        cpus: 2,
        bigNodes: 0,
        plainNodes: 0,
        gpus: {},
        cgroups: true,
        preemption: true,
        credentialSeconds: 5,
        killWait: 2,
      });
      slipway = await createHome();
      await mkdir(slipway.home, { mode: 0o700 });
      const common = { partition: "batch", cores: 2, memory: "500M", walltime: "30m" };
      const fleet = { max: 1, idle: "2s", period: "1s" };
      const queues = Object.fromEntries(
        QUEUES.map((queue) => {
          const { options = [], ...more } = (MORE[queue] ?? {}) as { options?: readonly string[] };
          // a pilot that comes back is not sent away because another was started meanwhile
          const strategy = "skip-options" in more ? "simple" : "auto";
          const all = [`--nodelist=${nodeOf(queue)}`, ...options];
          return [queue, { ...common, ...more, options: all, fleet: { strategy, ...fleet } }];
        }),
      );
      const cluster = { type: "slurm", config: lab.env["SLURM_CONF"], queues };
      await writeFile(join(slipway.home, "clusters.yaml"), stringify({ clusters: { hpc: cluster } }));
      expect((await slipway.run(["up"])).status).toBe(0);
    });
    afterAll(async () => {
      client?.close();
      try {
        await slipway?.cleanup();
      } finally {
        await lab?.stop();
      }
    });

    it.concurrent("held: says by whom, and starts when released", async () => {
      const run = await start("held");
      const words = /held: PENDING \(JobHeldUser\), its owner holds it/;
      await isTold("held", words);
      expect(await whyTells(String(run), words)).toContain("scontrol release");
      const [pilot] = await pilotsOf("held");
      await admin("scontrol", "release", pilot!.nativeId!);
      expect(await endsWell("held", run)).toMatchObject({ losses: 0 });
    });

    it.concurrent("suspended: tasks stand still and go on, none is run again", async () => {
      const { run, pilot } = await startedOn("suspended");
      await admin("scontrol", "suspend", pilot.nativeId!);
      const words = /suspended: SUSPENDED, it was suspended/;
      await isTold("suspended", words);
      await whyTells(String(run), words);
      await whyTells(`${run}.1`, /is stalled/);
      await admin("scontrol", "resume", pilot.nativeId!);
      expect(await endsWell("suspended", run)).toMatchObject({ losses: 0 });
    });

    it.concurrent("preempted: the tasks run again on the next pilot", async () => {
      const { run, pilot } = await startedOn("preempted");
      const intruder = await intrude("preempted");
      await isTold("preempted", /its job was preempted: PREEMPTED/);
      expect((await pilotsOf("preempted")).find(({ id }) => id === pilot.id)).toMatchObject({ state: "FAILED" });
      await admin("scancel", intruder);
      await endsWell("preempted", run);
    });

    it.concurrent("preempted and requeued: the same pilot waits and starts again", async () => {
      const { run, pilot } = await startedOn("requeued");
      const intruder = await intrude("requeued");
      await isTold("requeued", /queued: PENDING/);
      await whyTells(String(run), /queued: PENDING \(\w+\), /);
      await admin("scancel", intruder);
      await endsWell("requeued", run);
      expect((await pilotsOf("requeued"))[0]).toMatchObject({ id: pilot.id, nativeId: pilot.nativeId });
    });

    it.concurrent("put back and held by the administrator: waits until it is released", async () => {
      const { run, pilot } = await startedOn("putback");
      await admin("scontrol", "requeuehold", pilot.nativeId!);
      const words = /held: \w+ \(.*\), (it was put back into the queue and is held|an administrator holds it)/;
      // another pilot may have begun in its place by now: why need not mention it
      await isTold("putback", words);
      await admin("scontrol", "release", pilot.nativeId!);
      await endsWell("putback", run);
    });

    it.concurrent("a drained node: what runs there goes on, the next pilot says what it waits for", async () => {
      const { run, pilot } = await startedOn("drained");
      await admin("scontrol", "update", `nodename=${nodeOf("drained")}`, "state=drain", "reason=test");
      await admin("scancel", pilot.nativeId!);
      await isTold("drained", /queued: PENDING \(ReqNodeNotAvail.*\), nodes it needs are down, drained or reserved/);
      expect(await whyTells(String(run), /ReqNodeNotAvail/)).toContain("sinfo -R");
      await lab.upNode(nodeOf("drained"));
      await endsWell("drained", run);
    });

    it.concurrent("cancelled by the administrator: the tasks run again at no cost", async () => {
      const { run, pilot } = await startedOn("cancelled");
      await admin("scancel", pilot.nativeId!);
      await isTold("cancelled", /its job was cancelled in the manager: CANCELLED/);
      expect(await endsWell("cancelled", run)).toMatchObject({ losses: 0 });
      expect((await pilotsOf("cancelled")).find(({ id }) => id === pilot.id)).toMatchObject({ state: "CANCELED" });
    });

    it.concurrent("a task that needs more memory than its pilot has is killed alone, and its pilot says so", async () => {
      const eat = "head -c 900000000 /dev/zero | tail >/dev/null";
      const script = `[ "$SLIPWAY_TASK" = 2 ] || [ "$SLIPWAY_ATTEMPT" != 1 ] || { ${eat}; }`;
      const run = await submit("memory", script, "--retries", "1");
      expect((await slipway.run(["wait", String(run)], { timeoutMs: 170_000 })).status).toBe(0);
      expect(await slipway.json<RunView>(["show", String(run)])).toMatchObject({
        counts: { DONE: TASKS },
        losses: 0,
        retries: 1,
      });
      await isTold("memory", /its job was out of memory: OUT_OF_MEMORY/);
    });

    // alone: with such a short silence allowed, other nodes of a busy machine might seem dead
    it("rule 5: lost with its node, without a word from anybody: the tasks run again", async () => {
      const { run } = await startedOn("lost");
      await lab.killNode(nodeOf("lost"));
      await lab.setNodeTimeout(5);
      try {
        await isTold("lost", /its node was lost: NODE_FAIL/);
      } finally {
        await lab.setNodeTimeout(60);
        await lab.startNode(nodeOf("lost"));
      }
      expect(await endsWell("lost", run)).toMatchObject({ losses: TASKS });
      // a node that was switched off comes back with an empty temporary directory
      for (const name of await readdir(slipway.tmp)) await rm(join(slipway.tmp, name), { recursive: true });
    });
  },
);
