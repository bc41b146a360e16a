import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LaunchView } from "../../src/api/launch-schemas.ts";
import type { Gate } from "../cli/gate.ts";
import { until } from "../until.ts";
import { type PbsLab, startPbs } from "./lab/pbs.ts";
import { type LaunchHome, createLaunchHome, isOver, createSharedGate } from "./launch-home.ts";

/**
 * The launcher on a PBS whose commands behave as we saw the real ones behave. The server runs as root, the jobs as
 * alice.
 */

const reason = process.getuid?.() === 0 ? undefined : "jobs in other users' names need root";
let lab: PbsLab;
let home: LaunchHome;
let shared: string;

const spec = (facts: object): object => ({ user: "alice", slots: 1, slot_type: "cpu", ...facts });

const gate = (): Promise<Gate> => createSharedGate(shared);

const logs = async (id: number, ...options: string[]): Promise<string> =>
  (await home.run(["jobs", "logs", String(id), ...options])).stdout;

describe.skipIf(reason !== undefined)(`launches on PBS${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  beforeAll(async () => {
    lab = await startPbs({ nodes: 3, users: ["alice"], killMs: 3000, sistersMs: 9000 });
    shared = await mkdtemp(join(tmpdir(), "slw-shared-"));
    await chmod(shared, 0o777);
    home = await createLaunchHome({
      env: lab.env,
      cluster: { type: "pbs", container_run_type: "none", job_project_source: "workspace" },
    });
    expect((await home.run(["up"])).status).toBe(0);
  });
  afterAll(async () => {
    try {
      await home?.cleanup();
    } finally {
      await lab?.stop();
      if (shared !== undefined) await rm(shared, { recursive: true, force: true });
    }
  });

  it("runs one task on each host with its rank, hosts and environment, and clears its directory away", async () => {
    const value = 'a "b" $c `d`\nä';
    const outcome = await home.launch(
      spec({
        name: "two hosts",
        slots: 6,
        pbs: { slots_per_node: 3 },
        workspace: "bio/chem",
        env: { VALUE: value },
        files: [{ path: "in.txt", content: "staged\n" }],
        command:
          'echo "$SLIPWAY_RANK of $SLIPWAY_NODES on $(hostname): $SLIPWAY_HOSTS $SLIPWAY_SLOTS $(id -un) $(cat in.txt)"; [ "$SLIPWAY_RANK" = 1 ] || printf "%s\\n" "$VALUE" >&2; ' +
          `[ "$SLIPWAY_RANK" = 1 ] || qstat -f "$SLIPWAY_JOB_ID" > ${shared}/shown`,
      }),
      ["--wait"],
    );
    expect(outcome.status, outcome.stderr).toBe(0);
    const said = outcome.stdout
      .split("\n")
      .filter((line) => / of 2 on /.test(line))
      .sort();
    expect(said).toEqual(["0 of 2 on n1: n1,n2 3 alice staged", "1 of 2 on n2: n1,n2 3 alice staged"]);
    expect(outcome.stderr).toContain(`${value}\n`);
    const [launch] = await home.json<LaunchView[]>(["jobs", "list"]);
    expect(launch).toMatchObject({ state: "succeeded", user: "alice", exitCode: 0, directory: null });
    const shown = readFileSync(join(shared, "shown"), "utf8").replaceAll("\n\t", "");
    expect(shown).toContain(`Job_Name = ${launch!.jobName}`);
    expect(shown).toContain("Rerunable = False");
    expect(shown).toMatch(/project = bio.chem\n/);
    expect(shown).toContain("Resource_List.select = 2:ncpus=3");
    expect((await readdir(home.storage)).filter((name) => /^\.?[0-9a-f]{32}/.test(name))).toEqual([]);
    expect(await logs(launch!.id)).toContain("1 of 2 on n2");
  });

  it("the first rank that fails ends the others, and its error log is in the record", async () => {
    const outcome = await home.launch(
      spec({
        name: "fails",
        slots: 6,
        pbs: { slots_per_node: 3 },
        command: "if [ $SLIPWAY_RANK = 1 ]; then echo 'no such dataset' >&2; exit 7; fi; sleep 600",
      }),
      ["--wait"],
      { timeoutMs: 100_000 },
    );
    expect(outcome.status).toBe(7);
    const [launch] = await home.json<LaunchView[]>(["jobs", "list"]);
    expect(launch).toMatchObject({ state: "failed", exitCode: 7 });
    expect(launch!.errorLog).toContain("no such dataset");
  });

  it("one that is deleted by qdel is told on every node, not only on its first", async () => {
    const told = (rank: number): string => join(shared, `told.${rank}`);
    const launch = await home.launched(
      spec({
        name: "told",
        slots: 6,
        pbs: { slots_per_node: 3 },
        command: `trap 'echo told >${shared}/told.$SLIPWAY_RANK; exit 0' TERM; echo here; while :; do sleep 0.1; done`,
      }),
    );
    const following = home.start(["jobs", "logs", String(launch.id), "-f"], { timeoutMs: 120_000 });
    await following.saw(/here\n[^]*here\n/);
    const { nativeId } = await home.reaches(launch.id, (now) => now.nativeId !== null);
    expect((await lab.run(["qdel", nativeId!])).code).toBe(0);
    expect(await home.reaches(launch.id, isOver)).toMatchObject({ state: "cancelled" });
    expect([existsSync(told(0)), existsSync(told(1))]).toEqual([true, true]);
    expect((await following.ended).status).toBe(0);
  });

  it("a refusal carries the manager's own message", async () => {
    const refused = await home.launch(
      spec({ name: "refused", command: "true", pbs: { pbsbatch_args: ["-l nonsuch=1"] } }),
    );
    expect(refused.status).toBe(4);
    expect(refused.stderr).toMatch(/Unknown resource/i);
    const [launch] = await home.json<LaunchView[]>(["jobs", "list"]);
    expect(launch).toMatchObject({ name: "refused", state: "failed", nativeId: null, directory: null });
  });

  it("output is seen while the job runs although PBS keeps it elsewhere, over a restart; cancelling ends it", async () => {
    const here = await gate();
    const launch = await home.launched(
      spec({ name: "live", command: `echo early; ${here.script}; echo middle; sleep 600` }),
    );
    const following = home.start(["jobs", "logs", String(launch.id), "-f"], { timeoutMs: 120_000 });
    await following.saw(/early/);
    const { server } = await home.json<{ server: { pid: number } }>(["status"]);
    process.kill(server.pid, "SIGKILL");
    expect((await home.run(["up"])).status).toBe(0);
    here.open();
    await following.saw(/early\n[^]*middle/);
    const running = await home.reaches(launch.id, ({ state }) => state === "running");
    expect(running.nativeId).toMatch(/^\d+\.pbshead/);
    expect((await stat(running.directory!)).uid).toBe((await stat("/home/alice")).uid);
    expect((await home.run(["jobs", "cancel", String(launch.id)])).status).toBe(0);
    expect(await home.reaches(launch.id, isOver)).toMatchObject({ state: "cancelled" });
    expect((await following.ended).status).toBe(0);
    await until("its directory to be gone", () => (existsSync(running.directory!) ? undefined : true));
  });
});

const forgetful = `launches on a PBS that forgets jobs at once${reason === undefined ? "" : ` (skipped: ${reason})`}`;
describe.skipIf(reason !== undefined)(forgetful, () => {
  let forgetful: PbsLab;
  let own: LaunchHome;
  beforeAll(async () => {
    forgetful = await startPbs({ nodes: 1, stageMs: 1000, users: ["alice"] });
    own = await createLaunchHome({
      env: forgetful.env,
      cluster: { type: "pbs", container_run_type: "none", job_retention: "1h" },
    });
    expect((await own.run(["up"])).status).toBe(0);
  });
  afterAll(async () => {
    try {
      await own?.cleanup();
    } finally {
      await forgetful?.stop();
    }
  });

  it("the exit status that the script wrote last tells how one ended; without it the launch is lost", async () => {
    const ended = async (facts: object): Promise<LaunchView> =>
      own.reaches((await own.launched(spec(facts))).id, isOver);
    const kept = await ended({ command: "echo copied", stream_logs: false });
    expect(kept).toMatchObject({ state: "succeeded", exitCode: 0 });
    // PBS copies the output only after the script has ended
    expect((await own.run(["jobs", "logs", String(kept.id)])).stdout).toContain("copied\n");
    // kept as long as job_retention says, or until it is cleaned
    expect((await stat(join(kept.directory!, "output.log"))).isFile()).toBe(true);
    expect((await own.run(["jobs", "clean", String(kept.id)])).status).toBe(0);
    expect(existsSync(kept.directory!)).toBe(false);
    expect(await ended({ command: "exit 5" })).toMatchObject({ state: "failed", exitCode: 5 });
    const gone = await own.launched(spec({ command: "sleep 600" }));
    await own.reaches(gone.id, ({ state }) => state === "running");
    await forgetful.killNode("n1");
    expect(await own.reaches(gone.id, isOver)).toMatchObject({ state: "lost", exitCode: null });
  });
});
