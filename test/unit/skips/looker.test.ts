import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lookFiles } from "../../../src/skips/look-files.ts";
import { createLooker } from "../../../src/skips/looker.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "look-"));
});
afterEach(() => rm(dir, { recursive: true }));

const file = async (name: string, text: string, seconds: number): Promise<string> => {
  const path = join(dir, name);
  await writeFile(path, text);
  await utimes(path, seconds, seconds);
  return path;
};

describe("looking at files", () => {
  it("compares times; equal ones are no reason; says what is not there and what cannot be looked at", async () => {
    const [old, young, now] = [await file("old", "", 100), await file("young", "", 200), await file("now", "", 200)];
    const none = join(dir, "none");
    const under = join(old, "under");
    const long = join(dir, "x".repeat(300));
    const looks = await lookFiles([
      { mode: "newer", outputs: [young], inputs: [old, now] },
      { mode: "newer", outputs: [young, old], inputs: [now] },
      { mode: "newer", outputs: [none], inputs: [] },
      { mode: "newer", outputs: [old], inputs: [under] },
      { mode: "present", outputs: [old], inputs: [none] },
      { mode: "newer", outputs: [long], inputs: [] },
    ]);
    expect(looks.map(({ reason }) => reason)).toEqual([
      null,
      { kind: "newer", about: now, than: old },
      { kind: "no-output", about: none },
      { kind: "no-input", about: under },
      null,
      { kind: "unreadable", about: long, than: "ENAMETOOLONG" },
    ]);
  });

  it("content is what the inputs hold, not when or by whom", async () => {
    const [a, b, out] = [await file("a", "x", 100), await file("b", "y", 100), await file("out", "", 1)];
    const look = async (inputs: string[]) => (await lookFiles([{ mode: "content", outputs: [out], inputs }]))[0]!;
    const first = await look([a, b]);
    expect(first).toEqual({ reason: null, contents: expect.any(Number) as number });
    expect(first.contents).toBeGreaterThan(0);
    await file("a", "x", 500);
    expect(await look([a, b])).toEqual(first);
    await file("a", "z", 100);
    expect((await look([a, b])).contents).not.toBe(first.contents);
    expect((await look([])).contents).toBeGreaterThan(0);
    expect(await look([dir])).toEqual({
      reason: { kind: "unreadable", about: dir, than: "it is not a file" },
      contents: 0,
    });
  });
});

/** A process that answers a line for each line, unless it is told to hang. */
const ANSWERS = `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const tasks = JSON.parse(line);
  if (tasks[0].outputs[0] === "end") process.exit(1);
  if (tasks[0].outputs[0] !== "hang") console.log(JSON.stringify(tasks.map(() => ({ reason: null }))));
})`;

describe("a process that looks", () => {
  const task = (output: string) => [{ mode: "newer" as const, outputs: [output], inputs: [] }];

  it("is given up when it does not answer; for a while nobody is asked, then another one", async () => {
    const said: string[] = [];
    const command = [process.execPath, "-e", ANSWERS];
    const looker = createLooker({ command, log: (text) => said.push(text), patienceMs: 2000, restMs: 50 });
    expect(await looker.look(task("a"))).toEqual([{ reason: null }]);
    expect(await looker.look(task("hang"))).toBe(undefined);
    expect(said).toHaveLength(1);
    expect(await looker.look(task("a")), "it rests").toBe(undefined);
    let answer: unknown;
    while (answer === undefined) {
      await new Promise((resolve) => void setImmediate(resolve));
      answer = await looker.look(task("a"));
    }
    expect(answer).toEqual([{ reason: null }]);
    looker.close();
  });

  it("one that ends has not answered, and the next question starts another", async () => {
    const looker = createLooker({ command: [process.execPath, "-e", ANSWERS], log: () => undefined });
    expect(await looker.look(task("end"))).toBe(undefined);
    expect(await looker.look(task("a"))).toEqual([{ reason: null }]);
    looker.close();
    const none = createLooker({ command: [join(dir, "nobody")], log: () => undefined });
    expect(await none.look(task("a"))).toBe(undefined);
    none.close();
  });
});
