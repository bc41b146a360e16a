import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./slipway-process.ts";

/** The short version of `npm run test:faults`: the real binaries through seeded faults, and the directed scenarios. */

const harness = async (...args: string[]): Promise<{ status: number; output: string }> => {
  const child = spawn(process.execPath, [join(ROOT, "scripts", "faults.mjs"), ...args], {
    cwd: ROOT,
    // it has tests of its own, with a patience of their own
    env: { ...process.env, TEST_PATIENCE_MS: undefined },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [status] = (await once(child, "close")) as [number];
  return { status, output };
};

describe("the fault harness, short", () => {
  it(
    "four seeds lose nothing, repeat nothing that need not be, and leave nothing behind",
    { timeout: 300_000 },
    async () => {
      const { status, output } = await harness("--short", "--from", "20701", "--no-scenarios", "--parallel", "2");
      expect({ status, output }, output).toEqual({
        status: 0,
        output: expect.stringMatching(/^4 passed, 0 failed, 0 skipped$/m),
      });
    },
  );

  it("each directed fault that does not mostly wait is survived", { timeout: 400_000 }, async () => {
    const { status, output } = await harness("--short", "--scenarios", "--parallel", "3");
    expect({ status, output }, output).toEqual({ status: 0, output: expect.stringMatching(/^\d\d passed, 0 failed/m) });
  });
});
