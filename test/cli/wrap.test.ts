import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { daskPython, noDask as reason, noJobqueue } from "../../scripts/test-venv.mjs";
import type { WrapView } from "../../src/api/schemas.ts";
import { connect } from "../../src/client/index.ts";
import { until } from "../until.ts";
import { createHome, ROOT, type Outcome, type RunOptions, type SlipwayHome, type Started } from "./slipway-process.ts";

const CLIENT = join(ROOT, "test", "fixtures", "dask", "client.py");
const PARAMETERS = { walltime: "00:30:00", cores: 1, memory: "500MB", maximum_jobs: 2, "target-duration": "1s" };

let home: SlipwayHome;
beforeEach(async () => {
  home = await createHome();
});
afterEach(() => home.cleanup());

const path = (name: string): string => join(home.cwd, name);
const status = async (name: string): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(path(name), "utf8")) as Record<string, unknown>;
const put = (name: string, body: unknown): Promise<void> =>
  writeFile(path(name), typeof body === "string" ? body : JSON.stringify(body));
const wrap = (
  target: string,
  name: string,
  words: readonly string[] = [],
  options: RunOptions = {},
): Promise<Outcome> => home.run(["wrap", target, "--status-file", name, ...words], options);
/** Somebody listens on a port of every address. */
const listener = (): Promise<{ server: Server; port: number }> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "0.0.0.0", () => resolve({ server, port: (server.address() as AddressInfo).port }));
  });
const wrapRunning = (name: string): Promise<Record<string, unknown>> =>
  until(`${name} to run`, async () => {
    const now = await status(name);
    if (now["status"] === "failed") throw new Error(String(now["reason"]));
    return now["status"] === "running" ? now : undefined;
  });

/** Waits for its status file while the other tests run. */
let patient: { readonly home: SlipwayHome; readonly held: Started; readonly since: number };
beforeAll(async () => {
  const own = await createHome();
  const held = own.start(["wrap", "a::B", "--status-file", "never.json"]);
  patient = { home: own, held, since: performance.now() };
});
afterAll(() => patient.home.cleanup());

describe("slipway wrap and what it is given", () => {
  it("rows 002-11, 002-14: MODULE::SYMBOL and --status-file are needed, and options are checked", async () => {
    const told: [readonly string[], RegExp][] = [
      [["wrap"], /CLUSTER/],
      [["wrap", "a::B"], /--status-file/],
      [["wrap", "hpc/cpu", "--status-file", "s"], /no cluster 'hpc'/],
      [["wrap", "local/x", "--status-file", "s"], /no queue 'x'/],
      [["wrap", "a::B", "--status-file", "s", "--scheduler", "pilot"], /--scheduler is for CLUSTER/],
      [["wrap", "a b::C", "--status-file", "s"], /not MODULE::SYMBOL/],
      [["wrap", "a b", "--status-file", "s"], /CLUSTER\[\/QUEUE\]/],
      [["wrap", "a::B", "--status-file", "s", "--port-range", "9-1"], /--port-range/],
      [["wrap", "a::B", "--status-file", "s", "--timeout", "soon"], /--timeout/],
      [["wrap", "a::B", "--status-file", "s", "--parameter", "cores=1"], /--start/],
      [["wrap", "a::B", "--status-file", "s", "--start", "--parameter", "core=1"], /'core'/],
      [["wrap", "show", "nothing"], /no wrapper 'nothing'/],
    ];
    for (const [words, pattern] of told) {
      const { status: code, stderr } = await home.run(words);
      expect([code, stderr]).toEqual([2, expect.stringMatching(pattern)]);
    }
    expect((await home.run(["wrap", "list"])).stdout).toBe("no wrappers\n");
    expect(await home.json(["wrap", "list"])).toEqual([]);
  });

  it("row 002-53: what is wrong with the file is told in it and on standard error, with exit status 1", async () => {
    const { server: taken, port } = await listener();
    const bad: [string, unknown, RegExp, string[]?][] = [
      ["text", "{parameters", /JSON/],
      ["list", [], /JSON dict/],
      ["none", { other: 1 }, /parameters: is missing/],
      ["missing", { parameters: { ...PARAMETERS, memory: undefined } }, /memory: is missing/],
      ["type", { parameters: { ...PARAMETERS, cores: "4" } }, /cores: must be a whole number.*status file/s],
      ["walltime", { parameters: { ...PARAMETERS, walltime: "00:04:00" } }, /00:05:01/],
      ["ports", { parameters: PARAMETERS }, /no free port.*wider/s, ["--port-range", `${port}-${port}`]],
      ["python", { parameters: PARAMETERS }, /no such program/, ["--python", "/nowhere/python"]],
    ];
    const tried = bad.map(async ([name, body, pattern, words = []]) => {
      await put(name, body);
      const { status: code, stderr, stdout } = await wrap("nowhere::Cluster", name, words);
      expect([name, code, stdout, stderr]).toEqual([name, 1, "", expect.stringMatching(pattern)]);
      const now = await status(name);
      expect([now["status"], now["reason"]]).toEqual(["failed", expect.stringMatching(pattern)]);
    });
    await Promise.all(tried);
    taken.close();
    expect((await status("none"))["other"]).toBe(1);
    expect(await readFile(path("text.bad"), "utf8")).toBe("{parameters");
    expect(await home.json(["wrap", "list"])).toEqual([]);
  });

  it("a Python without Dask is named, with what to do", async () => {
    const bare = path("bare-python");
    await writeFile(bare, '#!/bin/sh\nexec python3 -I -S "$@"\n');
    await chmod(bare, 0o755);
    await put("s.json", { parameters: PARAMETERS });
    const { status: code, stderr } = await wrap("distributed::LocalCluster", "s.json", ["--python", bare]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/has no Dask.*Install dask/s)]);
    expect((await status("s.json"))["reason"]).toMatch(/has no Dask/);
  });
});

describe.skipIf(reason !== undefined)(
  `slipway wrap with Dask${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    const compute = async (name: string, ...words: string[]): Promise<Record<string, unknown>[]> => {
      const { stdout } = await promisify(execFile)(daskPython, [CLIENT, path(name), ...words], {
        cwd: home.cwd,
        env: { ...process.env, TEST_ROOT_OF_SLIPWAY: home.root },
      });
      return stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    };

    it("rows 002-2, 002-12, 002-13: a LocalCluster in the background, found by a second start, listed by a server", async () => {
      const from = 20_000 + Math.floor(Math.random() * 9000);
      const ports = ["--host", "127.0.0.1", "--port-range", `${from}-${from + 80}`];
      const words = ["wrap", "distributed::LocalCluster", "--status-file", "s.json", "--python", daskPython].concat(
        ["--start"],
        ports,
        ["--parameter"],
      );
      const given = [
        "walltime=00:30:00",
        "cores=1",
        "memory=500MB",
        "maximum_jobs=2",
        "target-duration=1s",
        "security=true",
      ];
      const first = await home.json<Record<string, unknown>>([...words, ...given]);
      const second = await home.run([...words, "cores=8"]);
      expect([second.status, second.stdout.trim()]).toEqual([0, first["address"]]);
      expect(first).toMatchObject({
        found: false,
        host: "127.0.0.1",
        address: `tls://127.0.0.1:${String(first["port"])}`,
      });
      for (const key of ["port", "dashboard_port"]) {
        expect(first[key]).toBeGreaterThanOrEqual(from);
        expect(first[key]).toBeLessThanOrEqual(from + 80);
      }
      const lines = await compute("s.json", "1000", "0.002", "distributed.worker.lifetime.duration");
      expect(lines.at(-1)).toMatchObject({ sum: 499_500 });
      const look = lines[0]!["look"] as Record<string, unknown>;
      expect(look).toMatchObject({ threads: 3, config: { "distributed.worker.lifetime.duration": "1500s" } });
      expect(look["variables"]).toMatchObject({ SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: "3" });
      const listening = look["listening"] as number[];
      expect(listening.length).toBeGreaterThan(1);
      expect(listening.filter((port) => port < from || port > from + 80)).toEqual([]);
      const stranger = connectTls({ host: "127.0.0.1", port: Number(first["port"]), rejectUnauthorized: false });
      const answer = await new Promise<string>((resolve) => {
        stranger.on("data", () => resolve("let in"));
        stranger.on("error", () => resolve("refused"));
        stranger.on("close", () => resolve("refused"));
      });
      stranger.destroy();
      expect(answer).toBe("refused");
      expect((await home.run(["wrap", "list"])).stdout).toMatch(/distributed::LocalCluster +running +tls:/);
      await until("the client to be gone", async () => {
        const [fleet] = (await home.json<{ wraps: WrapView[] }>(["status"])).wraps;
        return fleet!.clients === 0 && fleet!.work === 0;
      });
      expect(await home.json(["why", path("s.json")])).toMatchObject({ cause: "idle" });
      await home.run(["up"]);
      const client = connect({ home: home.home });
      const [listed] = await client.wraps();
      client.close();
      expect(listed).toMatchObject({
        target: "distributed::LocalCluster",
        state: "running",
        address: first["address"],
        dashboard: `http://127.0.0.1:${String(first["dashboard_port"])}/status`,
      });
      await home.run(["wrap", "scale", "s.json", "0-1"]);
      expect(await home.json(["wrap", "show", "s.json"])).toMatchObject({ state: "running", maximum: 1 });
      expect((await home.run(["wrap", "down", "s.json"])).stdout).toMatch(/wrapper [0-9a-f]{8} has ended/);
      expect(await home.json(["wrap", "list"])).toEqual([]);
      expect(["s.json", "s.json.jobs", "s.json.tls"].filter((left) => existsSync(path(left)))).toEqual([]);
    });

    it("rows 002-15, 002-16, 002-47, 002-49, 002-55, 002-56: the file may come later; instances and functions are used; idle ones end", async () => {
      const { server, port: taken } = await listener();
      await put(
        "mine.py",
        [
          "import time",
          "from distributed import Client, LocalCluster, fire_and_forget",
          'print("noise on standard output")',
          "def make():",
          "    return LocalCluster(n_workers=0, dashboard_address=None)",
          "def slow():",
          "    time.sleep(3)",
          "    open('worked', 'w').close()",
          "def busy():",
          "    global client",
          "    cluster = make()",
          "    client = Client(cluster)",
          "    fire_and_forget(client.submit(slow))",
          "    return cluster",
          "if __name__ != '__mp_main__':",
          `    ready = LocalCluster(n_workers=0, dashboard_address=':${taken}')`,
        ].join("\n"),
      );
      const start = (symbol: string, name: string, ...words: string[]) =>
        home.start(["wrap", `mine::${symbol}`, "--status-file", name, "--python", daskPython, ...words]);
      const [one, two] = [start("make", "made.json"), start("ready", "ready.json")];
      // work without clients, and a client of its own in the wrapper's Python
      const idle = start("busy", "idle.json", "--timeout", "1");
      for (const name of ["made.json", "ready.json", "idle.json"])
        await put(name, { mine: true, parameters: PARAMETERS });
      const made = await wrapRunning("made.json");
      expect(made).toMatchObject({ mine: true, pid: one.child.pid });
      const second = await wrap("mine::make", "made.json");
      expect([second.status, second.stderr]).toEqual([1, expect.stringContaining("is held by a wrapper")]);
      expect((await status("made.json"))["status"]).toBe("running");
      // a port that was taken is another's: the file holds the one that Dask chose
      const { dashboard_port: dashboard } = await wrapRunning("ready.json");
      expect([Number.isInteger(dashboard), dashboard === taken]).toEqual([true, false]);
      server.close();
      one.child.kill("SIGTERM");
      two.child.kill("SIGHUP");
      const ends = await Promise.all([one.ended, two.ended]);
      expect(ends.map(({ status: code, stdout }) => [code, stdout])).toEqual([
        [0, ""],
        [0, ""],
      ]);
      const { status: code, stderr } = await idle.ended;
      expect([code, stderr]).toEqual([0, expect.stringContaining("no work and no clients for 1 s")]);
      expect(existsSync(path("worked"))).toBe(true);
      expect(
        ["made.json", "ready.json", "idle.json", "made.json.jobs"].filter((name) => existsSync(path(name))),
      ).toEqual([]);
    });

    it.skipIf(noJobqueue !== undefined)(
      `rows 002-4, 002-6, 002-7, 002-9, 002-46, 002-62: nothing of Dask is imported before the plan has come; then every section is set${noJobqueue === undefined ? "" : ` (skipped: ${noJobqueue})`}`,
      async () => {
        const shim = join(ROOT, "dist", "slipway_dask.py");
        const code = [
          "import runpy, sys",
          `runpy.run_path(${JSON.stringify(shim)}, run_name='shim')`,
          "print([name for name in sys.modules if name.split('.')[0] in ('dask', 'distributed', 'dask_jobqueue')])",
        ].join("\n");
        expect((await promisify(execFile)(daskPython, ["-c", code])).stdout.trim()).toBe("[]");
        await put(
          "seen.py",
          [
            "import dask, dask_jobqueue, json, yaml, os",
            "from distributed import LocalCluster",
            "own = yaml.safe_load(open(os.path.join(os.path.dirname(dask_jobqueue.__file__), 'jobqueue.yaml')))['jobqueue']",
            "def make():",
            "    sections = {name: dask.config.get('jobqueue.' + name) for name in own}",
            "    kinds = [getattr(dask_jobqueue, name) for name in dir(dask_jobqueue) if name.endswith('Cluster')]",
            "    jobs = [kind.job_cls for kind in kinds if hasattr(kind, 'job_cls')]",
            "    scripts = {job.config_name: job('tcp://10.0.0.1:1', name='w').job_script() for job in jobs}",
            "    target = dask.config.get('distributed.adaptive.target-duration')",
            "    json.dump([sections, target, scripts], open('seen.json', 'w'))",
            "    return LocalCluster(n_workers=0, dashboard_address=None)",
          ].join("\n"),
        );
        await put("s.json", {
          parameters: {
            ...PARAMETERS,
            project: "capsid",
            job_cpu: 2,
            // what these managers need besides
            extra_dask_config: {
              "jobqueue.htcondor.disk": "1GB",
              "jobqueue.lsf.lsf-units": "mb",
              "jobqueue.lsf.use-stdin": "True",
            },
          },
        });
        const held = home.start(["wrap", "seen::make", "--status-file", "s.json", "--python", daskPython]);
        await wrapRunning("s.json");
        const [sections, target, scripts] = (await status("seen.json")) as unknown as [
          Record<string, Record<string, unknown>>,
          string,
          Record<string, string>,
        ];
        expect(target).toBe("1s");
        expect(Object.keys(sections)).toEqual(
          expect.arrayContaining(["slurm", "oar", "pbs", "sge", "lsf", "htcondor"]),
        );
        for (const [name, section] of Object.entries(sections)) {
          expect(section).toMatchObject({ cores: 1, memory: "500MB", processes: 1, python: daskPython });
          expect(section["account"] ?? section["project"]).toBe("capsid");
          const lines = section["job-script-prologue"] as string[];
          expect(lines).toContain("export DASK_DISTRIBUTED__WORKER__DAEMON=False");
          expect(lines.some((line) => line.includes("PYTHON_CPU_COUNT"))).toBe(name === "slurm");
        }
        expect(sections["slurm"]!["job-cpu"]).toBe(2);
        // its class for this machine is not among those that it offers
        const offered = Object.keys(sections).filter((name) => name !== "local");
        expect(Object.keys(scripts).toSorted()).toEqual(offered.toSorted());
        for (const [name, script] of Object.entries(scripts)) {
          for (const words of ["export DASK_DISTRIBUTED__WORKER__DAEMON=False", "--nthreads 3", "--death-timeout 60"])
            expect(script, name).toContain(words);
          expect(script).toContain("--lifetime 1500s --lifetime-stagger 4m");
        }
        expect(scripts["slurm"]).toContain("#SBATCH --cpus-per-task=2");
        held.child.kill("SIGTERM");
        expect((await held.ended).status).toBe(0);
      },
    );

    it("rows 002-47, 002-48, 002-49, 002-50: anything else is refused, with what it is and what it must be", async () => {
      await put(
        "odd.py",
        [
          "import functools, os",
          "from distributed import LocalCluster",
          "class Other: pass",
          "async def later(): return LocalCluster()",
          "part = functools.partial(LocalCluster, n_workers=0)",
          "def nothing(): return None",
          "def breaks(): raise ValueError('no such luck')",
          "def inner(): return LocalCluster(n_workers=0, processes=False, dashboard_address=None)",
          "def leaves(): raise SystemExit('nobody is here')",
          "def gone(): os._exit(0)",
          ...(noJobqueue === undefined ? ["from dask_jobqueue import OARCluster as Oar"] : []),
        ].join("\n"),
      );
      await put("broken.py", "import not_there_at_all\n");
      const told: [string, RegExp][] = [
        ["odd::Other", /is a class, but not of Dask clusters/],
        ["odd::later", /returned a coroutine/],
        ["odd::part", /is a partial/],
        ["odd::nothing", /returned a NoneType/],
        ["odd::breaks", /no such luck/],
        ["odd::inner", /no other process reaches it.*scheduler_port/s],
        ["odd::missing", /has no missing/],
        ["odd::leaves", /SystemExit: nobody is here/],
        ["odd::gone", /the Python process ended before the cluster was up/],
        ...(noJobqueue === undefined
          ? ([["odd::Oar", /memory_per_core_property_name is missing/]] as [string, RegExp][])
          : []),
        ["broken::Cluster", /module broken cannot be imported.*not_there_at_all/s],
        ["nowhere_at_all::Cluster", /No module named/],
      ];
      const words = ["--python", daskPython];
      for (let at = 0; at < told.length; at += 4)
        await Promise.all(
          told.slice(at, at + 4).map(async ([target, pattern]) => {
            const name = `${target.replace("::", "-")}.json`;
            await put(name, { parameters: PARAMETERS });
            const { status: code, stderr } = await wrap(target, name, words);
            expect([target, code, stderr]).toEqual([target, 1, expect.stringMatching(pattern)]);
            expect(await status(name)).toMatchObject({ status: "failed", reason: expect.stringMatching(pattern) });
          }),
        );
    });
  },
);

it("row 002-16: a status file that does not come is waited for 20 s, and not made", async () => {
  const { status: code, stderr } = await patient.held.ended;
  expect([code, stderr]).toEqual([1, expect.stringContaining("did not appear within 20 s")]);
  expect(performance.now() - patient.since).toBeGreaterThan(20_000);
  expect(existsSync(join(patient.home.cwd, "never.json"))).toBe(false);
});
