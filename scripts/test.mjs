// `npm test`: builds what is stale, runs the unit and system tests, says whether the README's table of what works is
// still true, and ends with one line of counts. Arguments go to vitest; with any, only part of the tests run, which
// says nothing about the table.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  closingLine,
  countOf,
  filesWorthAnotherTry,
  readResults,
  resultsPath,
  root,
  skippedLines,
  withSecondTries,
  writeResults,
} from "./test-results.mjs";
import { installTestPackages } from "./test-packages.mjs";
import { tellOfReadme } from "./what-works.mjs";

const args = process.argv.slice(2);
const whole = args.length === 0;
const results = whole ? resultsPath : join(root, "test-results", "part.json");

const run = (script, ...words) => {
  const { status } = spawnSync(process.execPath, [join(root, script), ...words], { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
};

const versionOf = (command) => {
  const { status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  return status === 0 ? stdout.split("\n")[0] : undefined;
};

run("scripts/build.mjs", "--if-stale");
for (const line of installTestPackages(args)) console.log(line);

console.log(`node ${process.version}, ${process.platform} ${process.arch}`);
const native = existsSync(join(root, "dist", "slipway-spawner"));
console.log(
  native
    ? `native spawner: tested, beside the one in Node (${versionOf("cc") ?? "built before; no compiler now"})`
    : "native spawner: not built here (node scripts/build-native.mjs says why); its tests are skipped, the one in Node is tested",
);

rmSync(results, { force: true });
const again = join(root, "test-results", "again.json");
const reporters = ["--reporter=default", `--reporter=${join(root, "scripts", "test-reporter.mjs")}`];
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
const runTests = (file, ...words) =>
  spawnSync(process.execPath, [vitest, "run", ...reporters, ...words], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, SLIPWAY_TEST_RESULTS: file },
  });
runTests(results, ...args);

let found = readResults(results);
const failedFiles = found === undefined ? [] : filesWorthAnotherTry(found);
if (failedFiles.length > 0) {
  console.log(`once more, by themselves: ${failedFiles.join(", ")}`);
  rmSync(again, { force: true });
  runTests(again, "--no-file-parallelism", ...failedFiles);
  found = withSecondTries(found, readResults(again));
  writeResults(results, found);
}
if (found === undefined) {
  console.error("vitest ended without results");
  console.log("0 passed, 1 failed, 0 skipped");
  process.exit(1);
}
for (const line of skippedLines(found)) console.log(line);
for (const { file, name, problem, flaky } of found.tests)
  if (flaky === true) console.log(`passed only when tried again: ${file}: ${name} (first: ${problem})`);
if (whole) for (const line of tellOfReadme(found)) console.log(line);
for (const { file, name, state, problem } of found.tests)
  if (state === "failed") console.log(`failed: ${file}: ${name}${problem === "" ? "" : ` (${problem})`}`);
console.log(closingLine(found));
process.exitCode = countOf(found, "failed") > 0 || found.tests.length === 0 ? 1 : 0;
