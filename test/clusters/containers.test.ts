import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { planLaunch } from "../../src/launch/plan/plan.ts";
import { sampleInput } from "../unit/launch/plan/sample.ts";
import { until } from "../until.ts";
import { writePlan } from "./launch-directory.ts";
import { noTinyImage, writeTinyImage } from "./tiny-image.ts";

/** Ranks of launches in real containers, started by the script that runs on a node, from a tiny root file system. */

const NASTY = "$HOME `id` $(id) \"double\" 'single' back\\slash “ü” =\n\ttab, line\n";
const HOUR = "3600";

let root: string;
let podmanEnv: Record<string, string>;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "slw-containers-"));
  const image = join(root, "image");
  writeTinyImage(image);
  if (noTinyImage() !== undefined) return;
  writeFileSync(
    join(root, "containers.conf"),
    [
      "[containers]",
      'netns = "host"',
      'default_ulimits = ["nofile=8192:8192", "nproc=8192:8192"]',
      "[engine]",
      'runtime = "runc"',
      'cgroup_manager = "cgroupfs"',
      'events_logger = "file"',
      // shares nothing with another Podman on this machine
      'lock_type = "file"',
      `tmp_dir = "${root}/libpod"`,
    ].join("\n"),
  );
  writeFileSync(
    join(root, "storage.conf"),
    ["[storage]", 'driver = "vfs"', `graphroot = "${root}/graph"`, `runroot = "${root}/runroot"`].join("\n"),
  );
  mkdirSync(join(root, "xdg"), { mode: 0o700 });
  podmanEnv = {
    CONTAINERS_CONF: join(root, "containers.conf"),
    CONTAINERS_STORAGE_CONF: join(root, "storage.conf"),
    XDG_RUNTIME_DIR: join(root, "xdg"),
  };
  if (existsSync("/usr/bin/podman") && process.getuid?.() === 0) {
    execFileSync("tar", ["-C", image, "-cf", join(root, "image.tar"), "."]);
    podman("import", join(root, "image.tar"), "localhost/tiny:1");
  }
});

afterAll(() => {
  if (existsSync("/usr/bin/podman") && process.getuid?.() === 0) podman("rmi", "--all", "--force");
  rmSync(root, { recursive: true, force: true });
});

const podman = (...words: string[]): string =>
  execFileSync("podman", words, {
    env: { ...process.env, ...podmanEnv },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });

interface Kind {
  readonly name: string;
  readonly runType: "podman" | "charliecloud" | "none";
  readonly image?: () => string;
  readonly skip?: string | undefined;
}

const missing = (path: string): string | undefined => (existsSync(path) ? undefined : `${path} is not installed`);
const noPodman =
  missing("/usr/bin/podman") ??
  noTinyImage() ??
  (process.getuid?.() === 0 ? undefined : "Podman with a storage of its own needs root");

const KINDS: readonly Kind[] = [
  { name: "Podman, an image", runType: "podman", image: () => "localhost/tiny:1", skip: noPodman },
  { name: "Podman, a directory", runType: "podman", image: () => join(root, "image"), skip: noPodman },
  {
    name: "Charliecloud",
    runType: "charliecloud",
    image: () => join(root, "image"),
    skip: missing("/usr/bin/ch-run") ?? noTinyImage(),
  },
  { name: "no container", runType: "none" },
];

let jobs = 0;

interface Rank {
  readonly status: number | null;
  readonly stderr: string;
  /** Of the rank's own directory. */
  readonly own: string;
  readonly directory: string;
}

const prepare = async (kind: Kind, launch: Record<string, unknown>, streamer?: readonly string[]) => {
  const directory = join(root, `job-${++jobs}`);
  const found = kind.image?.();
  const plan = planLaunch(
    sampleInput(
      // this machine may have no GPUs
      {
        slot_type: "cpu",
        ...launch,
        ...(found === undefined ? {} : { image: found, container_run_type: kind.runType }),
      },
      {
        directory,
        ...(streamer === undefined ? {} : { streamer, streamerEnv: { STREAM_TOKEN: "secret" } }),
        ...(found?.startsWith("/") === true ? { container: { images: [found] } } : {}),
      },
    ),
  );
  await writePlan(plan);
  // what the batch script writes before it starts the ranks
  await writeFile(join(directory, "hosts"), "n1\nn2\n");
  await writeFile(join(directory, "slots"), "4\n2\n");
  await writeFile(join(directory, "shared.sh"), "export SLIPWAY_JOB_ID='7' SLIPWAY_TOTAL_SLOTS=6 MASTER_PORT=20007\n");
  return plan;
};

const start = (directory: string, env: Readonly<Record<string, string>> = {}) => {
  const child = spawn("/bin/bash", [join(directory, "rank.sh")], {
    env: {
      PATH: process.env["PATH"]!,
      HOME: "/root",
      USER: "root",
      ...podmanEnv,
      SLURM_PROCID: "1",
      SHLVL: "2",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdout.resume();
  const ended = new Promise<Rank>((resolve) => {
    child.once("close", (status) => resolve({ status, stderr, own: join(directory, "ranks/1"), directory }));
  });
  return { child, ended };
};

const run = async (
  kind: Kind,
  launch: Record<string, unknown>,
  env?: Readonly<Record<string, string>>,
): Promise<Rank> => {
  const { paths } = await prepare(kind, launch);
  return start(paths.directory, env).ended;
};

const environmentIn = async ({ own }: Rank): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await readFile(join(own, "work/seen"), "utf8"))
      .split("\0")
      .filter((line) => line !== "")
      .map((line): [string, string] => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );

describe.each(KINDS)("$name", (kind) => {
  const test = it.skipIf(kind.skip !== undefined);
  const why = kind.skip === undefined ? "" : ` (skipped: ${kind.skip})`;
  const contained = kind.runType !== "none";

  test(`gives the command its environment exactly${why}`, { timeout: 120_000 }, async () => {
    const big = `${"x'$".repeat(33_000)}end`;
    const rank = await run(
      kind,
      { command: ["env", "-0"], env: { NASTY, BIG: big, EMPTY: "", INHERITED: null }, startup_hook: "exec >seen" },
      { INHERITED: NASTY, NOT_NAMED: "x", CUDA_VISIBLE_DEVICES: "0,1", SLURM_JOB_ID: "7" },
    );
    expect(rank).toMatchObject({ status: 0, stderr: "" });
    const seen = await environmentIn(rank);
    expect(seen).toMatchObject({
      NASTY,
      BIG: big,
      EMPTY: "",
      INHERITED: NASTY,
      CUDA_VISIBLE_DEVICES: "0,1",
      SLURM_JOB_ID: "7",
      SLIPWAY_RANK: "1",
      SLIPWAY_NODES: "2",
      SLIPWAY_SLOTS: "2",
      SLIPWAY_TOTAL_SLOTS: "6",
      SLIPWAY_HOSTS: "n1,n2",
      SLIPWAY_HOST: "n2",
      MASTER_ADDR: "n1",
      MASTER_PORT: "20007",
    });
    expect(seen["NOT_NAMED"]).toBe(kind.runType === "podman" ? undefined : "x");
    expect(seen["slipway_job"]).toBeUndefined();
  });

  test(`has a private /tmp, the staged files and the binds${why}`, { timeout: 120_000 }, async () => {
    const shared = join(root, `shared-${jobs}`);
    mkdirSync(shared);
    const rank = await run(kind, {
      command: [
        "sh",
        "-c",
        'cat model/a.txt && echo tmp >"$TMPDIR/mine" && echo out >result; ' +
          (contained ? "echo bound >/data/bound" : "true"),
      ],
      files: [{ path: "model/a.txt", content: NASTY }],
      startup_hook: "exec >seen",
      ...(contained ? { bind_mounts: [`${shared}:/data`] } : {}),
    });
    expect(rank).toMatchObject({ status: 0, stderr: "" });
    expect(await readFile(join(rank.own, "work/seen"), "utf8")).toBe(NASTY);
    expect(await readFile(join(rank.own, "work/result"), "utf8")).toBe("out\n");
    expect(await readFile(join(rank.own, "tmp/mine"), "utf8")).toBe("tmp\n");
    expect(existsSync("/tmp/mine")).toBe(false);
    if (contained) expect(await readFile(join(shared, "bound"), "utf8")).toBe("bound\n");
  });

  const binds = contained ? kind.skip : "nothing is bound without a container";
  const unbound = binds === undefined ? "" : ` (skipped: ${binds})`;
  it.skipIf(binds !== undefined)(`leaves /tmp to a user who binds it${unbound}`, { timeout: 120_000 }, async () => {
    const shared = join(root, `tmp-${jobs}`);
    mkdirSync(shared);
    const rank = await run(kind, { command: ["touch", "/tmp/theirs"], bind_mounts: [`${shared}:/tmp`] });
    expect(rank).toMatchObject({ status: 0, stderr: "" });
    expect(existsSync(join(shared, "theirs"))).toBe(true);
    expect(existsSync(join(rank.own, "tmp/theirs"))).toBe(false);
  });

  test(
    `ends with the command's status; a failing hook and a missing program are told${why}`,
    { timeout: 120_000 },
    async () => {
      expect((await run(kind, { command: "exit 7" })).status).toBe(7);
      const hook = await run(kind, { command: ["true"], startup_hook: "false" });
      expect(hook.status).toBe(125);
      expect(hook.stderr).toContain("start-up hook failed");
      expect((await run(kind, { command: ["no-such-program"] })).status).toBe(127);
      expect((await run(kind, { command: ["true"], cwd: "/no/such" })).status).toBe(125);
    },
  );

  test(`is ended with its rank, and leaves nothing${why}`, { timeout: 120_000 }, async () => {
    const plan = await prepare(kind, {
      command: `touch "$SLIPWAY_JOB_DIRECTORY/started"; sleep ${HOUR} & sleep ${HOUR}`,
    });
    const { child, ended } = start(plan.paths.directory);
    await until("the command to start", () => existsSync(join(plan.paths.directory, "started")));
    child.kill("SIGTERM");
    expect(await ended).toMatchObject({ status: 143 });
    const mine = (): string[] =>
      execFileSync("ps", ["-eo", "pid=,stat=,args="], { encoding: "utf8" })
        .split("\n")
        .filter((line) => line.includes(plan.paths.directory) && !/^\s*\d+ Z/.test(line));
    await until("its processes to be gone", () => mine().length === 0);
    if (kind.runType === "podman") expect(podman("ps", "-a", "--quiet")).toBe("");
  });

  test(`is started by the streamer, whose secrets it does not see${why}`, { timeout: 120_000 }, async () => {
    const streamer = join(root, `streamer-${jobs}`);
    writeFileSync(streamer, '#!/bin/bash\necho "$SLIPWAY_STREAM_RANK $STREAM_TOKEN" >"$0.saw"\n"$@"\n', {
      mode: 0o755,
    });
    const plan = await prepare(kind, { command: ["env", "-0"], startup_hook: "exec >seen" }, [streamer]);
    const rank = await start(plan.paths.directory).ended;
    expect(rank).toMatchObject({ status: 0, stderr: "" });
    expect(readFileSync(`${streamer}.saw`, "utf8")).toBe("1 secret\n");
    const seen = await environmentIn(rank);
    expect(seen["SLIPWAY_RANK"]).toBe("1");
    expect(seen["STREAM_TOKEN"]).toBeUndefined();
    const gone = await prepare(kind, { command: ["true"] }, [join(root, "no-such-streamer")]);
    expect((await start(gone.paths.directory).ended).status).toBe(0);
  });
});
