import { describe, expect, it } from "vitest";
import { fileOf, plan } from "./sample.ts";

/** What a launch's script does before anything else, whatever the pool is: a queue, a partition, or the default. */

const SEARCH = ["PATH=/opt/m/bin:$PATH", "export PATH"];
const CLUSTER = [
  "prologue: [module load site]",
  "environment: { SITE: one, TIER: cluster }",
  "queues:",
  "  plain: { partition: gpu }",
  '  own: { partition: gpu, prologue: [module load own, \'echo "$HOME"\'], environment: { TIER: "it\'s own" } }',
];

const pools: readonly (readonly [string | undefined, readonly string[], string])[] = [
  ["own", ["module load own", 'echo "$HOME"'], "it's own"],
  ["plain", ["module load site"], "cluster"],
  ["cpu", ["module load site"], "cluster"],
  [undefined, ["module load site"], "cluster"],
];

describe.each(["slurm", "pbs"] as const)("the batch script of a launch on %s", (manager) => {
  const scriptOf = (pool: string | undefined, cluster: readonly string[], searchPath = SEARCH): string[] =>
    fileOf(plan(pool === undefined ? {} : { resource_pool: pool }, { manager, cluster, searchPath }), "job.sh").split(
      "\n",
    );

  it.each(pools)("sets the variables, the PATH and then the prologue of pool %s", (pool, prologue, tier) => {
    const lines = scriptOf(pool, CLUSTER);
    const wanted = [
      "export SITE=one",
      `export TIER=${tier === "cluster" ? tier : String.raw`'it'\''s own'`}`,
      ...SEARCH,
      // other people's scripts, such as conda's, use variables that may not be set
      "set +u",
      ...prologue,
      "set -u",
    ];
    const at = lines.indexOf(wanted[0]!);
    expect(lines.slice(at, at + wanted.length)).toEqual(wanted);
    for (const later of ['mapfile -t hosts <"$job/hosts"']) expect(lines.indexOf(later)).toBeGreaterThan(at);
  });

  it("has no lines where nothing was written", () => {
    const lines = scriptOf(undefined, [], []);
    expect(lines.filter((line) => /^export |set \+u|^PATH=/.test(line))).toEqual([]);
  });
});
