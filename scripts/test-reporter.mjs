// A vitest reporter that records what the README's table and the closing line need: every test, how it ended, and why
// it was skipped (vitest's own JSON leaves the reason out). SLIPWAY_TEST_RESULTS names the file.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";

/** What was compared may be megabytes on one line. */
const MOST_OF_LINE = 500;

const problemOf = (errors) =>
  (errors ?? []).map(({ message }) => String(message).split("\n", 1)[0].slice(0, MOST_OF_LINE)).join("; ");

export default class ResultsReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const tests = [];
    for (const module of modules) {
      const file = relative(process.cwd(), module.moduleId);
      for (const test of module.children.allTests()) {
        const result = test.result();
        tests.push({
          file,
          name: test.fullName,
          state: result.state === "pending" ? "failed" : result.state,
          ...(result.state === "skipped" ? { reason: result.note ?? "" } : {}),
          ...(result.state === "failed" ? { problem: problemOf(result.errors) } : {}),
          ...(test.diagnostic()?.flaky === true ? { flaky: true, problem: problemOf(result.errors) } : {}),
          ms: Math.round(test.diagnostic()?.duration ?? 0),
        });
      }
      // A file that could not be read, or whose hooks failed, has no test to blame.
      const errors = module.errors();
      if (errors.length > 0)
        tests.push({ file, name: "(the file itself)", state: "failed", problem: problemOf(errors), ms: 0 });
      for (const suite of module.children.allSuites()) {
        const failed = suite.errors();
        if (failed.length > 0)
          tests.push({ file, name: `${suite.fullName} (hooks)`, state: "failed", problem: problemOf(failed), ms: 0 });
      }
    }
    for (const error of unhandledErrors)
      tests.push({ file: "", name: "(unhandled error)", state: "failed", problem: problemOf([error]), ms: 0 });
    const path = process.env["SLIPWAY_TEST_RESULTS"];
    if (path === undefined) return;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify({ node: process.version, at: new Date().toISOString(), tests }, null, 1)}\n`);
  }
}
