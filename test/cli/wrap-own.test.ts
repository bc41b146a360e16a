import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { daskPython } from "../../scripts/test-venv.mjs";
import { startUser } from "../fixtures/dask/user.ts";
import { until } from "../until.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

const reason = existsSync(daskPython) ? undefined : "dask could not be installed with pip";
const GIVEN = { cores: 1, memory: "400MB", maximum_jobs: 2, "target-duration": "1s", transformation_throttle: 1 };

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly cluster: string;
  readonly queue: string;
  readonly problem?: string;
  readonly workers?: readonly { readonly name: string; readonly threads: number }[];
  readonly pilots?: readonly { readonly id: string; readonly workers: number; readonly agents: number }[];
}

/** Dask workers in pilots on this machine, with a real client. */
describe.skipIf(reason !== undefined)(
  `slipway wrap CLUSTER${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let home: SlipwayHome;
    beforeEach(async () => {
      home = await createHome();
    });
    afterEach(() => home.cleanup());

    const path = (name: string): string => join(home.cwd, name);
    const status = async (name: string): Promise<Record<string, unknown>> =>
      JSON.parse(await readFile(path(name), "utf8")) as Record<string, unknown>;
    const shown = (name: string): Promise<Shown> => home.json<Shown>(["wrap", "show", name]);
    const start = (name: string, given: object, ...words: string[]): Promise<Record<string, unknown>> =>
      home.json<Record<string, unknown>>(
        ["wrap", "local", "--status-file", name, "--start", "--python", daskPython, ...words, "--parameter"].concat(
          Object.entries({ ...GIVEN, ...given }).map(([key, value]) => `${key}=${String(value)}`),
        ),
      );
    const noneLeft = async (name: string): Promise<void> => {
      await until("it to end", async () => (await home.json<unknown[]>(["wrap", "list"])).length === 0);
      expect([name, `${name}.jobs`, `${name}.tls`].filter((left) => existsSync(path(left)))).toEqual([]);
      expect((await readdir(join(home.home, "wraps"))).filter((file) => !file.endsWith(".log"))).toEqual([]);
    };

    it("1,000 tasks on workers that come and go, behind tls; idle, it ends and leaves nothing", async () => {
      const { address } = await start("s.json", {}, "--host", "127.0.0.1", "--timeout", "4");
      expect(address).toMatch(/^tls:\/\/127\.0\.0\.1:\d+$/);
      // connected, and idle: it keeps the cluster, but none of its workers
      const idle = startUser(path("s.json"), ["0", "0", "--stay"], home);
      await idle.saw("connected");
      const client = startUser(path("s.json"), ["1000", "0.01", "distributed.worker.daemon"], home);
      expect(await client.saw("look")).toMatchObject({
        threads: 1,
        config: { "distributed.worker.daemon": false },
        variables: { SEAMLESS_WORKER_TRANSFORMATION_THROTTLE: "1", PYTHON_CPU_COUNT: "1" },
      });
      await home.run(["wrap", "scale", "s.json", "2"]);
      const both = await until("two workers", async () => {
        const now = await shown("s.json");
        return now.pilots?.reduce((sum, { workers }) => sum + workers, 0) === 2 ? now : undefined;
      });
      expect(both).toMatchObject({ state: "running", cluster: "local", queue: "default" });
      // by its name a worker tells its job
      const jobs = both.pilots!.map(({ id }) => `p${id}`);
      expect(both.workers!.every(({ name }) => jobs.includes(name.split("-")[0]!))).toBe(true);
      // whoever has no key is not let in
      const stranger = `from distributed import Client; Client("${String(address)}", timeout=5)`;
      await expect(promisify(execFile)(daskPython, ["-c", stranger])).rejects.toThrow(/Security|encrypt|tls/i);
      expect(await client.saw("sum")).toBe(499_500);
      expect(await client.ended).toBe(0);
      await home.run(["wrap", "scale", "s.json", "0-2"]);
      await until("all to be let go", async () => {
        const { workers = [], pilots = [] } = await shown("s.json");
        return workers.length + pilots.length === 0;
      });
      idle.end();
      await noneLeft("s.json");
    });

    it("a worker that dies before it connects is reported with its words and replaced; a killed wrapper leaves nothing", async () => {
      const python = path("python");
      const lines = [
        "#!/bin/sh",
        `case "$*" in *dask_worker*) test -e "${path("flag")}" || { echo no luck today >&2; exit 3; };; esac`,
        `exec "${daskPython}" "$@"`,
      ];
      await writeFile(python, `${lines.join("\n")}\n`);
      await chmod(python, 0o755);
      await start("s.json", { interactive: true, maximum_jobs: 1, security: false }, "--python", python);
      const problem = await until("the problem", async () => (await status("s.json"))["problem"]);
      expect(problem).toMatch(/worker \d+( on pilot 1)? ended before it connected \(exit code 3\): no luck today/);
      // the registry has it with the next look
      await until("it to be shown", async () => (await shown("s.json")).problem?.includes("no luck today"));
      await writeFile(path("flag"), "");
      const { pilots } = await until("a worker", async () => {
        const now = await shown("s.json");
        return now.workers?.length === 1 && now.pilots?.length === 1 && now.problem === undefined ? now : undefined;
      });
      expect(pilots).toMatchObject([{ agents: 1, workers: 1 }]);
      expect((await status("s.json"))["problem"]).toBeUndefined();

      process.kill(Number((await status("s.json"))["pid"]), "SIGKILL");
      await until("it to be lost", async () => (await shown("s.json")).state === "lost");
      // the next start ends what is left, and begins anew
      const again = await start("s.json", { interactive: true, maximum_jobs: 1, security: false }, "--python", python);
      expect(again).toMatchObject({ found: false, address: expect.stringMatching(/^tcp:/) });
      expect((await home.run(["wrap", "down", "s.json"])).stdout).toMatch(/has ended/);
      await noneLeft("s.json");
    });

    it("what the queue gives need not be given; what the cluster does not know is told by the parameter's name", async () => {
      const told: [Record<string, unknown>, RegExp][] = [
        [{ cores: 1 }, /memory: is missing/],
        [{ ...GIVEN, memory_per_core_property_name: "m" }, /memory_per_core_property_name: is a key of oar clusters/],
        [{ ...GIVEN, lifetime: "0s" }, /lifetime: must be more than nothing/],
        [{ ...GIVEN, walltime: "00:04:00", "lifetime-stagger": "4m" }, /00:05:01/],
      ];
      for (const [parameters, pattern] of told) {
        await writeFile(path("s.json"), JSON.stringify({ parameters }));
        const { status: code, stderr } = await home.run(["wrap", "local", "--status-file", "s.json"]);
        expect([code, stderr]).toEqual([1, expect.stringMatching(pattern)]);
        expect(await status("s.json")).toMatchObject({ status: "failed", reason: expect.stringMatching(pattern) });
      }
      expect(await home.json(["wrap", "list"])).toEqual([]);
      expect(await readdir(join(home.home, "wraps"))).toEqual([]);
    });
  },
);
