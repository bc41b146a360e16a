import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { processesUnder } from "../cli/processes-under.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

const reason = skipReason();

/** What the other tests rely on: a Slurm that behaves like one, can be broken on purpose, and leaves nothing behind. */
describe.skipIf(reason !== undefined)(`a booted Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let lab: SlurmLab;
  afterEach(async () => lab.stop());

  const submit = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await lab.run(["sbatch", "--parsable", "--output=/dev/null", ...words]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return stdout.trim();
  };
  const field = async (id: string, name: string): Promise<string> => {
    const { stdout } = await lab.run(["scontrol", "-o", "show", "job", id]);
    return new RegExp(`\\b${name}=(\\S*)`).exec(stdout)?.[1] ?? "";
  };
  const reaches = (id: string, ...states: string[]): Promise<string> =>
    until(`job ${id} to be ${states.join(" or ")}`, async () => {
      const state = await field(id, "JobState");
      return states.includes(state) ? state : undefined;
    });

  it("runs jobs on several nodes with GPUs, survives its controller, and leaves nothing", async () => {
    lab = await startSlurm({
      nodes: 2,
      gpus: { a100: 2, h100: 1 },
      users: ["alice"],
      nodeTimeout: 10,
      credentialSeconds: 5,
    });
    const out = `${lab.root}/hosts`;
    const job = await submit("-N2", "--gpus-per-node=a100:1", "--wrap", `srun sh -c 'hostname >> ${out}'`);
    expect(await reaches(job, "COMPLETED", "FAILED")).toBe("COMPLETED");
    expect((await readFile(out, "utf8")).split("\n").toSorted()).toEqual(["", "n1", "n2"]);
    expect((await lab.run(["id", "-un"], { user: "alice" })).stdout).toBe("alice\n");

    const long = await submit("--no-requeue", "-wn1", "--wrap", "sleep 1000");
    await reaches(long, "RUNNING");
    await lab.saved();
    await lab.killController();
    await lab.startController();
    expect(await field(long, "JobState")).toBe("RUNNING");
    expect(await field(long, "Restarts")).toBe("0");
    await lab.killNode("n1");
    expect(await reaches(long, "NODE_FAIL", "FAILED", "COMPLETED")).toBe("NODE_FAIL");
    await lab.startNode("n1");
    const again = await submit("-wn1", "--wrap", "true");
    expect(await reaches(again, "COMPLETED", "FAILED")).toBe("COMPLETED");

    const { root } = lab;
    await lab.stop();
    expect(existsSync(root)).toBe(false);
    expect(await processesUnder(root)).toEqual([]);
  });

  it("ends with control groups what left a job's session, and removes the groups", async () => {
    lab = await startSlurm({ nodes: 1, bigNodes: 0, plainNodes: 0, gpus: {}, cgroups: true });
    const pidFile = `${lab.root}/stray`;
    const job = await submit("--wrap", `setsid sh -c 'sh -c "echo here >${pidFile}; exec sleep 98765" &' ; sleep 1000`);
    await until("the stray process", () => existsSync(pidFile));
    const strays = async (): Promise<number> =>
      (await processesUnder(lab.root)).filter(({ command }) => command.includes("98765")).length;
    expect(await strays()).toBeGreaterThan(0);
    await lab.run(["scancel", job]);
    await until("the stray process to end", async () => (await strays()) === 0);
    // frozen processes must not outlive it either
    const frozen = await submit("--wrap", "sleep 1000");
    await reaches(frozen, "RUNNING");
    await lab.run(["scontrol", "suspend", frozen]);
    await reaches(frozen, "SUSPENDED");
    const [node = ""] = lab.nodes;
    const { root } = lab;
    await lab.stop();
    expect(await processesUnder(root)).toEqual([]);
    const controllers = await readdir("/sys/fs/cgroup");
    expect(controllers.filter((name) => existsSync(`/sys/fs/cgroup/${name}/slurm_${node}`))).toEqual([]);
  });
});
