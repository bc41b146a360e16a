import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { daskPython, noJobqueue } from "../../scripts/test-venv.mjs";
import { createHome, type SlipwayHome, type Started } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { childrenOf, freePorts, untilDead } from "./lab/daemons.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

const reason = noJobqueue ?? skipReason();
const CLIENT = join(import.meta.dirname, "..", "fixtures", "dask", "client.py");
const BASE = { walltime: "00:30:00", cores: 1, memory: "300MB", maximum_jobs: 3, "target-duration": "2s" };

interface Status {
  readonly status?: string;
  readonly reason?: string;
  readonly problem?: string;
  readonly address: string;
  readonly port: number;
  readonly dashboard_port: number;
  readonly pid: number;
  readonly host: string;
  readonly own?: string;
}
interface Looked {
  readonly config: Readonly<Record<string, unknown>>;
  readonly total: Readonly<Record<string, number>>;
  readonly threads: number;
  readonly address: string;
  readonly nanny: string;
  readonly listening: readonly number[];
  readonly lifetime: number;
  readonly variables: Readonly<Record<string, string | null>>;
}

/** Dask clusters of dask-jobqueue in real Slurm jobs, with a real client. */
describe.skipIf(reason !== undefined)(
  `slipway wrap on Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let home: SlipwayHome;
    beforeAll(async () => {
      lab = await startSlurm({ nodes: 2, cpus: 8, bigNodes: 0, plainNodes: 0, gpus: {} });
      home = await createHome();
    });
    afterAll(async () => {
      await home?.cleanup();
      await lab?.stop();
    });

    const path = (name: string): string => join(home.cwd, name);
    const status = async (name: string): Promise<Status> => JSON.parse(await readFile(path(name), "utf8")) as Status;
    const running = (name: string, wrap: Started): Promise<Status> =>
      until(`${name} to run`, async () => {
        if (wrap.child.exitCode !== null) throw new Error(JSON.stringify(await wrap.ended));
        const now = await status(name);
        return now.status === "running" ? now : undefined;
      });
    /** Writes the status file and starts a wrapper in the foreground. */
    const wrap = async (
      name: string,
      parameters: object,
      words: readonly string[] = [],
      env = {},
    ): Promise<Started> => {
      await writeFile(
        path(name),
        JSON.stringify({ own: "kept", parameters: { ...BASE, tmpdir: home.cwd, ...parameters } }),
      );
      return again(name, words, env);
    };
    const again = (name: string, words: readonly string[] = [], env = {}): Started =>
      home.start(
        [
          "wrap",
          "dask_jobqueue::SLURMCluster",
          "--status-file",
          name,
          "--host",
          "127.0.0.1",
          "--python",
          daskPython,
          ...words,
        ],
        { env: { ...lab.env, ...env }, timeoutMs: 170_000 },
      );
    /** Ids of its jobs that wait or run. */
    const jobs = async (id: string): Promise<string[]> => {
      const { stdout } = await lab.run(["squeue", "--noheader", "--format=%A", `--name=dask-${id}`]);
      return stdout.split("\n").filter((line) => line !== "");
    };
    const idOf = async (name: string): Promise<string> => (await home.json<{ id: string }>(["wrap", "show", name])).id;

    interface Client {
      readonly lines: Readonly<Record<string, unknown>>[];
      saw<T>(key: string): Promise<T>;
      readonly ended: Promise<number | null>;
    }
    const client = (name: string, ...words: string[]): Client => {
      const child = spawn(daskPython, [CLIENT, path(name), ...words], {
        cwd: home.cwd,
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, TEST_ROOT_OF_SLIPWAY: home.root },
      });
      const lines: Record<string, unknown>[] = [];
      let text = "";
      let errors = "";
      child.stderr.on("data", (data: Buffer) => (errors += data.toString()));
      child.stdout.on("data", (data: Buffer) => {
        text += data.toString();
        const whole = text.split("\n");
        text = whole.pop()!;
        for (const line of whole) lines.push(JSON.parse(line) as Record<string, unknown>);
      });
      return {
        lines,
        ended: new Promise((resolve) => child.once("close", resolve)),
        saw: (key) =>
          until(`the client to say ${key}`, () => {
            if (child.exitCode !== null && child.exitCode !== 0) throw new Error(errors);
            return lines.findLast((line) => key in line)?.[key] as never;
          }),
      };
    };

    it.concurrent("rows 002-1, 002-3, 002-10, 002-34: 1,000 tasks from 0 to 0 jobs, one cancelled in between; our configuration wins", async () => {
      const [first = 0] = await freePorts(1);
      const range = `${first}-${first + 60}`;
      const jobqueue = {
        slurm: { cores: 64, memory: "9TB", queue: "nowhere", processes: 9, walltime: "9-00:00:00", python: "false" },
      };
      const hostile = {
        // all of the system, of which the user's own overrides some
        etc: {
          distributed: {
            worker: {
              daemon: true,
              lifetime: { duration: "1h", stagger: "1h" },
              resources: { BAD: 1 },
              memory: { target: 0.1 },
              connections: { outgoing: 1 },
            },
            scheduler: { "unknown-task-duration": "9h", "allowed-failures": 77, "worker-ttl": "1s" },
            comm: { timeouts: { connect: "1ms" } },
          },
          "temporary-directory": "/nowhere",
          jobqueue,
        },
        user: {
          distributed: {
            worker: { daemon: true, lifetime: { duration: "2h" }, memory: { target: 0.2, spill: 0.3 } },
            scheduler: { "unknown-task-duration": "8h", bandwidth: "7 MiB" },
          },
          jobqueue,
        },
      };
      for (const [name, body] of Object.entries(hostile)) {
        await mkdir(path(name));
        await writeFile(path(`${name}/hostile.yaml`), JSON.stringify(body));
      }
      const held = await wrap(
        "real.json",
        {
          partition: "batch",
          "dask-resources": { S: 3 },
          extra_dask_config: {
            "distributed.worker.memory.target": "0.5",
            "distributed.worker.connections.outgoing": "40",
            "distributed.scheduler.worker-ttl": "5 minutes",
            "distributed.comm.timeouts.connect": "40s",
          },
        },
        ["--port-range", range, "--timeout", "20"],
        { DASK_ROOT_CONFIG: path("etc"), DASK_CONFIG: path("user") },
      );
      const { address, port, dashboard_port: dashboard, host, pid, own } = await running("real.json", held);
      const inRange = (value: number): boolean => value >= first && value <= first + 60;
      // rows 002-13, 002-44, 002-54
      expect([inRange(port), inRange(dashboard), port !== dashboard, host, pid, own]).toEqual([
        true,
        true,
        true,
        "127.0.0.1",
        held.child.pid,
        "kept",
      ]);
      expect(address).toBe(`tcp://127.0.0.1:${port}`);
      const id = await idOf("real.json");
      expect(await jobs(id)).toEqual([]);

      const ours = {
        "distributed.worker.daemon": false,
        "distributed.worker.lifetime.duration": "1500s",
        "distributed.worker.lifetime.stagger": "4m",
        "distributed.worker.resources.S": 3,
        "distributed.worker.memory.target": 0.5,
        "distributed.worker.connections.outgoing": 40,
        "distributed.scheduler.unknown-task-duration": "1m",
        "distributed.scheduler.worker-ttl": "5 minutes",
        "distributed.comm.timeouts.connect": "40s",
        "temporary-directory": home.cwd,
      };
      // what the wrapper does not set is the site's: its files are read
      const theirs = {
        "distributed.scheduler.allowed-failures": 77,
        "distributed.worker.memory.spill": 0.3,
        "distributed.scheduler.bandwidth": "7 MiB",
      };
      const user = client("real.json", "1000", "0.02", ...Object.keys({ ...ours, ...theirs }));
      const looked = await user.saw<Looked>("look");
      expect(looked.config).toEqual({ ...ours, ...theirs });
      expect(looked.total).toEqual({ S: 3 });
      expect(looked.threads).toBe(3);
      expect(looked.variables).toMatchObject({
        PYTHON_CPU_COUNT: looked.variables["SLURM_JOB_CPUS_PER_NODE"],
        SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: "3",
      });
      expect(looked.listening.length).toBeGreaterThan(1);
      expect(looked.listening.filter((each) => !inRange(each))).toEqual([]);

      await user.saw("done");
      await lab.run(["scancel", looked.variables["SLURM_JOB_ID"]!]);
      expect(await user.saw<number>("sum")).toBe(499_500);
      expect(await user.saw<number>("most")).toBeGreaterThan(1);
      expect(await user.ended).toBe(0);
      await until("no job to be left", async () => (await jobs(id)).length === 0);
      // it scaled down, and ends later
      expect(existsSync(path("real.json"))).toBe(true);
      const { status: code, stderr } = await held.ended;
      expect([code, existsSync(path("real.json")), existsSync(path("real.json.jobs"))]).toEqual([0, false, false]);
      expect(stderr).toContain("can run code as you");
      expect(await jobs(id)).toEqual([]);
    });

    it.concurrent("rows 002-35, 002-36: workers that reach the end of their life are replaced, and no result is lost; all over tls", async () => {
      const held = await wrap("life.json", {
        lifetime: "20s",
        "lifetime-stagger": "1s",
        maximum_jobs: 1,
        transformation_throttle: 1,
        security: true,
      });
      expect((await running("life.json", held)).address).toMatch(/^tls:/);
      // 22 s of work for one worker at a time
      const user = client("life.json", "44", "0.5", "distributed.comm.require-encryption");
      const looked = await user.saw<Looked>("look");
      expect([looked.address, looked.config]).toEqual([
        expect.stringMatching(/^tls:/),
        { "distributed.comm.require-encryption": true },
      ]);
      const id = await idOf("life.json");
      const [first] = await until("the first job", async () => ((await jobs(id)).length > 0 ? jobs(id) : undefined));
      expect(await user.saw<number>("sum")).toBe((43 * 44) / 2);
      await until("the first job to go", async () => !(await jobs(id)).includes(first!));
      held.child.kill("SIGTERM");
      const { status: code, stderr } = await held.ended;
      expect([code, stderr]).toEqual([0, expect.not.stringContaining("can run code as you")]);
      expect([await jobs(id), existsSync(path("life.json.tls"))]).toEqual([[], false]);
    });

    it.concurrent("jobs that die before they connect, or are refused, are reported with their words and replaced", async () => {
      const flag = path("flag");
      const bad = `test -e ${flag} || { echo no luck today >&2; exit 3; }`;
      const [first = 0] = await freePorts(1);
      const ports = ["--port-range", `${first}-${first + 5}`];
      const held = await wrap("bad.json", { interactive: true, maximum_jobs: 1, job_script_prologue: [bad] }, ports);
      await running("bad.json", held);
      const problem = await until("the problem", async () => (await status("bad.json")).problem);
      expect(problem).toContain("ended before its worker connected");
      expect(problem).toContain("no luck today");
      await writeFile(flag, "");
      const connected = (): Promise<string> =>
        until("a worker", async () => {
          const { jobs: all = [] } = await home.json<{ jobs?: { id: string; connected: boolean }[] }>([
            "wrap",
            "show",
            "bad.json",
          ]);
          return all.find((each) => each.connected)?.id;
        });
      const ghost = await connected();
      await until("the problem to be over", async () => (await status("bad.json")).problem === undefined);
      // its successor takes the same ports, and still is not taken for it
      await lab.run(["scancel", ghost]);
      await until("another worker", async () => (await connected()) !== ghost);
      expect((await home.run(["wrap", "down", "bad.json"], { env: lab.env })).stdout).toContain("has ended");
      expect((await held.ended).status).toBe(0);

      const refused = await wrap("refused.json", { interactive: true, maximum_jobs: 1, partition: "nowhere" });
      await running("refused.json", refused);
      const words = await until("the refusal", async () => (await status("refused.json")).problem);
      expect(words).toMatch(/a job was refused: .*invalid partition/i);
      refused.child.kill("SIGINT");
      expect((await refused.ended).status).toBe(0);
    });

    it.concurrent("whoever is killed, no pending job is left: by the shim, by the wrapper, by the next start; orphans end", async () => {
      const pending = {
        interactive: true,
        maximum_jobs: 1,
        job_extra_directives: ["--begin=now+1hour"],
        extra_dask_config: { "jobqueue.slurm.death-timeout": "2" },
      };
      const one = (id: string): Promise<string> =>
        until("a pending job", async () => {
          const known = await readFile(path("kill.json.jobs"), "utf8").catch(() => "");
          return (await jobs(id)).find((job) => known.includes(`"${job}"`));
        });
      const none = (id: string): Promise<true> => until("no job to be left", async () => (await jobs(id)).length === 0);

      const first = await wrap("kill.json", pending);
      await running("kill.json", first);
      const id = await idOf("kill.json");
      await one(id);
      first.child.kill("SIGKILL");
      await none(id);
      expect(await home.json(["wrap", "list"])).toContainEqual(expect.objectContaining({ id, state: "lost" }));

      const second = again("kill.json");
      const pid = (
        await until("another", async () => {
          const now = await status("kill.json");
          return now.pid === second.child.pid ? now : undefined;
        })
      ).pid;
      const orphan = await one(id);
      await home.run(["wrap", "scale", "kill.json", "2"]);
      const job = await until("a second job", async () => {
        const known = await readFile(path("kill.json.jobs"), "utf8").catch(() => "");
        return (await jobs(id)).find((each) => each !== orphan && known.includes(`"${each}"`));
      });
      const [shim = ""] = await childrenOf(pid);
      // both at once: nobody is left to cancel
      second.child.kill("SIGSTOP");
      process.kill(Number(shim), "SIGKILL");
      second.child.kill("SIGKILL");
      await untilDead(pid);
      expect((await jobs(id)).toSorted()).toEqual([orphan, job].toSorted());
      // one that starts now finds nobody, and ends by itself
      await lab.run(["scontrol", "update", `JobId=${orphan}`, "StartTime=now"]);
      await until("the orphan to end", async () => !(await jobs(id)).includes(orphan));
      expect(await jobs(id)).toEqual([job]);

      const third = again("kill.json");
      await until("the third", async () => (await status("kill.json")).pid === third.child.pid);
      await until("the old job to go", async () => !(await jobs(id)).includes(job));
      await one(id);
      const [last = ""] = await childrenOf(third.child.pid!);
      process.kill(Number(last), "SIGKILL");
      const { status: code } = await third.ended;
      expect([code, (await status("kill.json")).status]).toEqual([1, "failed"]);
      expect((await status("kill.json")).reason).toContain("died");
      expect(await jobs(id)).toEqual([]);
    });
  },
);
