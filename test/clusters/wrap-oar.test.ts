import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { daskPython, noJobqueue } from "../../scripts/test-venv.mjs";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { startUser } from "../fixtures/dask/user.ts";
import { until } from "../until.ts";
import { skipReason, startOar, type OarLab } from "./lab/oar.ts";

const reason = noJobqueue ?? skipReason();
const CLIENT = join(import.meta.dirname, "..", "fixtures", "dask", "client.py");

/** As on Slurm, where jobs inherit neither PATH nor HOME and nodes are apart from this machine. */
describe.skipIf(reason !== undefined)(
  `slipway wrap on OAR${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: OarLab;
    let home: SlipwayHome;
    beforeAll(async () => {
      lab = await startOar({ nodes: 2, cores: 2 });
      home = await createHome({ user: lab.user });
      await cp(dirname(daskPython), join(home.root, "dask"), { recursive: true, verbatimSymlinks: true });
    });
    afterAll(async () => {
      await home?.cleanup();
      await lab?.stop();
    });

    /** A Python that nodes see. */
    const python = (): string => join(home.root, "dask", "run");
    const jobs = async (): Promise<string[]> =>
      Object.keys(JSON.parse((await lab.run(["oarstat", "--json"])).stdout || "{}") as object);

    it("rows 002-3, 002-27: 1,000 tasks in OAR's jobs, from 0 to 0", async () => {
      const file = join(home.cwd, "s.json");
      const parameters = {
        walltime: "00:30:00",
        cores: 1,
        memory: "100MB",
        maximum_jobs: 2,
        "target-duration": "2s",
        memory_per_core_property_name: "memcore",
      };
      await writeFile(file, JSON.stringify({ parameters }));
      await home.own(file);
      const held = home.start(
        ["wrap", "dask_jobqueue::OARCluster", "--status-file", file, "--host", lab.gateway].concat([
          "--python",
          python(),
        ]),
        { env: lab.env, timeoutMs: 170_000 },
      );
      await until("it to run", async () => {
        const now = JSON.parse(await readFile(file, "utf8")) as { status?: string; reason?: string };
        if (now.status === "failed") throw new Error(now.reason);
        return now.status === "running";
      });
      const { stdout } = await promisify(execFile)(daskPython, [CLIENT, file, "1000", "0.005", "temporary-directory"], {
        cwd: home.cwd,
      });
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(lines[0]).toMatchObject({ look: { threads: 3, config: { "temporary-directory": "/tmp" } } });
      expect(lines.at(-1)).toMatchObject({ sum: 499_500 });
      await until("no job to be left", async () => (await jobs()).length === 0);
      expect(existsSync(file)).toBe(true);
      held.child.kill("SIGTERM");
      const { status, stderr } = await held.ended;
      expect([status, existsSync(file)], stderr).toEqual([0, false]);
      expect(await jobs()).toEqual([]);
    });

    it("Slipway's own path: 1,000 tasks on workers in pilots, from 0 to 0, without dask-jobqueue", async () => {
      const file = join(home.cwd, "own.json");
      const clusters = join(home.cwd, "clusters.yaml");
      const queue = { cores: 1, memory: "100M", "memory-per-core-property-name": "memcore", walltime: "30m" };
      await writeFile(clusters, JSON.stringify({ clusters: { oar: { type: "oar", queues: { all: queue } } } }));
      await home.own(clusters);
      const { address } = await home.json<{ address: string }>(
        ["wrap", "oar/all", "--status-file", file, "--host", lab.gateway, "--clusters", clusters, "--start"].concat([
          "--python",
          python(),
          "--parameter",
          "maximum_jobs=2",
          "target-duration=2s",
        ]),
        { env: lab.env },
      );
      expect(address).toMatch(/^tls:/);
      const user = startUser(file, ["1000", "0.005"], home);
      expect(await user.saw<number>("sum")).toBe(499_500);
      expect(await user.ended).toBe(0);
      await until("no job to be left", async () => (await jobs()).length === 0);
      expect((await home.run(["wrap", "down", file], { env: lab.env })).stdout).toContain("has ended");
      expect([await jobs(), existsSync(file)]).toEqual([[], false]);
    });
  },
);
