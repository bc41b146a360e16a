import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { MPI_SUM } from "../fixtures/mpi-sum.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

/** Tasks over several nodes of a pilot on a real Slurm: started by the agents, by srun and by mpiexec. */

const reason = skipReason();

const CLUSTERS = `
default: hpc
clusters:
  hpc:
    type: slurm
    scratch: SCRATCH
    queues:
      trio: { partition: batch, nodes: 3, cores: 2, memory: 1G, walltime: 1h, fleet: { max: 1, idle: 1h, period: 1s } }
      pair: { partition: batch, nodes: 2, cores: 4, memory: 1G, walltime: 1h, fleet: { max: 1, idle: 1h, period: 1s } }
`;

describe.skipIf(reason !== undefined)(
  `tasks over several nodes on a real Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let home: SlipwayHome;
    beforeAll(async () => {
      lab = await startSlurm({ nodes: 3, bigNodes: 0, nodeTimeout: 5 });
      home = await createHome();
      await mkdir(home.home, { recursive: true, mode: 0o700 });
      // what a node that loses its power leaves in its scratch stays there
      await writeFile(join(home.home, "clusters.yaml"), CLUSTERS.replace("SCRATCH", join(lab.root, "scratch")));
      await home.run(["up"], { env: lab.env });
    });
    afterAll(async () => {
      await home?.cleanup();
      await lab?.stop();
    });

    const run = (...words: string[]): Promise<RunView> =>
      home.json<RunView>(["run", ...(words.includes("--queue") ? [] : ["--queue", "pair"]), ...words], {
        statuses: [0, 1],
        timeoutMs: 170_000,
      });
    const logs = async (id: number): Promise<string[]> =>
      (await home.run(["logs", `${id}.0`])).stdout.split("\n").slice(0, -1).toSorted();
    const task = (id: number): Promise<TaskView> => home.json<TaskView>(["show", `${id}.0`]);
    const linesOf = async (name: string): Promise<string[]> =>
      (await readFile(join(home.cwd, name), "utf8").catch(() => "")).split("\n").slice(0, -1);

    it("the agents of both nodes start their ranks, which know each other", async () => {
      const script = 'echo "$SLIPWAY_RANK $(hostname) $SLIPWAY_HOSTS"';
      const done = await run("--nodes", "2", "--ranks", "4", "--", "sh", "-c", script);
      expect(done.state).toBe("DONE");
      const lines = (await logs(done.id)).map((line) => line.split(" "));
      const hosts = lines[0]![2]!.split(",");
      expect(new Set(hosts).size).toBe(2);
      expect(lines.map(([rank, host]) => [rank, host])).toEqual([
        ["0", hosts[0]],
        ["1", hosts[0]],
        ["2", hosts[1]],
        ["3", hosts[1]],
      ]);
    });

    it("srun starts them inside the pilot's job, beside the agents, and its failure is the task's", async () => {
      const done = await run(
        "--ranks",
        "6",
        "--nodes",
        "2",
        "--rank-launcher",
        "srun",
        "--",
        "sh",
        "-c",
        'echo "$SLURM_PROCID $(hostname)"',
      );
      expect(done.state).toBe("DONE");
      const lines = await logs(done.id);
      expect(lines.map((line) => line.split(" ")[0])).toEqual(["0", "1", "2", "3", "4", "5"]);
      expect(new Set(lines.map((line) => line.split(" ")[1])).size).toBe(2);
      const failed = await run(
        "--ranks",
        "4",
        "--nodes",
        "2",
        "--rank-launcher",
        "srun",
        "--",
        "sh",
        "-c",
        "[ $SLURM_PROCID = 2 ] && exit 5; sleep 300",
      );
      // srun's own answer: the highest code of all, including the ranks that it ended because one failed
      expect([failed.state, (await task(failed.id)).exitCode]).toEqual(["FAILED", 128 + 15]);
    });

    it("a real MPI program runs over both nodes by mpiexec", async () => {
      await writeFile(join(home.cwd, "sum.c"), MPI_SUM);
      execFileSync("mpicc", ["-o", "sum", "sum.c"], { cwd: home.cwd });
      const root = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"].flatMap((pair) => ["--env", pair]);
      // each where the host file puts it, whichever node comes first
      const script = 'echo "$OMPI_COMM_WORLD_RANK $(hostname) $SLIPWAY_HOSTS" >&2; exec ./sum';
      for (const [queue, nodes] of [
        ["pair", 2],
        ["trio", 3],
      ] as const) {
        const size = ["--nodes", String(nodes), "--ranks", String(2 * nodes), "--queue", queue];
        const done = await run(...size, "--rank-launcher", "mpiexec", ...root, "--", "sh", "-c", script);
        const said = (await home.run(["logs", `${done.id}.0`, "--stderr"])).stdout.split("\n").slice(0, -1);
        const places = said.toSorted().map((line) => line.split(" "));
        const hosts = places[0]![2]!.split(",");
        expect(places.map(([rank, host]) => [rank, host])).toEqual(
          hosts.flatMap((host, nth) => [0, 1].map((local) => [String(2 * nth + local), host])),
        );
        expect(done.state).toBe("DONE");
        const sum = nodes * (2 * nodes - 1);
        expect(await logs(done.id)).toEqual(places.map(([rank, host]) => `${rank}/${2 * nodes} ${sum} ${host}`));
      }
    });

    it("a node that dies takes the whole task with it, which runs again at no cost", async () => {
      const script = 'echo "$SLIPWAY_ATTEMPT $(hostname)" >> tried; [ $SLIPWAY_ATTEMPT -gt 1 ] || sleep 1000';
      const { run: id } = await home.json<{ run: number }>([
        "submit",
        "--queue",
        "pair",
        "--nodes",
        "2",
        "--ranks",
        "2",
        "--",
        "sh",
        "-c",
        script,
      ]);
      const first = await until("both ranks to run", async () => {
        const lines = await linesOf("tried");
        return lines.length >= 2 ? lines : undefined;
      });
      const victim = first![1]!.split(" ")[1]!;
      await lab.killNode(victim);
      await lab.downNode(victim);
      await home.run(["wait", String(id)], { timeoutMs: 170_000 });
      const view = await task(id);
      expect([view.state, view.attempts.map(({ lost }) => lost)]).toEqual(["DONE", [true, false]]);
      expect((await linesOf("tried")).filter((line) => line.startsWith("2 ")).length).toBe(2);
    });
  },
);
