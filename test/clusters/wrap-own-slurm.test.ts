import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { daskPython } from "../../scripts/test-venv.mjs";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { type DaskUser, startUser } from "../fixtures/dask/user.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

const reason = existsSync(daskPython) ? skipReason() : "dask could not be installed with pip";

interface Status {
  readonly id: string;
  readonly address: string;
}
interface Shown {
  readonly id: string;
  readonly workers?: readonly { readonly name: string }[];
  readonly pilots?: readonly { readonly id: string; readonly job: string; readonly workers: number }[];
}

/** Dask workers in pilots of a real Slurm, with a real client and without dask-jobqueue. */
describe.skipIf(reason !== undefined)(
  `slipway wrap CLUSTER on Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let home: SlipwayHome;
    beforeAll(async () => {
      lab = await startSlurm({ nodes: 2, cpus: 8, bigNodes: 0, plainNodes: 0, gpus: {} });
      home = await createHome();
      const queue = { partition: "batch", cores: 1, memory: "300M", walltime: "30m", fleet: { period: "2s" } };
      const hpc = { type: "slurm", config: lab.env["SLURM_CONF"], queues: { cpu: queue } };
      await mkdir(home.home, { recursive: true, mode: 0o700 });
      await writeFile(join(home.home, "clusters.yaml"), JSON.stringify({ clusters: { hpc } }));
    });
    afterAll(async () => {
      await home?.cleanup();
      await lab?.stop();
    });

    const path = (name: string): string => join(home.cwd, name);
    const status = async (name: string): Promise<Status> => JSON.parse(await readFile(path(name), "utf8")) as Status;
    const shown = (name: string): Promise<Shown> => home.json<Shown>(["wrap", "show", name]);
    const user = (name: string, ...words: string[]): DaskUser => startUser(path(name), words, home);
    /** Its jobs that wait or run. */
    const jobsOf = async (id: string): Promise<string[]> => {
      const { stdout } = await lab.run(["squeue", "--noheader", "--format=%A %j"]);
      const mine = stdout.split("\n").filter((line) => line.includes(` dask-${id}-`));
      return mine.map((line) => line.split(" ")[0]!);
    };
    const down = async (name: string, id: string): Promise<void> => {
      expect((await home.run(["wrap", "down", name], { env: lab.env })).stdout).toContain("has ended");
      expect(await jobsOf(id)).toEqual([]);
    };
    const start = (name: string, parameters: object, ...words: string[]): Promise<Status> =>
      home.json<Status>(
        ["wrap", "hpc", "--status-file", name, "--start", "--python", daskPython, ...words, "--parameter"].concat(
          Object.entries({ "target-duration": "2s", ...parameters }).map(
            ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
          ),
        ),
        { env: lab.env },
      );

    it.concurrent("1,000 tasks from 0 to 0 jobs, one cancelled in between, and keep-alive ends it all", async () => {
      const { id } = await start("real.json", { maximum_jobs: 3, transformation_throttle: 1 }, "--timeout", "8");
      expect(await jobsOf(id)).toEqual([]);
      const client = user("real.json", "1000", "0.02", "distributed.worker.daemon");
      await client.saw("done");
      const { job } = await until("a pilot with a worker", async () =>
        (await shown("real.json")).pilots?.find(({ workers }) => workers > 0),
      );
      expect(await jobsOf(id)).toContain(job);
      await lab.run(["scancel", job]);
      expect(await client.saw<number>("sum")).toBe(499_500);
      expect(await client.saw<number>("most")).toBeGreaterThan(1);
      expect(await client.ended).toBe(0);
      await until("it to end by itself", async () =>
        (await home.json<Shown[]>(["wrap", "list"])).every((wrap) => wrap.id !== id),
      );
      expect([existsSync(path("real.json")), await jobsOf(id)]).toEqual([false, []]);
    });

    it.concurrent("a worker's end of life never counts against a task, and its job is replaced", async () => {
      const { id } = await start("life.json", {
        lifetime: "20s",
        "lifetime-stagger": "1s",
        maximum_jobs: 1,
        transformation_throttle: 1,
        extra_dask_config: { "distributed.scheduler.allowed-failures": "0" },
      });
      const client = user("life.json", "28", "1");
      const [first] = await until("the first job", async () => {
        const now = await jobsOf(id);
        return now.length > 0 ? now : undefined;
      });
      expect(await client.saw<number>("sum")).toBe((27 * 28) / 2);
      await until("the first job to go", async () => !(await jobsOf(id)).includes(first!));
      await down("life.json", id);
    });

    it.concurrent("the scheduler lives in the first pilot, and begins again in another when that is cancelled", async () => {
      const { id, address } = await start("far.json", { maximum_jobs: 1, interactive: true }, "--scheduler", "pilot");
      const [first, ...others] = await jobsOf(id);
      expect([first, others]).toEqual([expect.stringMatching(/^\d+$/), []]);
      expect(await user("far.json", "20", "0.01").saw<number>("sum")).toBe(190);
      // scheduler and worker share it
      const { pilots } = await until("its worker", async () => {
        const now = await shown("far.json");
        return now.pilots?.some(({ workers }) => workers > 0) === true ? now : undefined;
      });
      expect(pilots).toMatchObject([{ job: first, workers: 1 }]);
      await lab.run(["scancel", first!]);
      const moved = await until("another address", async () => {
        const now = await status("far.json");
        return now.address === address ? undefined : now;
      });
      expect(moved).toMatchObject({ status: "running", address: expect.stringMatching(/^tls:/) });
      expect(await user("far.json", "20", "0.01").saw<number>("sum")).toBe(190);
      expect((await home.run(["wrap", "show", "far.json"])).stdout).toContain(moved.address);
      await down("far.json", id);
    });
  },
);
