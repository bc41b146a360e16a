import { chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BUNDLE_MARK, placeBundle, pruneBundles } from "../../../src/pilots/bundle.ts";

describe("the agents' bundle", () => {
  let root: string;
  let home: string;
  let built: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slw-bundle-"));
    [home, built] = [join(root, "home"), join(root, "dist")];
    await mkdir(built);
    await writeFile(join(built, "agent.cjs"), "first");
    await writeFile(join(built, "slipway-spawner"), "native");
    await chmod(join(built, "slipway-spawner"), 0o700);
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const bundles = () => readdir(join(home, "bundles"));

  it("is placed once per content, readable, and never changed afterwards", async () => {
    const [first, again] = await Promise.all([placeBundle(home, built), placeBundle(home, built)]);
    expect(again).toBe(first);
    expect(await bundles()).toEqual([first]);
    const placed = join(home, "bundles", first);
    expect((await stat(join(placed, "agent.cjs"))).mode & 0o777).toBe(0o644);
    expect((await stat(join(placed, "slipway-spawner"))).mode & 0o777).toBe(0o755);
    await writeFile(join(built, "agent.cjs"), "second");
    const second = await placeBundle(home, built);
    expect(second).not.toBe(first);
    expect(await readFile(join(placed, "agent.cjs"), "utf8")).toBe("first");
    expect((await bundles()).sort()).toEqual([first, second].sort());
  });

  it("goes when no living pilot names it, and stays when one may", async () => {
    const first = await placeBundle(home, built);
    await writeFile(join(built, "agent.cjs"), "second");
    const second = await placeBundle(home, built);
    const pilot = join(root, "pilot");
    await mkdir(pilot);
    // nobody knows what this one uses
    expect(await pruneBundles(home, second, [pilot])).toEqual([]);
    await writeFile(join(pilot, BUNDLE_MARK), `${first}\n`);
    expect(await pruneBundles(home, second, [pilot])).toEqual([]);
    expect(await pruneBundles(home, second, [])).toEqual([first]);
    expect(await bundles()).toEqual([second]);
  });

  it("works without the native spawner", async () => {
    await rm(join(built, "slipway-spawner"));
    expect(await readdir(join(home, "bundles", await placeBundle(home, built)))).toEqual(["agent.cjs"]);
  });
});
