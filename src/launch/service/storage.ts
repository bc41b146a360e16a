import { chmod, mkdir, readFile, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { chownWords, DIRECTORY_NAME } from "../plan/sudoers.ts";
import type { PlannedFile } from "../plan/plan.ts";
import { SlipwayError } from "../../errors.ts";
import type { RunCommand } from "../../managers/commands.ts";
import { makeDirectory } from "../../home/files.ts";
import { removeJobDirectory } from "./removal.ts";

/**
 * Job directories under a cluster's job_storage_root. While a job lives its directory belongs to its user, with the
 * server's group, so that the server can read the logs and no other user can; the server takes it back before it
 * removes it.
 */

export interface Storage {
  /** Makes, fills and hands over a directory. On an error nothing is left of it. */
  make(wanted: NewDirectory): Promise<void>;
  /** Takes a directory back and removes it; one that is already gone is not an error. */
  remove(directory: string, isOthers: boolean): Promise<void>;
  /** Removes what a crashed server staged and never journaled. */
  sweep(root: string, isKnown: (directory: string) => boolean): Promise<void>;
}

export interface NewDirectory {
  readonly directory: string;
  readonly directories: readonly string[];
  readonly files: readonly PlannedFile[];
  /** The user it is for, when not the server's own. */
  readonly owner?: { readonly name: string; readonly uid: number };
}

const OWN_MODE = 0o700;
/** Set-group-id: what the job writes gets the server's group too. */
const SHARED_MODE = 0o2750;

const failed = (directory: string, detail: string): SlipwayError =>
  new SlipwayError("launch-failed", {
    detail: `${directory}: ${detail}`,
    remedy: "Look at job_storage_root in clusters.yaml, and at the rules of `slipway sudoers`.",
  });

/** Only one server ever makes a given name; the mark says which. */
const OWNER_MARK = ".slipway-home";

export const createStorage = (run: RunCommand, homeHash: string): Storage => {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];

  const chown = async (directory: string, owner: number): Promise<void> => {
    const words = ["chown", ...chownWords(owner, gid, directory)];
    const { code, stderr } = await run(uid === 0 ? words : ["sudo", "-n", "--", ...words]);
    if (code !== 0) throw failed(directory, `its owner cannot be changed: ${stderr.trim().slice(0, 500)}`);
  };

  /** Any other chown walks a tree by paths: its user could lead root elsewhere when it is taken back. */
  let isGnu: Promise<boolean> | undefined;
  const mayChown = async (): Promise<void> => {
    isGnu ??= run(["chown", "--version"]).then(({ stdout }) => stdout.includes("GNU coreutils"));
    if (uid !== 0 && !(await isGnu))
      throw new SlipwayError("launch-failed", {
        detail: "chown on the server's host is not the one from GNU coreutils",
        remedy: "Install that one, then run `slipway sudoers` again.",
      });
  };

  const remove = async (directory: string, isOthers: boolean): Promise<void> => {
    // only ever a job's directory, whatever the journal says
    if (!DIRECTORY_NAME.test(basename(directory))) return;
    const take = isOthers && uid !== 0 ? () => chown(directory, uid) : undefined;
    await removeJobDirectory({ directory, uid, take });
    await rm(join(dirname(directory), `.${basename(directory)}${OWNER_MARK}`), { force: true });
  };

  const fill = async ({ directory, directories, files, owner }: NewDirectory): Promise<void> => {
    const mode = owner === undefined ? OWN_MODE : SHARED_MODE;
    await mkdir(directory, { mode: 0o700 });
    for (const path of directories) await mkdir(join(directory, path), { recursive: true, mode: 0o700 });
    for (const { path, content, encoding, mode: bits } of files) {
      await mkdir(dirname(join(directory, path)), { recursive: true, mode: 0o700 });
      await writeFile(join(directory, path), content, { encoding, mode: bits, flag: "wx" });
      await chmod(join(directory, path), bits);
    }
    await chmod(directory, mode);
    if (owner !== undefined) await chown(directory, owner.uid);
  };

  return {
    make: async (wanted) => {
      const root = dirname(wanted.directory);
      let isOurs = false;
      try {
        await makeDirectory(root);
        if (wanted.owner !== undefined) {
          await mayChown();
          await reach(root);
        }
        // whoever comes first makes it; a second one leaves the directory to the first
        const mark = join(root, `.${basename(wanted.directory)}${OWNER_MARK}`);
        await writeFile(mark, `${homeHash}\n`, { mode: 0o600, flag: "wx" });
        isOurs = true;
        await fill(wanted);
      } catch (error) {
        if (isOurs) await remove(wanted.directory, wanted.owner !== undefined).catch(() => undefined);
        throw error instanceof SlipwayError ? error : failed(wanted.directory, (error as Error).message);
      }
    },
    remove,
    sweep: async (root, isKnown) => {
      for (const name of await readdir(root).catch(() => [])) {
        const [, hex] = /^\.([0-9a-f]{32})\.slipway-home$/.exec(name) ?? [];
        if (hex === undefined || isKnown(join(root, hex))) continue;
        const whose = await readFile(join(root, name), "utf8");
        if (whose.trim() === homeHash) await remove(join(root, hex), true);
      }
    },
  };
};

/** Other users must be able to reach their directory. */
const reach = async (root: string): Promise<void> => {
  for (let path = await realpath(root); path !== "/"; path = dirname(path))
    if (((await stat(path)).mode & 0o001) === 0) {
      const detail = `other users cannot enter ${path}`;
      throw new SlipwayError("launch-failed", {
        detail,
        remedy: `Set job_storage_root in clusters.yaml to a directory that all users and nodes can reach, or chmod o+x ${path}.`,
      });
    }
};
