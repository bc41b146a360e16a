// Python programs that tests need, each in a Python of its own: made once, outside the repository, and used again. Where pip
// reaches nothing, the tests that need one say so and are skipped.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "slipway-tests");
const LIMIT_MS = 180_000;

/** What is made: its packages, and the words after Python that make its script. */
const place = (name, list, words, check) => {
  const requirements = join(import.meta.dirname, list);
  const version = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const directory = join(cache, `${name}-${version}`);
  return { name, requirements, words, check, directory, script: join(directory, "run") };
};

/** Reads the OpenAPI document and tries the API with it. */
const SCHEMATHESIS = place("schemathesis", "test-requirements.txt", "-m schemathesis.cli ", ["--version"]);
/** A Python with dask, distributed and dask-jobqueue, as a user has it. */
const DASK = place("dask", "test-requirements-dask.txt", "", ["-c", "import dask_jobqueue"]);

/** A Jupyter server with jupyter-server-proxy. */
const JUPYTER = place("jupyter", "test-requirements-jupyter.txt", "-m jupyter_server ", ["--version"]);

/** Debian's own, where PyPI cannot be reached: no dask-jobqueue, and an older distributed. */
const DEBIANS_PYTHON = "/usr/bin/python3";
const DEBIANS_DASK = join(cache, "dask-debian", "run");

/** What runs it: a script that is there only when all of it is. */
export const schemathesis = SCHEMATHESIS.script;
export const jupyter = JUPYTER.script;
export const daskPython = !existsSync(DASK.script) && existsSync(DEBIANS_DASK) ? DEBIANS_DASK : DASK.script;
/** Why tests of Dask, and those of dask-jobqueue, are skipped; undefined where they are not. */
export const noDask = existsSync(daskPython) ? undefined : "neither pip nor apt could install Dask";
export const noJobqueue =
  noDask ?? (daskPython === DASK.script ? undefined : "dask-jobqueue could not be installed with pip");

/** Makes it with one Python: as a virtual environment, or where that cannot be made, as a folder of packages. */
const makeWith = (python, folder, { requirements, words, check }, until) => {
  const run = (command, ...args) =>
    spawnSync(command, args, {
      encoding: "utf8",
      timeout: Math.max(1, until - Date.now()),
      env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: "1" },
    });
  const pip = ["-m", "pip", "install", "-q", "--no-input", "--retries", "1", "--timeout", "15", "-r", requirements];
  const here = 'here=$(dirname "$0")';
  const works = (text) => {
    writeFileSync(join(folder, "run"), `#!/bin/sh\n${here}\n${text} ${words}"$@"\n`, { mode: 0o755 });
    return run(join(folder, "run"), ...check).status === 0;
  };
  mkdirSync(folder, { recursive: true });
  if (run(python, "-m", "venv", join(folder, "venv")).status === 0) {
    const own = join(folder, "venv", "bin", "python");
    if (run(own, ...pip).status === 0 && works('exec "$here/venv/bin/python"')) return true;
  }
  rmSync(join(folder, "venv"), { recursive: true, force: true });
  const packages = join(folder, "packages");
  return (
    run(python, ...pip, "--target", packages).status === 0 && works(`PYTHONPATH="$here/packages" exec "${python}"`)
  );
};

/** Installs one where it is missing; says what was done. */
const install = (what) => {
  const { name, directory, script } = what;
  if (existsSync(script)) return [];
  const folder = `${directory}.${process.pid}`;
  const until = Date.now() + LIMIT_MS;
  try {
    for (const python of ["/usr/bin/python3", "python3"]) {
      rmSync(folder, { recursive: true, force: true });
      if (!makeWith(python, folder, what, until)) continue;
      // another clone may have been faster: its own is as good
      if (!existsSync(script)) renameSync(folder, directory);
      return [`installed with pip, in ${directory}: ${name}`];
    }
  } catch (error) {
    return [`${name} could not be installed (${error.message}); its tests are skipped`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return [`${name} could not be installed with pip; its tests are skipped`];
};

export const installSchemathesis = () => install(SCHEMATHESIS);
export const installJupyter = () => install(JUPYTER);

/** From PyPI, else with `apt`, a function that installs packages of Debian's where it can. */
export const installDask = (apt = () => undefined) => {
  const lines = install(DASK);
  if (existsSync(DASK.script)) return lines;
  const works = () => spawnSync(DEBIANS_PYTHON, ["-c", "import distributed"]).status === 0;
  if (!works()) apt("python3-distributed");
  rmSync(DEBIANS_DASK, { force: true });
  if (!works()) return ["Dask could not be installed with pip or apt; its tests are skipped"];
  mkdirSync(join(DEBIANS_DASK, ".."), { recursive: true });
  writeFileSync(DEBIANS_DASK, `#!/bin/sh\nexec ${DEBIANS_PYTHON} "$@"\n`, { mode: 0o755 });
  return ["dask-jobqueue could not be installed with pip, and its tests are skipped; Dask is Debian's"];
};
