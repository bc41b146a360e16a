import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { missingOutput } from "../../../src/agent/outputs.ts";

it("an output that appears late is there; one that does not is named", async () => {
  const dir = await mkdtemp(join(tmpdir(), "outputs-"));
  try {
    const [late, never] = [join(dir, "late"), join(dir, "never")];
    const asked = missingOutput([late], 60_000);
    await writeFile(late, "");
    expect(await asked).toBe(undefined);
    expect(await missingOutput([late, never], 10)).toBe(never);
  } finally {
    await rm(dir, { recursive: true });
  }
});
