// Dask clusters whose workers are jobs of a real Slurm: Slipway's own, and dask-jobqueue's. A client measures both.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { daskPython } from "../scripts/test-venv.mjs";
import { attempt, environment, execute } from "./commands.mjs";
import { Skipped } from "./rounds.mjs";
import { Broken } from "./sample.mjs";
import { keepOpen, root } from "./slipway.mjs";

const CLIENT = join(root, "bench", "peers", "dask_slurm.py");
const PATIENCE_MS = 300_000;

/** Of each worker and its job. Both get the same; whatever else is the default of each. */
const JOB = { cores: 1, memory: "300MB", walltime: "00:30:00" };
/** Short, so that both ask for all the workers they may have. */
const ADAPTIVE = { target: "5s", unknown: "1m" };

const clustersOf = (slurm) => `default: hpc
clusters:
  hpc:
    type: slurm
    config: ${slurm.config}
    queues:
      small: { partition: batch }
`;

/** A Python with Dask and dask-jobqueue: that of --venv, else the one that the tests use. Throws Skipped. */
export const findDask = async ({ venv }) => {
  const python = venv === undefined ? daskPython : join(venv, "bin", "python");
  if (!existsSync(python)) throw new Skipped("no Python with Dask and dask-jobqueue: name one with --venv DIR");
  const { status } = await attempt(python, ["-c", "import distributed, dask_jobqueue"]);
  if (status !== 0) throw new Skipped(`${python} has no Dask, or no dask-jobqueue`);
  return python;
};

/** Until Slurm has no job: what one contender leaves would burden the next. */
const untilEmpty = async (slurm) => {
  for (const begun = performance.now(); performance.now() - begun < PATIENCE_MS; await sleep(100)) {
    const { stdout } = await slurm.run(["squeue", "--noheader", "--format=%A"]);
    if (stdout.trim() === "") return;
  }
  throw new Broken("jobs are left in Slurm");
};

/** Holds the client until it is closed; resolves with what it measured. */
const startClient = async (python, plan, { cwd, env }) => {
  const child = spawn(python, [CLIENT, JSON.stringify(plan)], { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  let words = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    words = (words + text).slice(-4000);
  });
  const session = {};
  keepOpen(session, async () => {
    child.stdin.end();
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    await ended;
    clearTimeout(timer);
  });
  for await (const line of createInterface({ input: child.stdout })) return Object.assign(session, JSON.parse(line));
  await session.close();
  throw new Broken(`the client ended without a number: ${words.trimEnd().split("\n").at(-1)}`);
};

/** What both have: a directory, the counted commands first on PATH, and an end that leaves no job. */
const withSurroundings = async ({ slurm, commands }, use) => {
  const cwd = await mkdtemp(join(tmpdir(), "slw-bench-dask-"));
  const env = { ...environment, PATH: `${commands.bin}:${environment["PATH"]}`, SLURM_CONF: slurm.config };
  try {
    return await use({ cwd, env });
  } finally {
    await untilEmpty(slurm);
    await rm(cwd, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
};

/** Runs a client of a SLURMCluster that it makes itself; `use` looks while the workers are there. */
export const withJobqueue = (lab, { wait, jobs, after = 0 }, use = () => undefined) =>
  withSurroundings(lab, async (around) => {
    const client = await startClient(
      lab.python,
      { wait, jobs, after, python: lab.python, ...JOB, ...ADAPTIVE },
      around,
    );
    try {
      return { ...client, looked: await use() };
    } finally {
      await client.close();
    }
  });

/** The same of a cluster that `slipway wrap CLUSTER/QUEUE` holds. */
export const withSlipway = (lab, { wait, jobs, after = 0 }, use = () => undefined) =>
  withSurroundings(lab, async (around) => {
    const home = await mkdtemp(join(lab.dir, ".slipway-bench-"));
    const status = join(around.cwd, "dask.json");
    const slipway = (...words) =>
      execute(process.execPath, [join(root, "bin", "slipway"), ...words, "--home", home], { ...around, spared: true });
    const parameters = {
      ...JOB,
      maximum_jobs: jobs,
      transformation_throttle: 1,
      "target-duration": ADAPTIVE.target,
      "unknown-task-duration": ADAPTIVE.unknown,
    };
    const session = {};
    keepOpen(session, async () => {
      try {
        if (existsSync(status)) await slipway("wrap", "down", status);
      } finally {
        await rm(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      }
    });
    try {
      await writeFile(join(home, "clusters.yaml"), clustersOf(lab.slurm));
      const given = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
      const where = ["--status-file", status, "--host", "127.0.0.1", "--python", lab.python];
      await slipway("wrap", "hpc/small", ...where, "--start", "--parameter", ...given);
      const client = await startClient(lab.python, { status, wait, jobs, after }, around);
      try {
        return { ...client, looked: await use() };
      } finally {
        await client.close();
      }
    } finally {
      await session.close();
    }
  });
