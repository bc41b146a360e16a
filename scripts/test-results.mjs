// Reads test-results/tests.json. Run as a program it prints the closing line and fails when a test failed.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const resultsPath = join(root, "test-results", "tests.json");

/** Undefined if there are none. */
export const readResults = (path = resultsPath) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
};

export const writeResults = (path, results) => writeFileSync(path, `${JSON.stringify(results, null, 1)}\n`);

/** More than this is not bad luck. */
const MOST_AGAIN = 5;

/**
 * Files with failed tests of real processes and managers. The machine may have been too busy for a moment, so they get
 * one more try by themselves, when all others have ended; unit tests have no such excuse.
 */
export const filesWorthAnotherTry = ({ tests }) => {
  const failed = tests.filter(({ state }) => state === "failed");
  const files = [...new Set(failed.map(({ file }) => file))];
  return files.length <= MOST_AGAIN && files.every((file) => /^test\/(cli|contract|clusters)\//.test(file))
    ? files
    : [];
};

/** A test that failed and then passed is marked so; one that failed twice, or was not found again, stays failed. */
export const withSecondTries = (results, again) => {
  const passed = new Set(
    (again?.tests ?? []).filter(({ state }) => state === "passed").map(({ file, name }) => `${file}\0${name}`),
  );
  const stillFails = new Set((again?.tests ?? []).filter(({ state }) => state === "failed").map(({ file }) => file));
  const tests = results.tests.flatMap((test) => {
    // a test that a failed hook had prevented has run now
    if (test.state === "skipped" && passed.has(`${test.file}\0${test.name}`)) return [{ ...test, state: "passed" }];
    if (test.state !== "failed") return [test];
    if (passed.has(`${test.file}\0${test.name}`)) return [{ ...test, state: "passed", flaky: true }];
    // a failed file or hook is not a test: it is gone when its file passes
    const isTest = !/^\(|\(hooks\)$/.test(test.name);
    return again !== undefined && !isTest && !stillFails.has(test.file) ? [] : [test];
  });
  const known = new Set(results.tests.map(({ file, name }) => `${file}\0${name}`));
  const more = (again?.tests ?? []).filter(({ file, name }) => !known.has(`${file}\0${name}`));
  return { ...results, tests: [...tests, ...more] };
};

export const countOf = ({ tests }, state) => tests.filter((test) => test.state === state).length;

export const closingLine = (results) =>
  `${countOf(results, "passed")} passed, ${countOf(results, "failed")} failed, ${countOf(results, "skipped")} skipped`;

/** Why a test was skipped: what it said, or the `(skipped: …)` in its title. */
export const skipReason = ({ reason, name }) => reason || (/\(skipped:? (.+?)\)(?: > |$)/.exec(name)?.[1] ?? "");

/** Each reason once, with how many tests it prevented. */
export const skippedLines = ({ tests }) => {
  const reasons = new Map();
  for (const test of tests) {
    if (test.state !== "skipped") continue;
    const why = skipReason(test) || `no reason given: ${test.file}: ${test.name}`;
    reasons.set(why, (reasons.get(why) ?? 0) + 1);
  }
  return [...reasons].map(([why, count]) => `skipped ${count}: ${why}`);
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const results = readResults();
  if (results === undefined || results.tests.length === 0) {
    console.log("0 passed, 1 failed, 0 skipped");
    process.exitCode = 1;
  } else {
    console.log(closingLine(results));
    if (countOf(results, "failed") > 0) process.exitCode = 1;
  }
}
