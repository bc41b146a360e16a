import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inOwnJob, ownLaunch, spread } from "../../../src/agent/ranks/own-job.ts";
import { ofTheJob } from "../../../src/agent/node-environment.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import type { Ranks } from "../../../src/protocol/messages.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slw-own-job-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const message = (count: number, change: Partial<Ranks> = {}): Ranks => ({
  t: "ranks",
  run: 1,
  row: 0,
  attempt: 1,
  group: 0,
  item: undefined,
  resources: { cpus: 2 * FRACTION },
  node: 0,
  hosts: ["as-the-server-knows-it"],
  ranks: [count],
  by: "agents",
  ...change,
});
const own = (change: object = {}) => ({ by: "srun" as const, hostsFile: join(directory, "hosts"), ...change });

describe("ranks of a task whose job is its own", () => {
  it("are all somewhere; on no host more than its CPUs allow while another has room", () => {
    const rooms = fc.array(fc.option(fc.nat(20), { nil: undefined }), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), rooms, (count, room) => {
        const ranks = spread(count, room);
        expect(ranks.reduce((sum, each) => sum + each, 0)).toBe(count);
        const known = room.every((most) => most !== undefined);
        const isOver = ranks.some((each, at) => known && each > room[at]!);
        const hasRoom = ranks.some((each, at) => known && each < room[at]!);
        expect(isOver && hasRoom).toBe(false);
        if (!known) expect(Math.max(...ranks) - Math.min(...ranks)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("are on the hosts that the job has, by what its manager has for it unless the task says so itself", () => {
    writeFileSync(join(directory, "hosts"), "n1\nn2\nn3\n");
    expect(inOwnJob(message(4), own())).toMatchObject({ by: "srun", hosts: ["n1", "n2", "n3"], ranks: [2, 1, 1] });
    expect(inOwnJob(message(2, { by: "mpiexec" }), own())).toMatchObject({ by: "mpiexec", hosts: ["n1", "n2"] });
    writeFileSync(join(directory, "cpus"), "n2 4\nn1 2\nn3 9\n");
    expect(inOwnJob(message(4), own())).toMatchObject({ hosts: ["n1", "n2", "n3"], ranks: [1, 2, 1] });
    expect(inOwnJob(message(3), own())).toMatchObject({ hosts: ["n1", "n2"], ranks: [1, 2] });
  });

  it("are here when nobody could say where the job is", () => {
    expect(inOwnJob(message(4), own())).toMatchObject({ hosts: [hostname()], ranks: [4] });
  });

  it("are started by srun with all that the job has, not beside somebody else's step", () => {
    const part = message(4, { hosts: ["n1", "n2"], ranks: [2, 2], by: "srun" });
    const { argv, env } = ownLaunch(part, "/f", own({ program: "/opt/slurm/bin/srun" }), {}, { SLURM_JOB_ID: "5" });
    expect(argv).toEqual(["/opt/slurm/bin/srun", "--kill-on-bad-exit=1", "--ntasks=4", "--cpus-per-task=2"]);
    expect(env).toEqual(expect.arrayContaining(["SLIPWAY_RANKS=4", "SLIPWAY_HOSTS=n1,n2", "SLIPWAY_HOST_FILE=/f"]));
  });

  it("are started by mpiexec on those hosts", () => {
    const part = message(4, { hosts: ["n1", "n2"], ranks: [2, 2], by: "mpiexec" });
    const { argv } = ownLaunch(part, "/f", own({ by: "mpiexec", program: "/mpi/mpiexec" }), {}, {});
    expect(argv).toEqual(["/mpi/mpiexec", "-hostfile", "/f", "-n", "4"]);
    // the program is the manager's srun, and no mpiexec
    expect(ownLaunch(part, "/f", own({ program: "/x/srun" }), {}, {}).argv[0]).toBe("mpiexec");
  });
});

describe("the manager's variables", () => {
  it("reach the task whose job it is, those of others do not", () => {
    const env = { SLURM_JOB_ID: "7", SLURMD_NODENAME: "n1", SLURMX: "no", PBS_JOBID: "no", PATH: "/bin" };
    expect(ofTheJob("^SLURMD?_", env)).toEqual({ SLURM_JOB_ID: "7", SLURMD_NODENAME: "n1" });
  });
});
