import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LaunchPlan } from "../../src/launch/plan/plan.ts";

/** Writes a plan's directory as the server does, all of it as the user who runs the tests. */
export const writePlan = async ({ paths, directories, files }: LaunchPlan): Promise<void> => {
  await mkdir(paths.directory, { recursive: true });
  for (const name of directories) await mkdir(join(paths.directory, name), { recursive: true });
  for (const { path, content, encoding, mode } of files) {
    const target = join(paths.directory, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, Buffer.from(content, encoding), { mode });
  }
};
