// The file of results: what was measured when, with which commit, on which machine. Partial runs can be combined.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { root } from "./slipway.mjs";

const git = (...args) => {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
};

/** The commit being measured; a `+` says that files differ from it. */
export const commitHere = () => {
  const commit = git("rev-parse", "--short=10", "HEAD");
  if (commit === undefined) return "unknown";
  const changed = git("status", "--porcelain", "--", "src", "native", "bench", "bin", "package-lock.json");
  return changed === "" ? commit : `${commit}+`;
};

/**
 * Results of an earlier file and those measured now: of two with the same name the newer counts. Numbers of different
 * machines are not mixed.
 */
export const mergeResults = (earlier, now) => {
  for (const fact of ["cpu", "cores", "memoryGb"])
    if (earlier.machine[fact] !== now.machine[fact])
      throw new Error(`the earlier results are of another machine (${fact}: ${earlier.machine[fact]})`);
  const measured = new Map(now.experiments.map((each) => [each.name, each]));
  const experiments = earlier.experiments.map((each) => {
    const newer = measured.get(each.name);
    measured.delete(each.name);
    return newer ?? each;
  });
  return { ...now, experiments: [...experiments, ...measured.values()] };
};

export const writeResults = (path, results, merge) => {
  const whole = merge && existsSync(path) ? mergeResults(JSON.parse(readFileSync(path, "utf8")), results) : results;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(whole, null, 2)}\n`);
  return whole;
};
