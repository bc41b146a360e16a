import { describe, expect, it } from "vitest";
import { createCompactor } from "../../../src/archive/compactor.ts";
import { createState } from "../../../src/core/state.ts";
import type { Journal } from "../../../src/journal/index.ts";

const compactorThat = (script: string) =>
  createCompactor({
    home: "/nonexistent",
    journal: { roll: () => Promise.resolve({ upTo: {} }) } as unknown as Journal,
    state: createState(),
    keepHistory: true,
    command: () => [process.execPath, "-e", script],
    log: () => undefined,
  });

describe("a compaction", () => {
  it("whose process says something else than an outcome, or fails, is a failed one; the server goes on", async () => {
    for (const [script, words] of [
      ["console.log('[marking 12 ms]')", /not valid JSON/],
      ["", /JSON/],
      ["console.error('no room'); process.exit(3)", /no room/],
      ["process.exit(3)", /ended with 3/],
    ] as const) {
      const compactor = compactorThat(script);
      await expect(compactor.compact()).rejects.toThrow(words);
      await compactor.close();
    }
  });
});
