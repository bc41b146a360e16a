import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { daskPython } from "../../scripts/test-venv.mjs";
import { ROOT } from "./slipway-process.ts";

/** For what Python leaves in its temporary directory when it is killed. */
let own: string;
beforeAll(async () => {
  own = await mkdtemp(join(tmpdir(), "slw-dask-"));
});
afterAll(() => rm(own, { recursive: true, force: true }));

interface Seen {
  /** Whether its parent is a fork of the nanny, and not the nanny itself. */
  readonly forked: boolean;
  readonly hash: number;
  readonly same: number;
  readonly restarted: boolean;
  readonly variables: Readonly<Record<string, string | null>>;
}

const absent = existsSync(daskPython) ? "" : " (skipped: Dask is not installed: pip could not fetch it)";

it.skipIf(absent !== "")(
  `a worker of Slipway's own path is forked from what its nanny has imported, is as Dask's own would be, and is replaced and ended with its nanny${absent}`,
  { timeout: 180_000 },
  async () => {
    const { stdout } = await promisify(execFile)(
      daskPython,
      [
        join(ROOT, "test", "fixtures", "dask", "worker_start.py"),
        join(ROOT, "src", "wrap", "shim", "slipway_dask_worker.py"),
      ],
      { timeout: 170_000, env: { ...process.env, TMPDIR: own } },
    );
    const seen = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Seen);
    // without the seed from the start Dask starts it as ever
    expect(seen.map(({ forked }) => forked)).toEqual([true, false]);
    for (const { hash, same, restarted, variables } of seen) {
      expect([hash, same, restarted]).toEqual([seen[1]!.hash, seen[1]!.hash, true]);
      expect(variables).toEqual(seen[1]!.variables);
    }
    expect(seen[0]!.variables).toMatchObject({ PYTHONHASHSEED: "6640", OMP_NUM_THREADS: "1" });
  },
);

it.skipIf(absent !== "")(
  `the end of a worker's life never counts against a task, also where nobody else can take what it holds${absent}`,
  { timeout: 180_000 },
  async () => {
    const script = join(ROOT, "test", "fixtures", "dask", "end_of_life.py");
    const words = [script, join(ROOT, "src", "wrap", "shim")];
    const { stdout } = await promisify(execFile)(daskPython, words, {
      timeout: 170_000,
      env: { ...process.env, TMPDIR: own },
    });
    expect(JSON.parse(stdout)).toEqual([1, 2]);
  },
);
