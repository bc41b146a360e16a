import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, mkdtemp, readFile, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { VERSION } from "../protocol/package-version.ts";

/**
 * The agent's bundle where nodes can read it: once per version and content, in `bundles/` of the home. A pilot names
 * the bundle it uses in a file of its directory; bundles that no living pilot names are removed. A bundle never
 * changes: an upgrade of Slipway does not pull the file from under running agents.
 */

const FILES = ["agent.cjs", "agent-quick.cjs", "slipway-spawner"] as const;
/** In a pilot's directory: the name of its bundle. */
export const BUNDLE_MARK = "bundle";

const present = async (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

const nameOf = async (built: string): Promise<string> => {
  const hash = createHash("sha256");
  for (const file of FILES) hash.update(await readFile(join(built, file)).catch(() => ""));
  return `${VERSION}-${hash.digest("hex").slice(0, 12)}`;
};

/** Places the built agent if it is not there yet; resolves with the bundle's name. If two do so at once, one wins. */
export const placeBundle = async (home: string, built: string): Promise<string> => {
  const name = await nameOf(built);
  const target = join(home, "bundles", name);
  if (await present(join(target, "agent.cjs"))) return name;
  await mkdir(join(home, "bundles"), { recursive: true, mode: 0o755 });
  const draft = await mkdtemp(`${target}.new-`);
  await chmod(draft, 0o755);
  for (const file of FILES) {
    if (!(await present(join(built, file)))) continue;
    await copyFile(join(built, file), join(draft, file));
    await chmod(join(draft, file), file === "slipway-spawner" ? 0o755 : 0o644);
  }
  try {
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (!(await present(join(target, "agent.cjs")))) throw error;
  }
  return name;
};

/**
 * Removes bundles that are neither `current` nor named in one of these directories. When in doubt, it removes nothing.
 */
export const pruneBundles = async (
  home: string,
  current: string,
  directories: readonly string[],
): Promise<readonly string[]> => {
  const used = new Set([current]);
  for (const directory of directories) {
    const mark = await readFile(join(directory, BUNDLE_MARK), "utf8").catch(() => undefined);
    if (mark === undefined) return [];
    used.add(mark.trim());
  }
  const removed: string[] = [];
  for (const name of await readdir(join(home, "bundles")).catch(() => []))
    if (!used.has(name)) {
      await rm(join(home, "bundles", name), { recursive: true, force: true });
      removed.push(name);
    }
  return removed;
};
