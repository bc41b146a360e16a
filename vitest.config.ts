import { defineConfig } from "vitest/config";

/** Tests of one room each that start processes of their own. */
const PROCESSES = [
  "test/unit/agent/spawner*.test.ts",
  "test/unit/agent/memory-watch.test.ts",
  "test/unit/server/home.claim.test.ts",
];

// `unit` needs no processes and stays under 20 s; `processes` starts some; `system` drives the built binaries.
export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], exclude: PROCESSES, testTimeout: 15_000 } },
      { test: { name: "processes", include: PROCESSES, testTimeout: 60_000 } },
      {
        test: {
          name: "system",
          include: ["test/cli/**/*.test.ts", "test/contract/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
