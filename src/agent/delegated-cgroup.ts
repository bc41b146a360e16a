import { access, constants, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

/**
 * The agent's own cgroup v2 directory, if it was delegated to this user (rule 15): then each task gets a cgroup below
 * it, and ending a task ends everything in there. Undefined if there is none. Being root does not count as delegation,
 * since root may write everywhere.
 */
export const delegatedCgroup = async (root = "/", uid = process.geteuid?.() ?? 0): Promise<string | null> => {
  try {
    const own = /^0::(\/.+)$/m.exec(await readFile(join(root, "proc/self/cgroup"), "utf8"))?.[1];
    const mounts = await readFile(join(root, "proc/self/mountinfo"), "utf8");
    const mount = mounts
      .split("\n")
      .map((line) => line.split(" "))
      .find((fields) => fields[fields.indexOf("-") + 1] === "cgroup2");
    if (own === undefined || mount === undefined || uid === 0) return null;
    // a container mounts only its own part of the tree: the path inside it begins after the mount's root
    const inside = mount[3] !== "/" && own.startsWith(mount[3]!) ? own.slice(mount[3]!.length) : own;
    const directory = join(root, mount[4]!, inside);
    if ((await stat(directory)).uid !== uid) return null;
    await access(join(directory, "cgroup.procs"), constants.W_OK);
    return directory;
  } catch {
    return null;
  }
};
