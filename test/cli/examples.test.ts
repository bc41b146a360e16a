import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView } from "../../src/api/schemas.ts";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";
import { processesUnder } from "./processes-under.ts";

/** The runs of examples/, as a newcomer types them, in a copy of the directory; no server runs before. */

/** What 240 processes of Node may take where other tests run beside them. */
const BUSY_MS = 240_000;

/** What was put into the samples' reads. */
const VARIANTS = "12 T A: eva\n31 C G: ada, cleo, finn\n90 C G: cleo, dev\n140 G A: eva\n";

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
  await cp(join(ROOT, "examples"), join(slipway.cwd, "examples"), { recursive: true });
});

afterEach(() => slipway.cleanup());

const result = (path: string): Promise<string> => readFile(join(slipway.cwd, "out", path), "utf8");

describe("examples", () => {
  it(
    "montecarlo: 240 samples with retries, a merge and an unneeded handler estimate pi; standard output holds the result alone",
    async () => {
      const { status, stdout, stderr } = await slipway.run(["run", "examples/montecarlo.yaml"], { timeoutMs: BUSY_MS });
      expect(stderr).toContain("243 tasks");
      expect(stdout).toMatch(
        /^pi is about 3\.14\d+, give or take 0\.00015\n120,000,000 points in 240 samples; off by 0\.000\d+\n$/,
      );
      expect(status).toBe(0);
      expect(await processesUnder(slipway.root)).toEqual([]);
      expect((await slipway.run(["status"])).status).toBe(3);

      const run = await slipway.json<RunView>(["show", "1"]);
      expect(run).toMatchObject({ name: "montecarlo", state: "DONE", total: 243, unneeded: 1, retries: 2, losses: 0 });
      expect(run.counts).toEqual({ DONE: 242, CANCELED: 1 });
      const { pi, expected, points, samples } = JSON.parse(await result("montecarlo/pi.json")) as Record<
        string,
        number
      >;
      expect([points, samples]).toEqual([120_000_000, 240]);
      expect(expected).toBeCloseTo(0.00015, 5);
      // Seeds are fixed, so this is not a gamble: the estimate is the same on every machine.
      expect(Math.abs(pi! - Math.PI)).toBeLessThan(4 * expected!);
    },
    BUSY_MS,
  );

  it("sweep: 40 points of a JSON file give the amplitudes that theory says", async () => {
    const { status, stdout, stderr } = await slipway.run(["run", "examples/sweep.yaml"]);
    expect(status, stderr).toBe(0);
    const [head, ...lines] = (await result("sweep/table.csv")).trimEnd().split("\n");
    expect(head).toBe("damping,frequency,amplitude");
    expect(lines).toHaveLength(40);
    for (const line of lines) {
      const [damping, frequency, amplitude] = line.split(",").map(Number) as [number, number, number];
      const exact = 1 / Math.hypot(1 - frequency ** 2, 2 * damping * frequency);
      expect(Math.abs(amplitude - exact) / exact, line).toBeLessThan(0.001);
    }
    expect(stdout.trimEnd().split("\n")).toHaveLength(7);
    expect(stdout).toContain("    0.05 |  1.066  1.330  2.253  4.756 10.000  4.218  0.794  0.333\n");
  });

  it("textpipe: every word of the text is counted exactly once", async () => {
    const { status, stdout, stderr } = await slipway.run(["run", "examples/textpipe.yaml"]);
    expect(status, stderr).toBe(0);

    const text = await readFile(join(ROOT, "examples", "textpipe", "raven.txt"), "utf8");
    const expected = new Map<string, number>();
    for (const [word] of text.toLowerCase().matchAll(/[a-z']+/g)) expected.set(word, (expected.get(word) ?? 0) + 1);
    const counted = (await result("textpipe/words.txt"))
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" "))
      .map(([times, word]): [string, number] => [word!, Number(times)]);
    expect(new Map(counted)).toEqual(expected);
    expect(counted).toHaveLength(expected.size);

    const total = [...expected.values()].reduce((sum, times) => sum + times, 0);
    expect(stdout).toMatch(`${total} words, ${expected.size} different ones; the longest is "forgiveness"\n  56 the\n`);
  });

  it("variants: each sample's calls are found, and one that fails costs its own line alone", async () => {
    const { status, stdout, stderr } = await slipway.run(["run", "examples/variants.yaml"]);
    expect(status, stderr).toBe(0);
    expect(stdout).toBe(VARIANTS);
    await rm(join(slipway.cwd, "out"), { recursive: true });
    await rm(join(slipway.cwd, "examples/variants/reads/cleo.txt"));
    const run = await slipway.json<RunView>(["run", "examples/variants.yaml"], { statuses: [1] });
    expect(run.counts).toEqual({ DONE: 11, FAILED: 1, CANCELED: 1 });
    expect(await result("variants/table.txt")).toBe(VARIANTS.replaceAll(/, cleo|cleo, /g, ""));
  });
});
