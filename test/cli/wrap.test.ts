import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { daskPython } from "../../scripts/test-venv.mjs";
import type { WrapView } from "../../src/api/schemas.ts";
import { connect } from "../../src/client/index.ts";
import { until } from "../until.ts";
import { createHome, ROOT, type Outcome, type RunOptions, type SlipwayHome } from "./slipway-process.ts";

const reason = existsSync(daskPython) ? undefined : "dask could not be installed with pip";
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
const wrapRunning = (name: string): Promise<Record<string, unknown>> =>
  until(`${name} to run`, async () => {
    const now = await status(name);
    if (now["status"] === "failed") throw new Error(String(now["reason"]));
    return now["status"] === "running" ? now : undefined;
  });

describe("slipway wrap and what it is given", () => {
  it("rows 002-11, 002-14: MODULE::SYMBOL and --status-file are needed, and options are checked", async () => {
    const told: [readonly string[], RegExp][] = [
      [["wrap"], /MODULE::SYMBOL/],
      [["wrap", "a::B"], /--status-file/],
      [["wrap", "hpc/cpu", "--status-file", "s"], /not possible yet/],
      [["wrap", "a b::C", "--status-file", "s"], /not MODULE::SYMBOL/],
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
    const taken = createServer();
    const port = await new Promise<number>((resolve) =>
      taken.listen(0, "0.0.0.0", () => resolve((taken.address() as { port: number }).port)),
    );
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
    for (const [name, body, pattern, words = []] of bad) {
      await put(name, body);
      const { status: code, stderr, stdout } = await wrap("nowhere::Cluster", name, words);
      expect([name, code, stdout, stderr]).toEqual([name, 1, "", expect.stringMatching(pattern)]);
      const now = await status(name);
      expect([now["status"], now["reason"]]).toEqual(["failed", expect.stringMatching(pattern)]);
    }
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
      for (const key of ["address", "nanny"]) {
        const port = Number(String(look[key]).split(":").at(-1));
        expect([port >= from, port <= from + 80]).toEqual([true, true]);
      }
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
      await put(
        "mine.py",
        [
          "from distributed import LocalCluster",
          'print("noise on standard output")',
          "def make():",
          "    return LocalCluster(n_workers=0, dashboard_address=None)",
          "if __name__ != '__mp_main__':",
          "    ready = LocalCluster(n_workers=0, dashboard_address=':0')",
        ].join("\n"),
      );
      const start = (symbol: string, name: string, ...words: string[]) =>
        home.start(["wrap", `mine::${symbol}`, "--status-file", name, "--python", daskPython, ...words]);
      const [one, two] = [start("make", "made.json"), start("ready", "ready.json")];
      const idle = start("make", "idle.json", "--timeout", "2");
      for (const name of ["made.json", "ready.json", "idle.json"])
        await put(name, { mine: true, parameters: PARAMETERS });
      const made = await wrapRunning("made.json");
      expect(made).toMatchObject({ mine: true, pid: one.child.pid });
      const second = await wrap("mine::make", "made.json");
      expect([second.status, second.stderr]).toEqual([1, expect.stringContaining("is held by a wrapper")]);
      expect((await status("made.json"))["status"]).toBe("running");
      await wrapRunning("ready.json");
      one.child.kill("SIGTERM");
      two.child.kill("SIGHUP");
      const ends = await Promise.all([one.ended, two.ended]);
      expect(ends.map(({ status: code, stdout }) => [code, stdout])).toEqual([
        [0, ""],
        [0, ""],
      ]);
      const { status: code, stderr } = await idle.ended;
      expect([code, stderr]).toEqual([0, expect.stringContaining("no work and no clients for 2 s")]);
      expect(
        ["made.json", "ready.json", "idle.json", "made.json.jobs"].filter((name) => existsSync(path(name))),
      ).toEqual([]);
    });

    it("rows 002-4, 002-7, 002-9, 002-46: nothing of Dask is imported before the plan has come; then every section is set", async () => {
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
          "    json.dump([sections, dask.config.get('distributed.adaptive.target-duration')], open('seen.json', 'w'))",
          "    return LocalCluster(n_workers=0, dashboard_address=None)",
        ].join("\n"),
      );
      await put("s.json", { parameters: { ...PARAMETERS, project: "capsid", job_cpu: 2 } });
      const held = home.start(["wrap", "seen::make", "--status-file", "s.json", "--python", daskPython]);
      await wrapRunning("s.json");
      const [sections, target] = (await status("seen.json")) as unknown as [
        Record<string, Record<string, unknown>>,
        string,
      ];
      expect(target).toBe("1s");
      expect(Object.keys(sections)).toEqual(expect.arrayContaining(["slurm", "oar", "pbs", "sge", "lsf", "htcondor"]));
      for (const [name, section] of Object.entries(sections)) {
        expect(section).toMatchObject({ cores: 1, memory: "500MB", processes: 1, python: daskPython });
        expect(section["account"] ?? section["project"]).toBe("capsid");
        const lines = section["job-script-prologue"] as string[];
        expect(lines).toContain("export DASK_DISTRIBUTED__WORKER__DAEMON=False");
        expect(lines.some((line) => line.includes("PYTHON_CPU_COUNT"))).toBe(name === "slurm");
      }
      expect(sections["slurm"]!["job-cpu"]).toBe(2);
      held.child.kill("SIGTERM");
      expect((await held.ended).status).toBe(0);
    });

    it("rows 002-48, 002-50: anything else is refused, with what it is and what it must be", async () => {
      await put(
        "odd.py",
        [
          "import functools",
          "from distributed import LocalCluster",
          "class Other: pass",
          "async def later(): return LocalCluster()",
          "part = functools.partial(LocalCluster, n_workers=0)",
          "def nothing(): return None",
          "def breaks(): raise ValueError('no such luck')",
          "def inner(): return LocalCluster(n_workers=0, processes=False, dashboard_address=None)",
          "from dask_jobqueue import OARCluster as Oar",
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
        ["odd::Oar", /memory_per_core_property_name is missing/],
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
