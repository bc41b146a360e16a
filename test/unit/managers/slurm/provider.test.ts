import { describe, expect, it } from "vitest";
import type { CommandOptions, CommandResult } from "../../../../src/managers/commands.ts";
import { CommandError } from "../../../../src/managers/commands.ts";
import { slurmIsTransient } from "../../../../src/managers/slurm/driver/failures.ts";
import { createSlurmProvider, type SlurmOptions } from "../../../../src/managers/slurm/driver/provider.ts";
import type { Provider } from "../../../../src/managers/provider.ts";

interface Call {
  readonly argv: readonly string[];
  readonly options: CommandOptions;
}

type Answer = Partial<CommandResult> | Error;

/** A driver whose commands answer like a real Slurm in trouble; test/clusters has one without. */
const driver = (
  answer: (argv: readonly string[]) => Answer,
  more: Partial<SlurmOptions> = {},
): { provider: Provider; calls: Call[] } => {
  const calls: Call[] = [];
  const provider = createSlurmProvider({
    ...more,
    run: async (argv, options = {}) => {
      calls.push({ argv, options });
      const said = answer(argv);
      if (said instanceof Error) throw said;
      return { argv, code: 0, stdout: "", stderr: "", timedOut: false, ...said };
    },
  });
  return { provider, calls };
};

const job = { name: "n", directory: "/d", command: [], script: "/d/script.sh" };
const running = (id: string): string => `${id}\x1f${id}\x1fN/A\x1fRUNNING\x1f0\x1fNone\x1fn1\x1fname\x1e\n`;

describe("slurm in trouble", () => {
  it("rule 3: a submission whose reply was lost is not refused: it may have been taken", async () => {
    for (const answer of [
      { code: 1, stderr: "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" },
      { code: 0, stdout: "what?" },
      new CommandError("sbatch did not answer within 60 s", ["sbatch"], true),
    ]) {
      const { provider, calls } = driver(() => answer);
      await expect(provider.submit(job)).rejects.toMatchObject({ name: "CommandError", timedOut: true });
      expect(calls).toHaveLength(1);
      expect(calls[0]!.options.once).toBe(true);
    }
  });

  it("a controller that was not reached took nothing", async () => {
    const stderr = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)";
    await expect(driver(() => ({ code: 1, stderr })).provider.submit(job)).rejects.toMatchObject({
      code: "cluster-unreachable",
    });
    await expect(
      driver(() => new CommandError("sbatch: not found", ["sbatch"], false)).provider.submit(job),
    ).rejects.toMatchObject({ code: "cluster-unreachable", facts: { detail: "sbatch: not found" } });
  });

  it("only what was certainly not taken is given again", () => {
    const result = (stderr: string, code = 1): CommandResult => ({
      argv: [],
      code,
      stdout: "",
      stderr,
      timedOut: false,
    });
    const lost = result("squeue: error: slurm_load_jobs error: Socket timed out on send/recv operation");
    const unreached = result("error: Unable to contact slurm controller (connect failure)");
    const full = result("sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying");
    expect([lost, unreached, full].map((one) => slurmIsTransient(one, {}))).toEqual([true, true, true]);
    expect([lost, unreached, full].map((one) => slurmIsTransient(one, { once: true }))).toEqual([false, true, true]);
    expect(slurmIsTransient(result("Invalid partition name specified"), {})).toBe(false);
    expect(slurmIsTransient(result("Socket timed out", 0), {})).toBe(false);
  });

  it("tells the name, the directory, the options and the script, in this order, and a warning as a note", async () => {
    const warning = "sbatch: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n";
    const { provider, calls } = driver(() => ({ stdout: "7;cluster\n", stderr: warning }), {
      programs: { sbatch: "/opt/sbatch" },
    });
    expect(await provider.submit({ ...job, options: ["--hold"], user: "alice" })).toEqual({
      nativeId: "7",
      note: "warning: can't run 1 processes on 2 nodes, setting nnodes to 1",
    });
    expect(calls[0]!.argv).toEqual([
      "/opt/sbatch",
      "--parsable",
      "--job-name=n",
      "--chdir=/d",
      "--hold",
      "/d/script.sh",
    ]);
    expect(calls[0]!.options.user).toBe("alice");
  });

  it("an accounting that is down makes jobs unknown, not ended; one that is off is asked once", async () => {
    const down = driver(([program]) =>
      program === "squeue"
        ? { stdout: running("1") }
        : { code: 1, stderr: "sacct: error: Problem talking to the database" },
    );
    const answers = await down.provider.poll(["1", "2", "3"]);
    expect(answers.get("1")?.state).toBe("active");
    expect(answers.get("2")).toMatchObject({ state: "unknown", reason: "Problem talking to the database" });
    const stderr = "Slurm accounting storage is disabled";
    for (const answer of [{ code: 1, stderr }, new CommandError("sacct: not found", ["sacct"], false)]) {
      const off = driver(([program]) => (program === "squeue" ? {} : answer));
      for (let round = 0; round < 3; round++)
        expect((await off.provider.poll(["2", "3"])).get("2")).toMatchObject({ state: "ended", outcome: "unknown" });
      expect(off.calls.filter(({ argv }) => argv[0] === "sacct")).toHaveLength(1);
    }
    const silent = driver(([program]) => (program === "squeue" ? {} : new CommandError("late", ["sacct"], true)));
    await expect(silent.provider.poll(["2"])).rejects.toMatchObject({ code: "cluster-unreachable" });
  });

  it("asks about any number of jobs without a word longer than a command may have", async () => {
    const ids = Array.from({ length: 50_000 }, (_, n) => String(1_000_000 + n));
    const { provider, calls } = driver(([program]) =>
      program === "squeue" ? { stdout: ids.slice(0, 40_000).map(running).join("") } : {},
    );
    const answers = await provider.poll(ids);
    expect(answers.size).toBe(50_000);
    expect(calls.map(({ argv }) => argv[0])).toEqual(["squeue", "sacct"]);
    await provider.cancel(ids);
    expect(calls.filter(({ argv }) => argv[0] === "scancel")).toHaveLength(100);
    expect(Math.max(...calls.flatMap(({ argv }) => argv.map((word) => word.length)))).toBeLessThan(128 * 1024);
  });

  it("cancelling what is not ours to cancel is an error, what has ended is not", async () => {
    const one = (stderr: string): Provider => driver(() => ({ code: 1, stderr })).provider;
    await one("scancel: error: Kill job error on job id 9: Invalid job id specified\n").cancel(["9"]);
    await one("scancel: error: Kill job error on job id 9: Job/step already completing or completed\n").cancel(["9"]);
    await expect(
      one("scancel: error: Kill job error on job id 9: Access/permission denied\n").cancel(["9"]),
    ).rejects.toMatchObject({ facts: { detail: "Kill job error on job id 9: Access/permission denied" } });
  });

  it("asks only for its own user's jobs where that is enough", async () => {
    const { provider, calls } = driver(() => ({}), { mineOnly: true });
    await provider.list("x");
    expect(calls[0]!.argv).toContain("--me");
  });
});
