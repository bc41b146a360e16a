import { execFileSync } from "node:child_process";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { type Client, connect } from "../../src/client/index.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { MPI_SUM } from "../fixtures/mpi-sum.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

const reason = skipReason({ accounting: true });
const PATIENCE_MS = 60_000;
/** `scontrol show job` of the job that a task runs in. */
const SHOW = "scontrol show job --oneliner $SLURM_JOB_ID";
const ROOT_MPI = { OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1" };

/** What is Slurm's own about tasks that are jobs of their own; what holds everywhere is in the contract of tasks. */
describe.skipIf(reason !== undefined)(
  `tasks as jobs of Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let slipway: SlipwayHome;
    let client: Client;

    const admin = async (...argv: string[]): Promise<string> => {
      const { code, stdout, stderr } = await lab.run(argv);
      expect({ argv, code, stderr }).toMatchObject({ code: 0 });
      return stdout.trim();
    };
    const path = (name: string): string => join(slipway.cwd, name);
    const ended = async (id: number): Promise<RunView> => {
      let last: RunView | undefined;
      for await (const view of client.watch(id, { signal: AbortSignal.timeout(PATIENCE_MS) })) last = view;
      return last!;
    };
    const output = async (run: number, index = 0): Promise<string> => {
      const pieces: Buffer[] = [];
      for await (const piece of client.taskLogs(run, index)) pieces.push(piece);
      return Buffer.concat(pieces).toString();
    };
    const submitFile = async (name: string, document: object): Promise<number> => {
      await writeFile(path(`${name}.yaml`), stringify({ name, ...document }));
      return (await slipway.json<{ run: number }>(["submit", path(`${name}.yaml`)])).run;
    };
    const submit = async (...words: string[]): Promise<number> =>
      (await slipway.json<{ run: number }>(["submit", "--via", "job", ...words])).run;
    const doneOf = async (id: number): Promise<RunView> => {
      const view = await ended(id);
      const told = (await slipway.run(["why", String(id)])).stdout;
      expect(view.state, told).toBe("DONE");
      return view;
    };
    const running = (id: number, attempt = 1): Promise<TaskView> =>
      until(`attempt ${attempt} of ${id}.0 to run`, async () => {
        const task = await client.task(id, 0);
        return task.state === "AGENT_EXECUTING" && task.attempts.length === attempt ? task : undefined;
      });
    /** Until the file `name` is there. */
    const gate = (name: string): string => `until [ -e ${path(name)} ]; do sleep 0.1; done`;
    /** Jobs that wait in Slurm, elements of arrays one by one, highest priority first: `NAME|REASON`. */
    const pending = async (): Promise<string[]> =>
      (await admin("squeue", "--noheader", "--array", "--states=PENDING", "--format=%j|%r"))
        .split("\n")
        .filter((line) => line !== "");
    /** A job that holds all cores of all free nodes, by another hand; resolves with what ends it. */
    const fill = async (): Promise<() => Promise<void>> => {
      // the last one is reserved
      const words = ["--parsable", `--nodes=${lab.nodes.length - 1}`, "--exclusive", "-p", "high", "-o", "/dev/null"];
      const id = await admin("sbatch", ...words, "--wrap", "sleep 600");
      await until(
        "the nodes to be full",
        async () => (await admin("squeue", "-h", "-j", id, "-o", "%T")) === "RUNNING",
      );
      return async () => void (await admin("scancel", id));
    };

    const clusterOf = (more: object = {}): object => {
      const fleet = { max: 1, idle: "2s", period: "1s" };
      const queues = {
        main: { partition: "batch", walltime: "30m", fleet },
        again: { partition: "batch", "skip-options": ["--no-requeue"], options: ["--requeue"], fleet },
        brief: { partition: "batch", walltime: "1m", fleet },
        yields: { partition: "batch", fleet },
      };
      const config = lab.env["SLURM_CONF"];
      return { type: "slurm", config, n_max_queued_jobs: 2, repo_key: "lab:", ...more, queues };
    };

    beforeAll(async () => {
      lab = await startSlurm({
        nodes: 4,
        cpus: 2,
        bigNodes: 0,
        plainNodes: 0,
        gpus: { a100: 2 },
        cgroups: true,
        accounting: true,
        preemption: true,
        killWait: 2,
        credentialSeconds: 5,
        // jobs have a priority of 1000 here: with this a day fits below it, in steps of 100 s
        extra: ["PriorityParameters=nice_factor=0.01"],
      });
      slipway = await createHome();
      await mkdir(slipway.home, { mode: 0o700 });
      const clusters = { hpc: clusterOf(), nice: clusterOf({ use_nice: true, n_max_queued_jobs: 10 }) };
      await writeFile(join(slipway.home, "clusters.yaml"), stringify({ default: "hpc", clusters }));
      const reservation = ["ReservationName=maint", "StartTime=now", "Duration=60", "Users=root", "Flags=ignore_jobs"];
      await admin("scontrol", "create", "reservation", ...reservation, `Nodes=${lab.nodes[3]}`);
      expect((await slipway.run(["up"])).status).toBe(0);
      client = connect({ home: slipway.home });
    });
    afterAll(async () => {
      client?.close();
      try {
        await slipway?.cleanup();
      } finally {
        await lab?.stop();
      }
    });

    it("rows 001-2, 001-58, 001-59, 001-69 to 001-76 and 001-79: each of a task's keys reaches its job as it is", async () => {
      const [n1, n2] = lab.nodes as [string, string];
      const asked: readonly (readonly [name: string, keys: object, said: RegExp])[] = [
        ["partition", { partition: "high" }, / Partition=high /],
        ["qos", { qos: "urgent" }, / QOS=urgent /],
        ["features", { features: "common" }, / Features=common /],
        ["gres", { gres: "gpu:a100:1" }, / TresPerNode=gres:gpu:a100:1 /],
        ["licence", { licence: "foo:2" }, / Licenses=foo:2 /],
        ["excludes", { excludes: n1 }, new RegExp(` ExcNodeList=${n1} `)],
        ["nodes", { nodes: n2 }, new RegExp(` ReqNodeList=${n2} .* NodeList=${n2} `)],
        ["reserv", { reserv: "maint" }, / Reservation=maint /],
        ["other", { resources: { bar: 3 } }, / Licenses=bar:3 /],
        [
          "size",
          { cpus: 2, mem: "300M", "time-limit": "4m" },
          / TimeLimit=00:05:00 .* NumCPUs=2 .* MinMemoryNode=300M /,
        ],
      ];
      const tasks = asked.map(([name, keys]) => ({ name, ...keys, run: SHOW }));
      const run = await submitFile("keys", { defaults: { via: "job", queue: "main" }, tasks });
      await doneOf(run);
      for (const [at, [name, , said]] of asked.entries()) expect(await output(run, at), name).toMatch(said);
      expect(await output(run, 0)).toMatch(/ JobName=lab:partition-[0-9a-f]{12} /);
    });

    it("rows 001-80 to 001-91: -b says them on the command line, over the task's own", async () => {
      const [n1, n2] = lab.nodes as [string, string];
      const backend = `-c 2 --mem 200 -C common -x ${n1} --gres gpu:a100:1 -L foo:1 -w ${n2} -p high -q urgent`;
      const run = await submit("--cpus", "1", "-b", backend, "--", "sh", "-c", SHOW);
      const reserved = await submit("-b", "--reservation=maint", "--", "sh", "-c", SHOW);
      await doneOf(run);
      const said = await output(run);
      for (const words of [
        / NumCPUs=2 /,
        / MinMemoryNode=200M /,
        / Features=common /,
        new RegExp(` ExcNodeList=${n1} `),
        / TresPerNode=gres:gpu:a100:1 /,
        / Licenses=foo:1 /,
        new RegExp(` ReqNodeList=${n2} `),
        / Partition=high /,
        / QOS=urgent /,
      ])
        expect(said).toMatch(words);
      await doneOf(reserved);
      expect(await output(reserved)).toMatch(/ Reservation=maint /);
      // what Slurm does not say of its nodes it judges itself: its words are the task's
      const large = await submit("-b", "--tmp 30G", "--", "true");
      const temporary = await submit("-b", "--tmp 2G", "--", "sh", "-c", SHOW);
      expect(await ended(large)).toMatchObject({ state: "FAILED", losses: 0 });
      expect((await client.task(large, 0)).reason).toMatch(
        /hpc refused its job: .*node configuration is not available/,
      );
      await doneOf(temporary);
      expect(await output(temporary)).toMatch(/ MinTmpDiskNode=2G /);
    });

    it("what no node of Slurm can hold is refused when it is submitted, by what Slurm has said of its nodes", async () => {
      const refused = async (...words: string[]): Promise<string> => {
        const { status, stdout, stderr } = await slipway.run(["submit", "--via", "job", ...words, "--", "true"]);
        expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
        return stderr;
      };
      // the server asks when it starts
      const most = await until("Slurm to be asked", async () => {
        const { status, stderr } = await slipway.run(["submit", "--via", "job", "--cpus", "99", "--", "true"]);
        return status === 2 ? stderr : undefined;
      });
      expect(most).toMatch(
        /asks for cpus 99 as a job of its own; a node of partition batch of cluster hpc has at most 2/,
      );
      expect(await refused("--mem", "17G")).toMatch(/mem 17G .* has at most 15.6\d*G/);
      expect(await refused("--ranks", "5", "--nodes", "5")).toMatch(/; partition batch of cluster hpc has at most 4/);
    });

    it("rows 001-77 and 001-78: an index makes a heterogeneous job, and the command runs in part 0", async () => {
      const script = 'echo "$SLURM_HET_SIZE $SLURM_JOB_ID $SLURM_JOB_ID_HET_GROUP_0 $SLURM_JOB_PARTITION_HET_GROUP_1"';
      const task = { name: "parts", run: `${script}; ${SHOW}`, partition: "batch", partition1: "high", gres1: "gpu:1" };
      const run = await submitFile("parts", { defaults: { via: "job", queue: "main" }, tasks: [task] });
      await doneOf(run);
      const [first = "", shown = ""] = (await output(run)).split("\n");
      const [size, own, zero, partition] = first.split(" ");
      expect([size, own, partition]).toEqual(["2", zero, "high"]);
      expect(shown).toMatch(/ HetJobOffset=0 .* Partition=batch /);
    });

    it("ranks over two nodes start by srun inside the job's own allocation, and a real MPI program by mpiexec", async () => {
      await writeFile(path("sum.c"), MPI_SUM);
      execFileSync("mpicc", ["-o", "sum", "sum.c"], { cwd: slipway.cwd });
      const size = { ranks: 4, nodes: 2 };
      const tasks = [
        { name: "srun", ...size, run: ["sh", "-c", 'echo "$SLURM_PROCID $(hostname) $SLURM_JOB_NUM_NODES"'] },
        { name: "mpi", ...size, "rank-launcher": "mpiexec", run: [path("sum")], env: ROOT_MPI },
      ];
      const run = await submitFile("mpi", { defaults: { via: "job", queue: "main" }, tasks });
      await doneOf(run);
      const ranks = (await output(run, 0)).trim().split("\n").toSorted();
      expect(ranks.map((line) => line.split(" ")[0])).toEqual(["0", "1", "2", "3"]);
      expect(new Set(ranks.map((line) => line.split(" ")[1])).size).toBe(2);
      expect(ranks.every((line) => line.endsWith(" 2"))).toBe(true);
      const sums = (await output(run, 1)).trim().split("\n").toSorted();
      expect(sums.map((line) => line.split(" ").slice(0, 2).join(" "))).toEqual(["0/4 6", "1/4 6", "2/4 6", "3/4 6"]);
      expect(new Set(sums.map((line) => line.split(" ")[2])).size).toBe(2);
    });

    it("rows 001-62 and 001-63: no more than n_max_queued_jobs wait, the highest first, and a newcomer of higher priority takes a place", async () => {
      const free = await fill();
      const started = path("order");
      // of equal priority, those with the longest path behind them; all ask for the same
      const paths = { brief: "1m", longest: "20m", longer: "10m", short: "2m" };
      const chains = await submitFile("paths", {
        defaults: { via: "job", queue: "main" },
        tasks: Object.entries(paths).flatMap(([name, request]) => [
          { name, run: "true", mem: "50M" },
          { name: `${name}-then`, after: name, run: "true", "time-request": request },
        ]),
      });
      const inSlurm = async (): Promise<string> =>
        (await pending())
          .map((line) => /^lab:(\w+)-/.exec(line)?.[1])
          .toSorted()
          .join();
      await until("the longest two to wait in Slurm", async () => (await inSlurm()) === "longer,longest");
      await client.cancel(chains);
      expect(await ended(chains)).toMatchObject({ state: "CANCELED", losses: 0 });
      await until("both to be gone", async () => (await pending()).length === 0);
      const task = (name: string, priority: number): object => ({
        name,
        priority,
        run: `echo ${name} >>${started}`,
        cpus: 2,
      });
      const waiting = (...names: string[]): Promise<unknown> =>
        until(`${names.join(" and ")} to wait in Slurm`, async () => {
          const found = (await pending()).map((line) => /^lab:(\w+)-/.exec(line)?.[1]).toSorted();
          return found.join() === names.toSorted().join();
        });
      const defaults = { via: "job", queue: "main" };
      const first = await submitFile("crowd", {
        defaults,
        tasks: [task("low", 1), task("mid", 2), task("high", 3), task("top", 4)],
      });
      await waiting("high", "top");
      const why = await client.why(first, 0);
      expect(why).toMatchObject({
        cause: "job-held",
        detail: expect.stringMatching(/no more than 2 may.*n_max_queued_jobs/) as string,
      });
      const urgent = await submitFile("urgent", { defaults, tasks: [task("urgent", 9)] });
      await waiting("top", "urgent");
      await free();
      await doneOf(first);
      await doneOf(urgent);
      expect((await readFile(started, "utf8")).trim().split("\n").toSorted()).toEqual([
        "high",
        "low",
        "mid",
        "top",
        "urgent",
      ]);
    });

    it("use_nice: jobs of two homes start in the order of their dates, not in that of their submission", async () => {
      const other = await createHome();
      try {
        await mkdir(other.home, { mode: 0o700 });
        const clusters = { hpc: clusterOf({ use_nice: true, n_max_queued_jobs: 10, repo_key: "other:" }) };
        await writeFile(join(other.home, "clusters.yaml"), stringify({ default: "hpc", clusters }));
        expect((await other.run(["up"])).status).toBe(0);
        const free = await fill();
        const started = path("dates");
        // one at a time, on one node; a run's longest task is due now, the others as much later as they are shorter
        const flow = async (home: SlipwayHome, cluster: string, requests: Readonly<Record<string, string>>) => {
          const tasks = Object.entries(requests).map(([name, request]) => ({
            name,
            run: `echo ${name} >>${started}`,
            cpus: 2,
            nodes: lab.nodes[0],
            "time-request": request,
          }));
          const defaults = { via: "job", cluster, queue: "main", "time-limit": "3h" };
          await writeFile(join(home.cwd, "dates.yaml"), stringify({ name: "dates", defaults, tasks }));
          return (await home.json<{ run: number }>(["submit", join(home.cwd, "dates.yaml")])).run;
        };
        const first = await flow(slipway, "nice", { a0: "2h", a110: "10m" });
        await until("two to wait", async () => (await pending()).length === 2);
        const second = await flow(other, "hpc", { b0: "1h", b20: "40m" });
        // the manager's rules are read in the keepers' own rhythm: until then nice values are too large
        const priorities = async (): Promise<Record<string, number>> => {
          const lines = await admin("squeue", "--noheader", "--states=PENDING", "--format=%j|%Q");
          return Object.fromEntries(
            lines.split("\n").map((line) => [/:(\w+)-/.exec(line)?.[1] ?? "", Number(line.split("|")[1])]),
          );
        };
        await until("dates to be priorities", async () => {
          const { a0 = 0, a110 = 0, b0 = 0, b20 = 0 } = await priorities();
          return a110 > 1 && b20 > a110 + 20 && Math.min(a0, b0) > b20 + 5;
        });
        await free();
        await doneOf(first);
        expect((await other.run(["wait", String(second)])).status).toBe(0);
        const order = (await readFile(started, "utf8")).trim().split("\n");
        expect([order.slice(0, 2).toSorted(), order.slice(2)]).toEqual([
          ["a0", "b0"],
          ["b20", "a110"],
        ]);
      } finally {
        await other.cleanup();
      }
    });

    it("elements of a native array are taken back one by one", async () => {
      const free = await fill();
      const ran = path("elements");
      const run = await submit("--array", "1-6", "--name", "many", "--", "sh", "-c", `echo $SLIPWAY_ITEM >>${ran}`);
      await until("the array to wait", async () => (await pending()).length === 6);
      expect(await admin("squeue", "--noheader", "--states=PENDING", "--format=%K")).toMatch(/^0-5/);
      await client.cancel(run, { tasks: [2, 5] });
      await until("two of its elements to be gone", async () => (await pending()).length === 4);
      await free();
      expect(await ended(run)).toMatchObject({ counts: { DONE: 4, CANCELED: 2 } });
      expect((await readFile(ran, "utf8")).trim().split("\n").toSorted()).toEqual(["1", "3", "4", "6"]);
    });

    it("what Slurm knows of its job the task finds in its environment", async () => {
      const run = await submit(
        "--cpus",
        "2",
        "--",
        "sh",
        "-c",
        'echo "$SLURM_JOB_ID $SLURM_CPUS_PER_TASK $SLURM_JOB_NODELIST"',
      );
      await doneOf(run);
      const [job, cpus, node] = (await output(run)).trim().split(" ");
      expect([job, cpus]).toEqual([(await client.task(run, 0)).attempts[0]!.job, "2"]);
      expect(lab.nodes).toContain(node);
    });

    /** A job of a higher QOS that needs the whole node of another; resolves with what ends it again. */
    const intrude = async (id: string): Promise<() => Promise<void>> => {
      const node = await admin("squeue", "-h", "-j", id, "-o", "%N");
      const words = ["--parsable", "--exclusive", `--nodelist=${node}`, "--qos=urgent", "-o", "/dev/null"];
      const intruder = await admin("sbatch", ...words, "--wrap", "sleep 600");
      return async () => {
        await until("the intruder to run", async () => {
          const state = await admin("squeue", "-h", "-j", intruder, "-o", "%T");
          return state === "RUNNING";
        });
        expect(await admin("sacct", "-nXP", "-j", id, "-o", "State")).toMatch(/PREEMPTED|RUNNING/);
        await admin("scancel", intruder);
      };
    };

    it("cancelled by others, preempted, or put back into the queue: the task runs again as another job, at no cost", async () => {
      const cases = [
        ["main", (id: string) => admin("scancel", id)],
        ["yields", intrude],
        ["again", (id: string) => admin("scontrol", "requeue", id)],
      ] as const;
      // side by side: what Slurm takes to put a job back, or to end one, it takes for all of them together
      const losses = cases.map(async ([queue, act]) => {
        const keys = queue === "yields" ? ["-b", "-q low"] : [];
        const run = await submit("--queue", queue, ...keys, "--", "sh", "-c", gate(`gate-${queue}`));
        const first = (await running(run)).attempts[0]!.job!;
        const over = await act(first);
        if (typeof over === "function") await over();
        const second = (await running(run, 2)).attempts[1]!.job!;
        expect(second, queue).not.toBe(first);
        await writeFile(path(`gate-${queue}`), "");
        expect(await doneOf(run), queue).toMatchObject({ retries: 0, losses: 1 });
      });
      await Promise.all(losses);
      await until("no job to be left", async () => (await client.jobs({ kind: "task" })).length === 0);
    });

    it("over the queue's walltime it has failed for time, and says so", async () => {
      const run = await submit("--queue", "brief", "--", "sh", "-c", "sleep 1000");
      const { attempts } = await running(run);
      await admin("scontrol", "update", `JobId=${attempts[0]!.job}`, "EndTime=now");
      expect(await ended(run)).toMatchObject({ state: "FAILED", losses: 0 });
      expect((await client.task(run, 0)).reason).toMatch(/time/i);
    });

    it("a node that is lost takes the task with it, and it runs again elsewhere", async () => {
      const run = await submit("--", "sh", "-c", gate("lost"));
      const { attempts } = await running(run);
      const node = attempts[0]!.host!;
      await lab.killNode(node);
      await lab.downNode(node);
      try {
        await running(run, 2);
        await writeFile(path("lost"), "");
        expect(await doneOf(run)).toMatchObject({ retries: 0, losses: 1 });
      } finally {
        await lab.startNode(node);
        await lab.upNode(node);
      }
      // a node that was switched off comes back with an empty temporary directory
      for (const name of await readdir(slipway.tmp)) await rm(join(slipway.tmp, name), { recursive: true });
    });

    it("a job that vanishes from Slurm is a loss: the task runs again as another one", async () => {
      await fill();
      const run = await submit("--", "sh", "-c", `echo ran >>${path("vanished")}`);
      await until("it to wait", async () => (await pending()).length === 1);
      await lab.stopController();
      await lab.forgetJobs();
      await lab.startController();
      expect(await doneOf(run)).toMatchObject({ retries: 0, losses: 1 });
      expect(await readFile(path("vanished"), "utf8")).toBe("ran\n");
      expect((await client.task(run, 0)).attempts[0]).toMatchObject({ state: "LOST" });
    });
  },
);
