import { randomBytes } from "node:crypto";
import { chmod, lstat, open, readdir, realpath, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../errors.ts";
import { errnoOf, makeDirectory } from "./files.ts";

const PARTS = ["journal", "keys", "output", "jobs", "spool", "agents", "logs", "epochs"] as const;

/** The directories of a home, as absolute paths without symbolic links. */
export type HomePaths = { readonly [part in (typeof PARTS)[number] | "root"]: string };

/** Any of these shows that a directory was meant as a home. */
const SIGNS = new Set<string>([...PARTS, "clusters.yaml", "clusters", "server.json", "lease.json"]);

const WORDS: Record<string, string> = {
  EROFS: "it is on a read-only file system",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ENOENT: "it cannot be created there",
  ENOTDIR: "part of the path is not a directory",
  EEXIST: "it is not a directory",
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  ENAMETOOLONG: "the path is too long",
  ELOOP: "too many symbolic links",
};

const unusable = (home: string, error: unknown): SlipwayError => {
  if (error instanceof SlipwayError) return error;
  const code = errnoOf(error);
  const detail = WORDS[code] === undefined ? (error as Error).message : `${WORDS[code]} (${code})`;
  return new SlipwayError("home-unusable", { home, detail }, error);
};

/**
 * Removes other users' access, but not from a directory that holds other things: `--home /tmp` is a slip of the hand,
 * and closing /tmp would hurt everyone.
 */
const closeToOthers = async (home: string, root: string): Promise<void> => {
  const { mode } = await stat(root);
  if ((mode & 0o077) === 0) return;
  // the process that starts a server has already made the directory for its log
  const names = (await readdir(root)).filter((name) => name !== "logs");
  if (names.length > 0 && !names.some((name) => SIGNS.has(name))) {
    const detail = `others may enter it (mode ${(mode & 0o7777).toString(8)}) and it holds files that are not Slipway's`;
    throw new SlipwayError("home-unusable", { home, detail });
  }
  await chmod(root, mode & 0o700);
};

const checkWritable = async (dir: string): Promise<void> => {
  const probe = join(dir, `.probe-${randomBytes(6).toString("hex")}`);
  const file = await open(probe, "wx", 0o600);
  await file.close();
  await unlink(probe);
};

/** Makes or checks a home: private (0700, never wider than it was), ours, writable, with all its directories. */
export const prepareHome = async (home: string): Promise<HomePaths> => {
  try {
    await makeDirectory(home);
    const root = await realpath(home);
    const about = await stat(root);
    const uid = process.getuid?.();
    if (!about.isDirectory()) throw new SlipwayError("home-unusable", { home, detail: "it is not a directory" });
    if (uid !== undefined && about.uid !== uid) {
      throw new SlipwayError("home-unusable", { home, detail: `it belongs to another user (uid ${about.uid})` });
    }
    await closeToOthers(home, root);
    await checkWritable(root);
    const paths: Record<string, string> = { root };
    for (const part of PARTS) {
      paths[part] = join(root, part);
      await makeDirectory(paths[part]);
    }
    await checkWritable(paths["journal"]!);
    const keys = await lstat(paths["keys"]!);
    if ((keys.mode & 0o077) !== 0) await chmod(paths["keys"]!, keys.mode & 0o700);
    return paths as HomePaths;
  } catch (error) {
    throw unusable(home, error);
  }
};
