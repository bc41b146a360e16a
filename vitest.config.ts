import { defineConfig } from "vitest/config";

// Two projects: `unit` needs no processes and must stay under 20 s; `system` drives the built binaries.
export default defineConfig({
  test: {
    projects: [
      {
        test: { name: "unit", include: ["test/unit/**/*.test.ts"], testTimeout: 15_000 },
      },
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
