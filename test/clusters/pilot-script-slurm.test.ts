import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

interface Pilot {
  readonly id: string;
  readonly queue: string;
  readonly state: string;
  readonly nativeId: string | null;
  readonly reason: string | null;
  readonly agents: readonly { readonly host: string; readonly resources: Readonly<Record<string, number>> }[];
}

const reason = skipReason();

const CLUSTERS = `
default: hpc
clusters:
  hpc:
    type: slurm
    walltime: 1h
    environment: { GREETING: "it's a \\"test\\" $HOME" }
    fleet-is: here
    queues:
      two:
        partition: batch
        nodes: 2
        cores: 4
        memory: 1G
        gpus: 1
        prologue: ["export FROM_PROLOGUE=yes"]
        job-name-prefix: mine
        fleet: { max: 1, idle: 1h, period: 1s }
      one:
        partition: batch
        cores: 2
        cleanup: always
        log-directory: LOGS
        fleet: { max: 1, idle: 1s, period: 1s }
      mpi:
        partition: batch
        nodes: 2
        cores: 1
        launcher: mpirun
        environment: { OMPI_ALLOW_RUN_AS_ROOT: 1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: 1 }
        fleet: { max: 1, idle: 1h, period: 1s }
      mixed:
        partition: batch
        partition1: plain
        cores: 1
        fleet: { max: 1, idle: 1h, period: 1s }
`.replace("    fleet-is: here\n", "");

describe.skipIf(reason !== undefined)(
  `pilots on a real Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let home: SlipwayHome;
    const env = (): Record<string, string> => ({ ...lab.env });
    beforeAll(async () => {
      lab = await startSlurm({ nodes: 3, bigNodes: 0, gpus: { a100: 2 } });
      home = await createHome();
      await mkdir(home.home, { recursive: true, mode: 0o700 });
      await writeFile(join(home.home, "clusters.yaml"), CLUSTERS.replace("LOGS", join(home.root, "logs of pilots")));
      const up = await home.run(["up"], { env: env() });
      expect(up.stderr).toBe("");
      expect(up.status).toBe(0);
    });
    afterAll(async () => {
      await home?.cleanup();
      await lab?.stop();
    });

    const names = async (): Promise<string> => (await lab.run(["squeue", "--noheader", "-o", "%j"])).stdout;
    const pilots = (): Promise<Pilot[]> => home.json<Pilot[]>(["pilots", "list"]);

    it("a pilot of two nodes has exactly one agent on each, with all of its share; tasks run on both", async () => {
      const script =
        'echo "$(hostname)|$GREETING|$FROM_PROLOGUE|$SLURM_JOB_NAME|$CUDA_VISIBLE_DEVICES|$SLIPWAY_TASK"; sleep 1';
      const run = await home.run(
        ["run", "--queue", "two", "--export", "none", "--cpus", "4", "--array", "1-4", "--", "sh", "-c", script],
        { timeoutMs: 170_000 },
      );
      expect(run.stderr + run.stdout).toContain("4");
      expect(run.status).toBe(0);
      const [pilot] = await pilots();
      expect(pilot).toMatchObject({ queue: "two", state: "PMGR_ACTIVE" });
      expect(pilot!.agents.map(({ host }) => host).sort()).toHaveLength(2);
      expect(new Set(pilot!.agents.map(({ host }) => host)).size).toBe(2);
      for (const agent of pilot!.agents) expect(agent.resources).toMatchObject({ cpus: 4, mem: 2 ** 30, gpus: 1 });
      const logs = await home.run(["logs", "1"]);
      const lines = logs.stdout
        .split("\n")
        .filter((line) => line.includes("|"))
        .map((line) => line.split("|"));
      expect(lines).toHaveLength(4);
      expect(new Set(lines.map(([host]) => host!.replace(/^.* /, ""))).size).toBe(2);
      for (const [, greeting, prologue, jobName] of lines) {
        expect(greeting).toBe('it\'s a "test" $HOME');
        expect(prologue).toBe("yes");
        // a program must not think that the pilot's job is its own
        expect(jobName).toBe("");
      }
      expect(await names()).toMatch(/^mine-[0-9a-f]{8}-1$/m);
      // the step took exactly two processes, and nothing in the job's own log complains
      const directory = join(home.home, "jobs", (await readdir(join(home.home, "jobs")))[0]!);
      expect(await readFile(join(directory, "stdout"), "utf8")).toBe("");
      const { stdout } = await lab.run(["squeue", "--steps", "--noheader", "-o", "%i %j"]);
      expect(stdout.split("\n").filter((line) => line.includes(".0"))).toHaveLength(1);
    });

    it("cancelled by the administrator: its agents end, its tasks are run again elsewhere", async () => {
      const [pilot] = await pilots();
      const { run } = await home.json<{ run: number }>([
        "submit",
        "--queue",
        "two",
        "--",
        "sh",
        "-c",
        "sleep 3; hostname",
      ]);
      await until("the task to run", async () => {
        const view = await home.json<{ counts: Record<string, number> }>(["show", String(run)]);
        return (view.counts["AGENT_EXECUTING"] ?? 0) > 0;
      });
      await lab.run(["scancel", pilot!.nativeId!]);
      const outcome = await home.run(["wait", String(run)], { timeoutMs: 170_000 });
      expect(outcome.status).toBe(0);
      expect((await pilots()).find(({ id }) => id === pilot!.id)!.state).toBe("CANCELED");
    });

    it("a signal to the script reaches the agents through srun: they end in order, and the job with 0", async () => {
      expect((await home.run(["run", "--queue", "two", "--", "true"], { timeoutMs: 170_000 })).status).toBe(0);
      const pilot = await until("a pilot with two agents", async () =>
        (await pilots()).find(
          ({ queue, state, agents }) => queue === "two" && state === "PMGR_ACTIVE" && agents.length === 2,
        ),
      );
      await lab.run(["scancel", "--batch", "--signal=TERM", pilot.nativeId!]);
      const job = await until("the job to end", async () => {
        const { stdout } = await lab.run(["scontrol", "-o", "show", "job", pilot.nativeId!]);
        return /JobState=(COMPLETED|FAILED|CANCELLED)/.test(stdout) ? stdout : undefined;
      });
      expect(job).toMatch(/JobState=COMPLETED .*ExitCode=0:0/);
      await until("the pilot to be done", async () =>
        (await pilots()).some(({ id, state }) => id === pilot.id && state === "DONE"),
      );
    });

    it("Open MPI's mpirun starts one agent on each node", async () => {
      expect((await home.run(["run", "--queue", "mpi", "--", "true"], { timeoutMs: 170_000 })).status).toBe(0);
      const pilot = await until("both agents", async () =>
        (await pilots()).find(({ queue, agents }) => queue === "mpi" && agents.length === 2),
      );
      expect(new Set(pilot.agents.map(({ host }) => host)).size).toBe(2);
      expect((await home.run(["pilots", "cancel", pilot.id])).status).toBe(0);
    });

    it("one node needs no launcher; its directory is where the queue says, and goes when it ends", async () => {
      const run = await home.run(["run", "--queue", "one", "--", "hostname"], { timeoutMs: 170_000 });
      expect(run.status).toBe(0);
      const logs = join(home.root, "logs of pilots");
      await until("the pilot to end and its directory to go", async () => (await readdir(logs)).length === 0);
    });

    it("a heterogeneous job has one agent in each of its parts", async () => {
      const { run } = await home.json<{ run: number }>(["submit", "--queue", "mixed", "--", "hostname"]);
      expect((await home.run(["wait", String(run)], { timeoutMs: 170_000 })).status).toBe(0);
      const pilot = await until("both agents", async () =>
        (await pilots()).find(({ queue, agents }) => queue === "mixed" && agents.length === 2),
      );
      expect(new Set(pilot.agents.map(({ host }) => host)).size).toBe(2);
    });
  },
);
