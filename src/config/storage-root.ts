import type { Stats } from "node:fs";
import { lstat, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../errors.ts";

/**
 * Whether job directories of other users may be below a directory. The rules of `slipway sudoers` name it by its path,
 * and root changes the owner of what is found there: so only root may be able to put something else in its place.
 * Every directory on the way to it, and each that a symbolic link on the way leads through, belongs to root and is
 * writable only by root, or is one like /tmp (sticky) in which the next step belongs to root. The directory itself
 * belongs to the server's account and is writable only by it.
 */

export interface Fault {
  readonly detail: string;
  readonly remedy: string;
}

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;
const MOST_LINKS = 40;
const HARD_LINKS = "/proc/sys/fs/protected_hardlinks";

/** Writable by others than its owner; root's own group is as good as root. */
const isOpen = ({ mode, gid }: Stats): boolean =>
  (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && gid !== 0);

const ELSEWHERE =
  "Choose a directory whose parents belong to root and are writable only by root, such as /srv/slipway/jobs.";

/** Whether anyone but root can replace this entry of a directory. */
const stepFault = (parent: string, above: Stats, entry: Stats, root: string): Fault | undefined => {
  const steered = `anyone who can write there could replace ${root}, which root hands over by its path`;
  if (above.uid !== 0)
    return { detail: `${parent} belongs to user ${above.uid}, not to root: ${steered}`, remedy: ELSEWHERE };
  if (!isOpen(above)) return undefined;
  if ((above.mode & STICKY) !== 0 && entry.uid === 0) return undefined;
  return {
    detail: `${parent} is writable by users other than root: ${steered}`,
    remedy: `${ELSEWHERE} Or: chmod go-w ${parent}`,
  };
};

const ownFault = (path: string, facts: Stats, uid: number): Fault | undefined => {
  if (!facts.isDirectory()) return { detail: `${path} is not a directory`, remedy: ELSEWHERE };
  if (facts.uid !== uid)
    return {
      detail: `${path} belongs to user ${facts.uid}, not to the server's account (${uid})`,
      remedy: `chown ${uid} ${path}`,
    };
  if ((facts.mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0)
    return { detail: `${path} is writable by users other than the server's account`, remedy: `chmod go-w ${path}` };
  return undefined;
};

const lookAt = async (path: string): Promise<Stats | undefined> => {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
};

/** The directory that a path leads to, or why it could lead elsewhere; neither when nothing is there. */
const follow = async (root: string): Promise<{ readonly fault?: Fault; readonly end?: [string, Stats] }> => {
  let [at, links] = ["/", 0];
  let above = await lstat(at);
  const steps = root.split("/");
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
    if (step === "" || step === ".") continue;
    const next = join(at, step);
    const facts = await lookAt(next);
    if (facts === undefined) return {};
    const fault = step === ".." ? undefined : stepFault(at, above, facts, root);
    if (fault !== undefined) return { fault };
    if (!facts.isSymbolicLink()) [at, above] = [next, facts];
    else {
      links += 1;
      if (links > MOST_LINKS) return { fault: { detail: `${root} leads through too many links`, remedy: ELSEWHERE } };
      const target = await readlink(next);
      if (target.startsWith("/")) [at, above] = ["/", await lstat("/")];
      steps.unshift(...target.split("/"));
    }
  }
  return { end: [at, above] };
};

/** Why job directories of other users cannot be there; undefined: they can, or nothing is there yet. */
export const storageRootFault = async (root: string, uid: number): Promise<Fault | undefined> => {
  if ((await readFile(HARD_LINKS, "utf8").catch(() => "")).trim() === "0")
    return {
      detail: "fs.protected_hardlinks is 0: through its directory, a job could take over anybody's file by a hard link",
      remedy: "Set it to 1, here and on every node: sysctl -w fs.protected_hardlinks=1",
    };
  try {
    const { fault, end } = await follow(root);
    return fault ?? (end === undefined ? undefined : ownFault(...end, uid));
  } catch (error) {
    return { detail: `${root} cannot be examined: ${(error as Error).message}`, remedy: ELSEWHERE };
  }
};

/** The same as an error in clusters.yaml. */
export const storageRootError = (cluster: string, fault: Fault): SlipwayError =>
  new SlipwayError("bad-value", {
    where: "clusters.yaml",
    key: `clusters.${cluster}.job_storage_root`,
    ...fault,
  });
