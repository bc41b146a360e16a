import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, cp, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LaunchView } from "../../src/api/launch-schemas.ts";
import { connect } from "../../src/client/index.ts";
import type { Gate } from "../cli/gate.ts";
import { ROOT, type Started } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { type SlurmLab, skipReason, startSlurm } from "./lab/slurm.ts";
import { type LaunchHome, createLaunchHome, isOver, createSharedGate } from "./launch-home.ts";
import { noTinyImage, writeTinyImage } from "./tiny-image.ts";

/** The launcher on a real Slurm of three nodes. The server runs as root, the jobs as alice. */

const reason = skipReason();
const noContainer = existsSync("/usr/bin/ch-run") ? noTinyImage() : "/usr/bin/ch-run is not installed";
let lab: SlurmLab;
let home: LaunchHome;
/** For files that the jobs and the test share. */
let shared: string;
/** A job whose time is up long before it would end. */
let late: Started;

const spec = (facts: object): object => ({ user: "alice", slots: 1, slot_type: "cpu", ...facts });

const gate = (): Promise<Gate> => createSharedGate(shared);

const logs = async (id: number, ...options: string[]): Promise<string> =>
  (await home.run(["jobs", "logs", String(id), ...options])).stdout;

/** The job directories that exist, including that of the late job. */
const directories = async (): Promise<string[]> => {
  const names = await readdir(home.storage);
  expect(names.filter((name) => /^\.[0-9a-f]{32}/.test(name))).toHaveLength(1);
  return names.filter((name) => /^[0-9a-f]{32}$/.test(name));
};

/** A sudo that passes on the real one's answer only when the file is gone. */
let slowBin: string;
const slowMark = (): string => join(slowBin, "slow");

describe.skipIf(reason !== undefined)(`launches on Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  beforeAll(async () => {
    lab = await startSlurm({ nodes: 3, bigNodes: 0, plainNodes: 1, users: ["alice", "bob"] });
    shared = await mkdtemp(join(tmpdir(), "slw-shared-"));
    slowBin = await mkdtemp(join(tmpdir(), "slw-bin-"));
    await chmod(shared, 0o777);
    const wrapper = `#!/bin/sh\nanswer=$(/usr/bin/sudo "$@"); status=$?\nwhile [ -e '${slowMark()}' ]; do sleep 0.1; done\nprintf '%s\\n' "$answer"; exit $status\n`;
    await writeFile(join(slowBin, "sudo"), wrapper, { mode: 0o755 });
    home = await createLaunchHome({
      env: { ...lab.env, PATH: `${slowBin}:${process.env["PATH"]}` },
      cluster: { type: "slurm", container_run_type: "none", job_project_source: "label:wc_" },
    });
    expect((await home.run(["up"])).status).toBe(0);
    // Slurm counts in minutes: the time passes while the others are tested
    const walltime = { name: "late", walltime: "1m", resource_pool: "plain", command: "sleep 600" };
    late = await home.startLaunch(spec(walltime), ["--wait"]);
    await late.saw(/is waiting|is running/, "stderr");
  });
  afterAll(async () => {
    // what the wrapper still holds back would outlive the server
    if (slowBin !== undefined) await rm(slowMark(), { force: true });
    try {
      await home?.cleanup();
    } finally {
      await lab?.stop();
      for (const path of [shared, slowBin]) if (path !== undefined) await rm(path, { recursive: true, force: true });
    }
  });

  it("--dry-run prints the script and the command, and submits nothing", async () => {
    const { stdout, status } = await home.launch(spec({ name: "dry", command: "true" }), ["--dry-run"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^#!\/bin\/bash\n#SBATCH /);
    expect(stdout).toMatch(/# submitted with: sudo -n -u alice SLURM_CONF=\S+ \S*\/sbatch .*\n$/);
    expect(await home.json<LaunchView[]>(["jobs", "list"])).toHaveLength(1);
    expect((await lab.run(["squeue", "-h", "-p", "batch"])).stdout).toBe("");
  });

  it("runs one task on each node with its rank, hosts and environment, and clears its directory away", async () => {
    const value = 'a "b" $c `d`\nä';
    const outcome = await home.launch(
      spec({
        name: "two nodes",
        slots: 4,
        slurm: { slots_per_node: 2 },
        labels: ["wc_bio"],
        env: { VALUE: value },
        files: [{ path: "data/in.txt", content: "staged\n" }],
        command:
          'echo "$SLIPWAY_RANK of $SLIPWAY_NODES on $(hostname): $SLIPWAY_HOSTS $SLIPWAY_SLOTS $(id -un) $(cat data/in.txt)"; [ "$SLIPWAY_RANK" = 1 ] || printf "%s\\n" "$VALUE" >&2; ' +
          `scontrol show job "$SLIPWAY_JOB_ID" > ${shared}/shown.$SLIPWAY_RANK`,
      }),
      ["--wait"],
    );
    expect(outcome).toMatchObject({ status: 0 });
    const said = outcome.stdout
      .split("\n")
      .filter((line) => / of 2 on /.test(line))
      .sort();
    expect(said).toEqual(["0 of 2 on n1: n1,n2 2 alice staged", "1 of 2 on n2: n1,n2 2 alice staged"]);
    expect(outcome.stderr.split(`${value}\n`)).toHaveLength(2);
    const [launch] = await home.json<LaunchView[]>(["jobs", "list", "--state", "succeeded"]);
    expect(launch).toMatchObject({ name: "two nodes", user: "alice", cluster: "hpc", exitCode: 0, directory: null });
    expect(launch!.hosts).toEqual(["n1", "n2"]);
    const shown = readFileSync(join(shared, "shown.0"), "utf8");
    expect(shown).toContain(`JobId=${launch!.nativeId} JobName=${launch!.jobName}`);
    expect(shown).toMatch(/NumNodes=2 NumCPUs=4/);
    expect(shown).toMatch(/WCKey=\*?bio/);
    expect(shown).toContain("Requeue=0");
    // the manager's own commands lead to the script while the job lives
    expect(/Command=(\S+)/.exec(shown)![1]).toMatch(new RegExp(`^${home.storage}/[0-9a-f]{32}/`));
    expect(await directories()).toHaveLength(1);
    expect(await logs(launch!.id)).toContain("1 of 2 on n2");
    expect(await logs(launch!.id)).toContain(`${launch!.jobName} is job ${launch!.nativeId} of Slurm`);
    // on request the logs go too
    expect((await home.run(["jobs", "clean", String(launch!.id)])).status).toBe(0);
    expect(await logs(launch!.id)).toBe("");
  });

  it.each([
    ["hello", [0, 1].map((rank) => `rank ${rank} of 2 on n${rank + 1}, among n1,n2`)],
    ["mpi", [0, 1, 2, 3].map((rank) => `process ${rank} of 4 on n${Math.floor(rank / 2) + 1}`)],
  ])("examples/launch-%s.yaml needs nothing but the environment", async (name, expected) => {
    const examples = join(home.root, `examples-${name}`);
    await cp(join(ROOT, "examples"), examples, { recursive: true });
    const file = join(examples, `launch-${name}.yaml`);
    // on two small nodes instead of four large ones
    const text = (await readFile(file, "utf8")).replace("slots: 64", "slots: 4").replaceAll("node: 16", "node: 2");
    await writeFile(file, `${text}user: alice\n`);
    const outcome = await home.run(["launch", file, "--wait"]);
    expect(outcome.status, outcome.stderr).toBe(0);
    const said = outcome.stdout.split("\n").filter((line) => /^(rank|process) \d/.test(line));
    expect(said.sort()).toEqual(expected);
  });

  it.skipIf(noContainer !== undefined)(
    `runs a container on each node, as its user${noContainer === undefined ? "" : ` (skipped: ${noContainer})`}`,
    async () => {
      const image = join(shared, "image");
      writeTinyImage(image);
      await writeFile(join(image, "etc", "whose"), "the container's\n");
      const outcome = await home.launch(
        spec({
          name: "contained",
          slots: 4,
          slurm: { slots_per_node: 2 },
          image,
          container_run_type: "charliecloud",
          env: { VALUE: "a b" },
          bind_mounts: [{ host_path: shared, container_path: "/data" }],
          files: [{ path: "in.txt", content: "staged\n" }],
          command:
            'echo "$SLIPWAY_RANK of $SLIPWAY_NODES: $(cat /etc/whose) $VALUE, $(cat in.txt), $(id -u)"; touch /tmp/own /data/contained.$SLIPWAY_RANK; ls /tmp/own',
        }),
        ["--wait"],
      );
      expect(outcome).toMatchObject({ status: 0 });
      const alice = (await lab.run(["id", "-u", "alice"])).stdout.trim();
      const said = outcome.stdout.split("\n").filter((line) => / of 2: /.test(line));
      expect(said.sort()).toEqual([0, 1].map((rank) => `${rank} of 2: the container's a b, staged, ${alice}`));
      for (const rank of [0, 1]) {
        const { uid } = await stat(join(shared, `contained.${rank}`));
        expect(String(uid)).toBe(alice);
      }
      expect(existsSync("/tmp/own")).toBe(false);
    },
  );

  it("an image that is not there is refused before anything is submitted", async () => {
    const missing = spec({ image: `${shared}/nonsuch.sif`, container_run_type: "apptainer", command: "true" });
    const refused = await home.launch(missing, ["--json"]);
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: "no-such-image" } });
  });

  it("a failure exits with the job's own status, and its error log is in the record", async () => {
    const outcome = await home.launch(
      spec({ name: "fails", command: "echo before; echo 'no such dataset' >&2; exit 7" }),
      ["--wait"],
    );
    expect(outcome.status).toBe(7);
    const [launch] = await home.json<LaunchView[]>(["jobs", "list", "--state", "failed"]);
    expect(launch).toMatchObject({ state: "failed", exitCode: 7, managerState: "FAILED" });
    expect(launch!.errorLog).toContain("no such dataset");
    expect(await logs(launch!.id)).toContain("before");
    expect((await home.run(["jobs", "show", String(launch!.id)])).stdout).toMatch(
      /error log:\n(.*\n)*.*no such dataset/,
    );
  });

  it("a refusal carries the manager's own message, and leaves a record and no directory", async () => {
    const refused = await home.launch(
      spec({ name: "refused", command: "true", slurm: { sbatch_args: ["--constraint=nonsuch"] } }),
    );
    expect(refused.status).toBe(4);
    expect(refused.stderr).toContain("Invalid feature specification");
    const [launch] = await home.json<LaunchView[]>(["jobs", "list", "--state", "failed"]);
    expect(launch).toMatchObject({ name: "refused", nativeId: null, directory: null });
    expect(launch!.reason).toContain("Invalid feature specification");
    expect(await directories()).toHaveLength(1);
  });

  it("root, and whoever has no account, is refused before any command runs", async () => {
    for (const user of ["root", "nobody-of-that-name"]) {
      const refused = await home.launch({ user, command: "true" }, ["--json"]);
      expect(refused.status).toBe(2);
      expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: "user-refused", facts: { user } } });
    }
    // the server's own user is root here
    const own = await home.launch({ command: "true" }, ["--json"]);
    expect(JSON.parse(own.stderr)).toMatchObject({ error: { code: "user-refused", facts: { user: "root" } } });
  });

  it("output is seen while the job runs, as its ranks send it, and cancelling ends it", async () => {
    const here = await gate();
    const launch = await home.launched(
      spec({
        name: "live",
        slots: 2,
        slurm: { slots_per_node: 1 },
        command: `echo "hello from $SLIPWAY_RANK"; ${here.script}; sleep 600`,
      }),
    );
    expect(launch.nativeId).toMatch(/^\d+$/);
    const following = home.start(["jobs", "logs", String(launch.id), "-f"]);
    await following.saw(/hello from 0\n[^]*hello from 1\n|hello from 1\n[^]*hello from 0\n/);
    const running = await home.reaches(launch.id, ({ state, output }) => state === "running" && output.live);
    expect(running.hosts).toHaveLength(2);
    // the directory belongs to the user while the job lives, and only the user and the server can look into it
    const about = await stat(running.directory!);
    expect(about.mode & 0o7777).toBe(0o2750);
    expect(about.uid).toBe((await stat("/home/alice")).uid);
    expect((await stat(join(running.directory!, "stream.json"))).mode & 0o777).toBe(0o600);
    expect((await home.run(["jobs", "cancel", String(launch.id)])).status).toBe(0);
    const ended = await home.reaches(launch.id, isOver);
    expect(ended).toMatchObject({ state: "cancelled", cancelledBy: "the home's owner" });
    expect((await following.ended).status).toBe(0);
    await until("Slurm to end it", async () =>
      (await lab.run(["squeue", "-h", "-p", "batch"])).stdout === "" ? true : undefined,
    );
    expect(existsSync(running.directory!)).toBe(false);
  });

  it("without a stream the job's files are read, also while it runs", async () => {
    const here = await gate();
    const launch = await home.launched(
      spec({ name: "files", stream_logs: false, command: `echo early; ${here.script}; echo late` }),
    );
    const following = home.start(["jobs", "logs", String(launch.id), "-f"]);
    await following.saw(/early/);
    expect((await home.show(launch.id)).output.live).toBe(false);
    here.open();
    expect((await following.ended).stdout).toMatch(/early\n[^]*late\n/);
  });

  it("rule 3: a server killed between sbatch and its answer finds the job again by its name, and submits nothing twice", async () => {
    await writeFile(slowMark(), "");
    const here = await gate();
    const asking = await home.startLaunch(spec({ name: "crash", command: `echo "run by $$"; ${here.script}; exit 3` }));
    await until("the job in the queue", async () =>
      (await lab.run(["squeue", "-h", "-p", "batch"])).stdout === "" ? undefined : true,
    );
    const { server } = await home.json<{ server: { pid: number } }>(["status"]);
    process.kill(server.pid, "SIGKILL");
    asking.child.kill("SIGKILL");
    await asking.ended;
    expect((await home.run(["up"])).status).toBe(0);
    const [launch] = await home.json<LaunchView[]>(["jobs", "list"]);
    expect(launch).toMatchObject({ name: "crash" });
    const found = await home.reaches(launch!.id, ({ nativeId, state }) => nativeId !== null && state === "running");
    expect((await lab.run(["squeue", "-h", "-p", "batch", "-o", "%i"])).stdout.trim()).toBe(found.nativeId);
    await rm(slowMark());
    // killed again while it runs: its end is found nevertheless
    const again = await home.json<{ server: { pid: number } }>(["status"]);
    process.kill(again.server.pid, "SIGKILL");
    here.open();
    await until("the job's end", async () =>
      (await lab.run(["squeue", "-h", "-p", "batch"])).stdout === "" ? true : undefined,
    );
    expect((await home.run(["up"])).status).toBe(0);
    const ended = await home.reaches(launch!.id, isOver);
    expect(ended).toMatchObject({ state: "failed", exitCode: 3 });
    expect((await logs(launch!.id)).match(/run by/g)).toHaveLength(1);
  });

  it("rule 7: the same request twice, also at the same time, is one launch", async () => {
    const client = connect({ home: home.home });
    try {
      const document = { ...spec({ name: "once", command: "true" }), uuid: randomUUID() };
      const both = await Promise.all([client.launch(document), client.launch(document)]);
      const third = await client.launch(document);
      expect(new Set([...both, third].map(({ id }) => id)).size).toBe(1);
      expect(new Set([...both, third].map(({ nativeId }) => nativeId)).size).toBe(1);
      expect(await home.reaches(third.id, isOver)).toMatchObject({ state: "succeeded" });
    } finally {
      client.close();
    }
  });

  it("a node that goes away loses the job, and the manager's reason is kept", async () => {
    const here = await gate();
    const launch = await home.launched(spec({ name: "lost", command: here.script }));
    await here.arrived(1);
    const { hosts } = await home.reaches(launch.id, ({ hosts }) => hosts.length > 0);
    await lab.downNode(hosts[0]!);
    const ended = await home.reaches(launch.id, isOver);
    expect(ended).toMatchObject({ state: "lost", managerState: "NODE_FAIL" });
    await lab.upNode(hosts[0]!);
    here.open();
  });

  it("a job over its time limit has failed for that reason; --wait has followed it over two restarts of the server", async () => {
    const { status, stderr } = await late.ended;
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/is failed.*time limit/);
    const launch = (await home.json<LaunchView[]>(["jobs", "list"])).find(({ name }) => name === "late");
    expect(launch).toMatchObject({ state: "failed", managerState: "TIMEOUT" });
  });
});
