import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The agent's own cgroup v2 directory, if it was delegated to this user (rule 15): then each task gets a cgroup below
 * it, and ending a task ends everything in there. Undefined if there is none. Being root does not count as delegation,
 * since root may write everywhere.
 */
export const delegatedCgroup = (root = "/", uid = process.geteuid?.() ?? 0): string | null => {
  try {
    if (uid === 0) return null;
    const own = /^0::(\/.+)$/m.exec(readFileSync(join(root, "proc/self/cgroup"), "utf8"))?.[1];
    const mounts = readFileSync(join(root, "proc/self/mountinfo"), "utf8");
    const mount = mounts
      .split("\n")
      .map((line) => line.split(" "))
      .find((fields) => fields[fields.indexOf("-") + 1] === "cgroup2");
    if (own === undefined || mount === undefined) return null;
    // a container mounts only its own part of the tree: the path inside it begins after the mount's root
    const inside = mount[3] !== "/" && own.startsWith(mount[3]!) ? own.slice(mount[3]!.length) : own;
    const directory = join(root, mount[4]!, inside);
    if (statSync(directory).uid !== uid) return null;
    accessSync(join(directory, "cgroup.procs"), constants.W_OK);
    return directory;
  } catch {
    return null;
  }
};

/** Its processes, or the controllers that a file lists. */
const words = async (path: string): Promise<string[]> =>
  (await readFile(path, "utf8")).split(/\s+/).filter((word) => word !== "");

const put = (path: string, text: string): Promise<void> => writeFile(path, text, { flag: "r+" });

/** Where the agent goes, out of the way of its tasks' groups. */
const OWN = "slipway-agent";

/**
 * Has the groups of tasks below a delegated one count their memory. The kernel allows that only while no process is in
 * the delegated group itself: so the agent, and the process that started it and waits for it, move to a group of their
 * own below it. Where others are there too, as in the scope of a terminal, everything stays as it is, and there are
 * other ways to tell how much memory a task had.
 */
export const countMemory = async (directory: string, ours = [process.pid, process.ppid]): Promise<void> => {
  const at = (...names: string[]): string => join(directory, ...names);
  const inside: string[] = [];
  try {
    if (!(await words(at("cgroup.controllers"))).includes("memory")) return;
    if ((await words(at("cgroup.subtree_control"))).includes("memory")) return;
    inside.push(...(await words(at("cgroup.procs"))));
    if (!inside.every((pid) => ours.includes(Number(pid)))) return;
    if (inside.length > 0) await mkdir(at(OWN), { recursive: true });
    for (const pid of inside) await put(at(OWN, "cgroup.procs"), pid);
    await put(at("cgroup.subtree_control"), "+memory");
  } catch {
    // not ours after all, or somebody came meanwhile: back to where they were
    for (const pid of inside) await put(at("cgroup.procs"), pid).catch(() => undefined);
    await rmdir(at(OWN)).catch(() => undefined);
  }
};
