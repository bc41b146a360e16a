import { defineConfig } from "vitest/config";
import LongestFirst from "./test/longest-first.ts";

// every start of Node.js would read them, and no test needs them
delete process.env["NODE_EXTRA_CA_CERTS"];

/** Tests of one room each that start processes of their own. */
const PROCESSES = [
  "test/unit/agent/spawner*.test.ts",
  "test/unit/agent/memory-watch.test.ts",
  "test/unit/core/shell-contexts.test.ts",
  "test/unit/home/claim.test.ts",
  "test/unit/launch/service/hostile.test.ts",
  "test/unit/launch/service/removal.test.ts",
  "test/unit/starters/*.test.ts",
  "test/unit/launch/plan/scripts*.test.ts",
  "test/unit/managers/commands.test.ts",
  "test/unit/wrap/hold.test.ts",
  "test/unit/wrap/lines-in-bash.test.ts",
];

/** What a busy machine may cost a test of real processes: another try, which the closing lines name. */
const SECOND_TRY = 1;

// `unit` needs no processes and stays under 20 s; `processes` starts some; `system` drives the built binaries; `page`
// looks at the page in a browser; `clusters` boots real workload managers. One after the other: each has its own number of files at a time.
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          exclude: PROCESSES,
          testTimeout: 60_000,
          // files share what they import: to read it anew for each took longer than the tests; and every core has work
          isolate: false,
          maxWorkers: "100%",
          env: { TEST_PATIENCE_MS: "12000" },
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "processes",
          include: PROCESSES,
          testTimeout: 60_000,
          env: { TEST_PATIENCE_MS: "50000" },
          retry: SECOND_TRY,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "system",
          include: ["test/cli/**/*.test.ts", "test/contract/**/*.test.ts"],
          testTimeout: 120_000,
          env: { TEST_PATIENCE_MS: "60000" },
          hookTimeout: 60_000,
          // many of them mostly wait
          maxWorkers: 3,
          retry: SECOND_TRY,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: "page",
          include: ["test/page/**/*.test.ts"],
          testTimeout: 60_000,
          env: { TEST_PATIENCE_MS: "30000" },
          hookTimeout: 60_000,
          maxWorkers: 1,
          retry: SECOND_TRY,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: "clusters",
          include: ["test/clusters/**/*.test.ts"],
          testTimeout: 180_000,
          // tests of OAR take turns: there is one of it on a machine
          hookTimeout: 600_000,
          maxWorkers: 5,
          retry: SECOND_TRY,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
