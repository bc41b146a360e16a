import { spawnSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import type { TestContext } from "vitest";

/** A home on a disk that fills up soon: a small tmpfs. Skips the test if none may be mounted. */

const mayMount = process.getuid?.() === 0 && spawnSync("unshare", ["-m", "true"]).status === 0;

export const onSmallDisk = async (
  ctx: TestContext,
  directory: string,
  size: string,
  test: () => Promise<void>,
): Promise<void> => {
  if (!mayMount) ctx.skip("needs root to mount a small tmpfs");
  await mkdir(directory, { recursive: true });
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", directory]);
  if (status !== 0) throw new Error(`mount: ${stderr}`);
  try {
    await test();
  } finally {
    spawnSync("umount", ["-l", directory]);
  }
};
