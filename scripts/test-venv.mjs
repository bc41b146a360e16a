// schemathesis, which reads the OpenAPI document and tries the API with it, in a Python environment of its own: made
// once, outside the repository, and reused. If pip reaches nothing, the test that needs it says so and is skipped.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const requirements = join(import.meta.dirname, "test-requirements.txt");
const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "slipway-tests");
const version = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
const directory = join(cache, `schemathesis-${version}`);

/** Runs it: a script that exists only when the installation is complete. */
export const schemathesis = join(directory, "run");

const LIMIT_MS = 180_000;

/** Installs it with one Python: in a virtual environment or, if that cannot be made, as a folder of packages. */
const makeWith = (python, folder, until) => {
  const run = (command, ...args) =>
    spawnSync(command, args, {
      encoding: "utf8",
      timeout: Math.max(1, until - Date.now()),
      env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: "1" },
    });
  const pip = ["-m", "pip", "install", "-q", "--no-input", "--retries", "1", "--timeout", "15", "-r", requirements];
  const here = 'here=$(dirname "$0")';
  const works = (text) => {
    writeFileSync(join(folder, "run"), `#!/bin/sh\n${here}\n${text} -m schemathesis.cli "$@"\n`, { mode: 0o755 });
    return run(join(folder, "run"), "--version").status === 0;
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

/** Installs it if it is missing; says what it did. */
export const installSchemathesis = () => {
  if (existsSync(schemathesis)) return [];
  const folder = `${directory}.${process.pid}`;
  const until = Date.now() + LIMIT_MS;
  try {
    for (const python of ["/usr/bin/python3", "python3"]) {
      rmSync(folder, { recursive: true, force: true });
      if (!makeWith(python, folder, until)) continue;
      // another clone may have been faster: its installation is as good
      if (!existsSync(schemathesis)) renameSync(folder, directory);
      return [`installed with pip, in ${directory}: schemathesis`];
    }
  } catch (error) {
    return [`schemathesis could not be installed (${error.message}); its test is skipped`];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return ["schemathesis could not be installed with pip; its test is skipped"];
};
