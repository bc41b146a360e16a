import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";

/** What runs a rank's command: the command matters more than whoever listens to it. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});
afterEach(() => slipway.cleanup());

describe("a rank's command", () => {
  it("runs to its end when nobody reads its output any more", async () => {
    const script =
      'i=0; while [ $i -lt 20000 ]; do echo "line $i of a long output"; i=$((i+1)); done; echo yes >ended; exit 7';
    const words = [join(ROOT, "dist/agent.cjs"), "--stream", "nonsuch.json", "--", "/bin/sh", "-c", script];
    const child = spawn(process.execPath, words, { cwd: slipway.cwd, stdio: ["ignore", "pipe", "pipe"] });
    let notes = "";
    child.stderr.on("data", (chunk: Buffer) => (notes += chunk.toString()));
    child.stdout.once("data", () => child.stdout.destroy());
    const [status] = (await once(child, "close")) as [number | null];
    expect(status).toBe(7);
    expect(await readFile(join(slipway.cwd, "ended"), "utf8")).toBe("yes\n");
    expect(notes).toContain("output is not streamed");
  });
});
