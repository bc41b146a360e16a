import { lstat, readFile, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { identify, type ProcessIdentity, whereabouts } from "../process-identity.ts";
import { type Owners, machineId, ownersDirectory, ownersPrefix, parseOwners } from "./owners.ts";
import { removePipes } from "./spawner/fifo-pool.ts";
import { removeTree } from "./spawner/remove-tree.ts";
import { createStrayScanner, standingOf } from "./spawner/strays.ts";

/**
 * What tasks left on this node because agent and spawner were killed together. An agent removes only what belongs to
 * agents of this home whose processes are all provably dead: none of them runs, by pid and start time, in this boot and
 * this pid namespace; or this same machine has rebooted since. Whatever it cannot prove stays.
 */

const areDead = async (owners: Owners, self: ProcessIdentity, machine: string): Promise<boolean> => {
  for (const each of owners.processes) {
    const isBootedAgain =
      each.host === self.host &&
      machine !== "" &&
      owners.machine === machine &&
      each.bootId !== "" &&
      self.bootId !== "" &&
      each.bootId !== self.bootId;
    const isNamed = each.bootId !== "" && each.pidNamespace !== "";
    if (!isBootedAgain && !(isNamed && (await whereabouts(each, self)) === "dead")) return false;
  }
  return true;
};

/**
 * Removes one; false if it must stay: it is not ours, not what it should be, or a process of the attempt still runs.
 */
const removeOne = async (path: string, kind: "directory" | "file", isUsed: boolean): Promise<boolean> => {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return true;
  if (isUsed || found.uid !== process.getuid?.()) return false;
  if (kind === "directory" ? !found.isDirectory() : !found.isFile()) return false;
  if (kind === "directory") await removeTree(path);
  else await unlink(path).catch(() => undefined);
  return (await lstat(path).catch(() => undefined)) === undefined;
};

const SCANS = 10;

/** Tokens of everything that runs here. Looks again at processes in the middle of an exec. */
const livingTokens = async (): Promise<ReadonlySet<string>> => {
  const scanner = createStrayScanner();
  let scan = scanner.scan();
  for (let round = 1; round < SCANS && !scan.sure; round += 1) {
    await delay(5);
    scan = scanner.scan();
  }
  const living = [...scan.byToken].filter(([, pids]) => pids.some((pid) => standingOf(pid) !== undefined));
  return new Set(living.map(([token]) => token));
};

const removeOf = async ({ uuid, scratch, pipes }: Owners): Promise<{ removed: number; isAll: boolean }> => {
  const short = uuid.slice(0, 8);
  const [tmpdir, hosts] = [`slipway-${short}-`, `slipway-hosts-${short}-`];
  const names = (await readdir(scratch).catch(() => [])).filter((n) => n.startsWith(tmpdir) || n.startsWith(hosts));
  const living = names.length === 0 ? new Set<string>() : await livingTokens();
  const isAnyAlive = [...living].some((token) => token.startsWith(`${short}-`));
  let removed = 0;
  for (const name of names) {
    // that of one attempt, as agents once made them, or of all attempts of a spawner
    const token = name.slice("slipway-".length);
    const isUsed = /-\d+$/.test(token) && !token.includes(".") ? isAnyAlive : living.has(token);
    if (await removeOne(join(scratch, name), name.startsWith(hosts) ? "file" : "directory", isUsed)) removed += 1;
  }
  for (const each of pipes) removePipes(each);
  return { removed, isAll: removed === names.length };
};

/** Never throws: an agent can work beside what others have left. */
export const removeLeftovers = async (home: string, log: (text: string) => void): Promise<void> => {
  try {
    const self = identify();
    const machine = await machineId();
    const names = await readdir(ownersDirectory(home)).catch(() => []);
    for (const name of names) {
      if (!name.startsWith(ownersPrefix(self.host)) || !name.endsWith(".json")) continue;
      const path = join(ownersDirectory(home), name);
      const owners = parseOwners(await readFile(path, "utf8").catch(() => ""));
      if (owners === undefined || !(await areDead(owners, self, machine))) continue;
      const { removed, isAll } = await removeOf(owners);
      if (removed > 0) log(`removed what agent ${owners.uuid}, which was killed, left in ${owners.scratch}`);
      // another agent will look again at what stays
      if (isAll) await unlink(path).catch(() => undefined);
    }
  } catch (error) {
    log(`cannot look for what dead agents left: ${(error as Error).message}`);
  }
};
