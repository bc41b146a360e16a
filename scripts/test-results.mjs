// Reads test-results/tests.json. Run as a program it prints the closing line and fails when a test failed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const resultsPath = join(root, "test-results", "tests.json");

/** Undefined when there are none. */
export const readResults = (path = resultsPath) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
};

export const countOf = ({ tests }, state) => tests.filter((test) => test.state === state).length;

export const closingLine = (results) =>
  `${countOf(results, "passed")} passed, ${countOf(results, "failed")} failed, ${countOf(results, "skipped")} skipped`;

/** Why a test was skipped: what it said, or what stands in its title as `(skipped: …)`. */
export const skipReason = ({ reason, name }) => reason || (/\(skipped:? (.+?)\)(?: > |$)/.exec(name)?.[1] ?? "");

/** Each reason once, with how many tests it kept from running. */
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
