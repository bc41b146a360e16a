// Other programs that start many processes. Each is measured as users have it, or skipped with a reason if it is not
// here.
import { readFileSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attempt, environment, execute, findProgram } from "./commands.mjs";
import { onCores } from "./cores.mjs";
import { Skipped } from "./rounds.mjs";
import { root } from "./slipway.mjs";

const numbers = (count) => Array.from({ length: count }, (_, i) => `${i + 1}\n`).join("");

/** Tasks per second of a program that takes a list of items, including its own start, as at a prompt. */
const perSecond = async ([command, ...args], count) => {
  const { seconds } = await execute(command, args, { input: numbers(count) });
  return count / seconds;
};

export const xargs = (count, parallel, cores) =>
  perSecond(onCores(cores, ["xargs", `-P${parallel}`, "-n1", "/bin/true"]), count);

/** Makes sure that `parallel` is GNU's, and fetches Debian's package if asked to. Throws Skipped. */
export const prepareParallel = async ({ install }) => {
  if (findProgram("parallel") === undefined && install && process.getuid?.() === 0 && findProgram("apt-get"))
    await attempt("apt-get", ["install", "-y", "--no-install-recommends", "parallel"], {
      env: { ...environment, DEBIAN_FRONTEND: "noninteractive" },
    });
  if (findProgram("parallel") === undefined)
    throw new Skipped("not installed (Debian: apt-get install parallel, or --install as root)");
  const { stdout } = await attempt("parallel", ["--version"]);
  const version = /^GNU parallel (\d+)/.exec(stdout)?.[1];
  if (version === undefined) throw new Skipped("the `parallel` on PATH is not GNU's");
  return version;
};

/** As for the Python peers below. */
export const PARALLEL_SHARE = 0.2;

export const gnuParallel = (count, parallel) => perSecond(["parallel", `-j${parallel}`, "/bin/true", "{}"], count);

/** bench/peers/peer_NAME.py. `share`: the part of the tasks that is enough to measure the rate of a slow one. */
export const PYTHON_PEERS = [
  { key: "hyperqueue", label: "HyperQueue", share: 0.3 },
  { key: "dask", label: "Dask distributed", share: 0.3 },
  { key: "parsl", label: "Parsl HTEX", share: 0.3 },
  { key: "radical", label: "RADICAL-Pilot", share: 0.03 },
];

/** A peer's script exits with this if its program is not here. */
const NOT_HERE = 77;
const PEER_TIMEOUT = 900;

const pythonOf = (venv) => (venv === undefined ? findProgram("python3") : join(venv, "bin", "python"));

/** Ends what a peer leaves running when its script is over: every process that has the directory as its home. */
const endThoseOf = (directory) => {
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid) || pid === String(process.pid)) continue;
    try {
      if (readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`HOME=${directory}`))
        process.kill(Number(pid), "SIGKILL");
    } catch {
      // gone meanwhile, or another user's
    }
  }
};

/**
 * Starts a peer, lets it warm up, and times `count` × /bin/true on `workers` workers, in a directory of its own.
 * Resolves with tasks per second and the version; throws Skipped if it is not here, and an error if it did not finish
 * them.
 */
export const pythonPeer = async (key, count, workers, { venv }, cores) => {
  const python = pythonOf(venv);
  if (python === undefined) throw new Skipped("no python3 on PATH");
  const directory = await mkdtemp(join(tmpdir(), "slipway-peer-"));
  const script = join(root, "bench", "peers", `peer_${key}.py`);
  const inVenv = venv === undefined ? {} : { VIRTUAL_ENV: venv, PATH: `${join(venv, "bin")}:${environment["PATH"]}` };
  try {
    const [command, ...words] = onCores(cores, [python, script, String(count), String(workers)]);
    const { status, stdout, stderr } = await attempt(command, words, {
      cwd: directory,
      // Some keep things in the home directory: give them the one that is removed.
      env: { ...environment, ...inVenv, HOME: directory, PWD: directory, PYTHONDONTWRITEBYTECODE: "1" },
      timeout: PEER_TIMEOUT,
    });
    const why = stderr.trimEnd().split("\n").at(-1)?.slice(0, 200) || "no reason given";
    if (status === NOT_HERE) throw new Skipped(why);
    if (status !== 0) throw new Error(`its script failed: ${why}`);
    const { seconds, version } = JSON.parse(stdout.trimEnd().split("\n").at(-1));
    return { rate: count / seconds, version };
  } finally {
    endThoseOf(directory);
    await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
};
