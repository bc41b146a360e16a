import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { processesUnder } from "../../../cli/processes-under.ts";
import { until } from "../../../until.ts";
import { plan } from "./sample.ts";

/**
 * How the scripts of a launch end their ranks on PBS: its commands are fakes, and each node is a session of its own.
 * After qdel PBS signals only the processes on the first node, and starts nothing more on the others.
 */

let root: string;
let job: string;
let batch: ChildProcess | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slw-ending-"));
  job = join(root, "job");
});
afterEach(async () => {
  batch?.kill("SIGKILL");
  batch = undefined;
  await until("all of them to be gone", async () => {
    const left = await processesUnder(root);
    for (const { pid } of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        // it ended meanwhile
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
    return left.length === 0 ? true : undefined;
  });
  rmSync(root, { recursive: true, force: true });
});

const TMRSH = `#!/bin/bash
[ ! -e "${"$"}{0%/*}/../deleted" ] || { echo 'task not started, Failure -2' >&2; exit 255; }
shift
setsid "$@" &
wait $!
`;

/** Starts the batch script of a launch on two nodes. */
const start = (command: string): { readonly ended: Promise<number | null>; readonly stderr: () => string } => {
  const launch = { command, slots: 2, slot_type: "cpu", pbs: { slots_per_node: 1 } };
  const { directories, files } = plan(launch, { manager: "pbs", directory: job });
  for (const directory of directories) mkdirSync(join(job, directory), { recursive: true });
  for (const { path, content, mode } of files) writeFileSync(join(job, path), content, { mode });
  mkdirSync(join(root, "bin"));
  writeFileSync(join(root, "bin/pbs_tmrsh"), TMRSH, { mode: 0o755 });
  writeFileSync(join(root, "nodes"), "n1\nn2\n");
  const child = spawn("/bin/bash", [join(job, "job.sh")], {
    cwd: root,
    env: {
      PATH: `${join(root, "bin")}:/usr/bin:/bin`,
      PBS_JOBID: "7.pbs",
      PBS_NODEFILE: join(root, "nodes"),
      ROOT: root,
    },
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  batch = child;
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  return { ended: once(child, "exit").then(([status]) => status as number | null), stderr: () => stderr };
};

const exists = (...names: string[]): boolean => names.every((name) => existsSync(join(root, name)));

/** Says that it runs, and that it got TERM. */
const PATIENT =
  'trap "echo >$ROOT/told.$SLIPWAY_RANK; exit 3" TERM; echo >"$ROOT/runs.$SLIPWAY_RANK"; while :; do sleep 0.1; done';

const nothingIsLeft = (): Promise<true> =>
  until("its processes to be gone", async () => ((await processesUnder(root)).length === 0 ? true : undefined));

describe("a launch on PBS", () => {
  it("that is deleted tells its ranks on all nodes, and leaves no process", async () => {
    const { ended, stderr } = start(PATIENT);
    await until("both ranks to run", () => exists("runs.0", "runs.1") || undefined);
    writeFileSync(join(root, "deleted"), "");
    process.kill(-Number(readFileSync(join(job, "ranks/0/pid"), "utf8")), "SIGTERM");
    process.kill(-batch!.pid!, "SIGTERM");
    expect(await ended).toBe(143);
    expect(exists("told.0", "told.1")).toBe(true);
    expect(readFileSync(join(job, "exit-code"), "utf8")).toBe("143\n");
    expect(stderr()).not.toMatch(/Killed|No such file|line \d/);
    await nothingIsLeft();
  });

  it("one of whose ranks fails tells the others, and ends with its status", async () => {
    const { ended } = start(
      `if [ "$SLIPWAY_RANK" = 1 ]; then until [ -e "$ROOT/runs.0" ]; do sleep 0.1; done; exit 7; fi; ${PATIENT}`,
    );
    expect(await ended).toBe(7);
    expect(exists("told.0")).toBe(true);
    expect(readFileSync(join(job, "exit-code"), "utf8")).toBe("7\n");
    await nothingIsLeft();
  });

  it("one of whose ranks is killed ends the others, and nothing watches that rank any more", async () => {
    const { ended } = start(PATIENT);
    await until("both ranks to run", () => exists("runs.0", "runs.1") || undefined);
    process.kill(Number(readFileSync(join(job, "ranks/1/pid"), "utf8")), "SIGKILL");
    expect(await ended).toBe(137);
    expect(exists("told.0")).toBe(true);
    const watching = async (): Promise<boolean> =>
      (await processesUnder(root)).some(({ command }) => command.includes("rank.sh 1") || command === "sleep 2");
    await until("its watcher to be gone", async () => ((await watching()) ? undefined : true));
  });

  it("whose ranks end leaves nothing that watches them", async () => {
    const { ended, stderr } = start("exit 0");
    expect(await ended).toBe(0);
    await nothingIsLeft();
    expect(stderr()).toBe("");
  });
});
