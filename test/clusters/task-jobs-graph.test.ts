import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { untilDead } from "./lab/daemons.ts";
import { type SgeLab, skipReason as withoutSge, startSge } from "./lab/sge.ts";
import { type SlurmLab, skipReason as withoutSlurm, startSlurm } from "./lab/slurm.ts";

const reason = withoutSlurm() ?? withoutSge();
const LAYERS = 6;
const WIDTH = 50;
const KILLS = 3;

/**
 * One graph over two real managers at once: half of its tasks are jobs of their own, half go through pilots, and its
 * server is killed again and again.
 */
describe.skipIf(reason !== undefined)(
  `300 tasks, half jobs, half pilots, on Slurm and Grid Engine${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let slurm: SlurmLab;
    let sge: SgeLab;
    let slipway: SlipwayHome;
    let env: Record<string, string | undefined>;

    beforeAll(async () => {
      [slurm, sge] = await Promise.all([
        startSlurm({ nodes: 2, cpus: 8, bigNodes: 0, plainNodes: 0, gpus: {} }),
        startSge({ nodes: 2, slots: 8 }),
      ]);
      const { SGE_ROOT: root, SGE_CELL: cell, SGE_QMASTER_PORT, SGE_EXECD_PORT } = sge.env;
      env = { SGE_QMASTER_PORT, SGE_EXECD_PORT };
      slipway = await createHome();
      await mkdir(slipway.home, { mode: 0o700 });
      const fleet = { max: 1, idle: "5s", period: "1s" };
      const queue = { nodes: 1, cores: 2, walltime: "30m", fleet };
      const clusters = {
        one: { type: "slurm", config: slurm.env["SLURM_CONF"], queues: { q: { ...queue, partition: "batch" } } },
        two: {
          type: "sge",
          bin: sge.bin,
          root,
          cell,
          cluster: "lab",
          queues: { q: { ...queue, "parallel-environment": "smp" } },
        },
      };
      await writeFile(join(slipway.home, "clusters.yaml"), stringify({ default: "one", clusters }));
      expect((await slipway.run(["up"], { env })).status).toBe(0);
    });
    afterAll(async () => {
      try {
        await slipway?.cleanup();
      } finally {
        await Promise.all([slurm?.stop(), sge?.stop()]);
      }
    });

    const ranSoFar = async (): Promise<string[]> =>
      (await readFile(join(slipway.cwd, "ran"), "utf8").catch(() => "")).split("\n").filter((line) => line !== "");

    it("rows 001-43 to 001-46 and 001-60: bin, cell, cluster and root find Grid Engine, and config finds Slurm", async () => {
      const words = ["--via", "job", "--", "sh", "-c", 'echo "$SGE_ROOT|$SGE_CELL|${SLURM_JOB_ID:+slurm}"'];
      const said = await Promise.all(
        ["one", "two"].map(async (cluster) => {
          const outcome = await slipway.run(["run", "--quiet", "--cluster", cluster, ...words], { env });
          expect(outcome).toMatchObject({ status: 0, stderr: "" });
          return outcome.stdout.trim();
        }),
      );
      expect(said).toEqual(["||slurm", `${sge.env["SGE_ROOT"]}|${sge.env["SGE_CELL"]}|`]);
    });

    it("nothing is lost and nothing doubled, however often its server is killed", async () => {
      // each layer waits for the one before; jobs and pilots, both clusters, take turns
      const tasks = Array.from({ length: LAYERS }, (_, layer) => ({
        name: `layer-${layer}`,
        each: { array: `1-${WIDTH}` },
        run: "echo $SLIPWAY_TASK >>ran; sleep 0.2",
        via: layer % 2 === 0 ? "job" : "pilot",
        cluster: layer % 4 < 2 ? "one" : "two",
        ...(layer === 0 ? {} : { after: `layer-${layer - 1}` }),
      }));
      await writeFile(join(slipway.cwd, "graph.yaml"), stringify({ name: "graph", tasks }));
      const { run } = await slipway.json<{ run: number }>(["submit", "graph.yaml"], { env });
      for (let kill = 1; kill <= KILLS; kill += 1) {
        // in a layer of jobs each time
        const from = (kill - 1) * 2 * WIDTH;
        await until(`tasks of layer ${(kill - 1) * 2} to run`, async () => (await ranSoFar()).length > from + kill * 5);
        const { pid } = (await readEndpoint(slipway.home))!;
        process.kill(pid, "SIGKILL");
        await untilDead(pid);
        // jobs go on meanwhile
        await sleep(500);
        expect((await slipway.run(["up"], { env })).status).toBe(0);
      }
      const { status } = await slipway.run(["wait", String(run)], { env, timeoutMs: 170_000 });
      const view = await slipway.json<RunView>(["show", String(run)], { env });
      expect({ status, view }).toMatchObject({
        status: 0,
        view: { counts: { DONE: LAYERS * WIDTH }, retries: 0, losses: 0 },
      });
      const ran = await ranSoFar();
      expect([ran.length, new Set(ran).size]).toEqual([LAYERS * WIDTH, LAYERS * WIDTH]);
      await until("both managers to have nothing left", async () => {
        const left = await slipway.json<unknown[]>(["jobs", "list", "--kind", "task"], { env });
        return left.length === 0;
      });
    });
  },
);
