import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A root file system of busybox and little else, for containers. */

const BUSYBOX = "/usr/bin/busybox";
const PLACES = ["bin", "tmp", "etc", "dev", "proc", "sys", "run", "root", "home", "data", "usr/bin"];
const APPLETS = ["sh", "env", "cat", "ls", "echo", "sleep", "pwd", "touch", "printf", "mkdir", "readlink", "id"];

/** Why there cannot be one here. */
export const noTinyImage = (): string | undefined => (existsSync(BUSYBOX) ? undefined : `${BUSYBOX} is not installed`);

export const writeTinyImage = (directory: string): void => {
  for (const name of PLACES) mkdirSync(join(directory, name), { recursive: true });
  if (noTinyImage() !== undefined) return;
  execFileSync("cp", [BUSYBOX, join(directory, "bin/busybox")]);
  for (const name of APPLETS) symlinkSync("busybox", join(directory, "bin", name));
  for (const name of ["passwd", "group", "hosts", "resolv.conf"]) writeFileSync(join(directory, "etc", name), "");
};
