import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { processesUnder } from "../cli/processes-under.ts";
import { signal, untilDead } from "./processes.ts";
import type { Random } from "./random.ts";
import type { PowerLoss } from "./schedule.ts";
import type { World } from "./world.ts";

/**
 * A machine that loses its power: nothing runs any more, and what was written survives only as far as it was synced
 * (fsync-shim.c keeps that), and as much beyond as the loss says. Tasks' output, their own traces and logs are left
 * alone.
 */

/** Directories whose names and bytes survive only if they were synced. */
const WATCHED = ["journal", "runs"];
/** Files that are written without a sync: nobody may rely on them. */
const PASSING = ["lease.json", "server.json"];
const PAGE = 4096;

/** Ends everything at once, and whatever starts meanwhile too. */
const killAll = async (world: World): Promise<void> => {
  for (let quiet = 0; quiet < 2;) {
    const living = await processesUnder(world.root);
    for (const agent of world.agents()) world.willEnd(agent);
    for (const { pid } of living) signal(pid, "SIGKILL");
    for (const { pid } of living) await untilDead(pid);
    quiet = living.length === 0 ? quiet + 1 : 0;
  }
  world.endedAll();
};

/** What is left of a file: what was synced, and of the rest none, all, or a beginning that may lack a page. */
const remains = (random: Random, bytes: PowerLoss["bytes"], synced: Buffer, written: Buffer | undefined): Buffer => {
  if (bytes === "none" || written === undefined) return synced;
  if (bytes === "all") return written;
  const more = Buffer.from(written.subarray(0, random.int(Math.min(synced.length, written.length), written.length)));
  const kept = more.length > synced.length ? Buffer.concat([synced, more.subarray(synced.length)]) : synced;
  const tail = kept.length - synced.length;
  if (tail > PAGE && random.chance(0.5)) {
    const hole = synced.length + random.int(0, tail - PAGE);
    kept.fill(0, hole, hole + PAGE);
  }
  return kept;
};

const readIfThere = (path: string): Promise<Buffer | undefined> => readFile(path).catch(() => undefined);

/** Names in a directory by inode: as it is, and as it was synced. */
const namesIn = async (path: string): Promise<Map<string, number>> => {
  const names = new Map<string, number>();
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isFile()) names.set(entry.name, (await stat(join(path, entry.name))).ino);
  return names;
};
const syncedNames = async (path: string): Promise<Map<string, number>> =>
  new Map(
    ((await readIfThere(path))?.toString() ?? "")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => [line.slice(line.indexOf(" ") + 1), Number(line.slice(0, line.indexOf(" ")))]),
  );

/** Puts one directory into the state that the loss leaves. Returns what has changed. */
const undo = async (random: Random, disk: string, path: string, loss: PowerLoss): Promise<string[]> => {
  const now = await namesIn(path);
  const then = await syncedNames(join(disk, `d.${(await stat(path)).ino}`));
  const wanted = loss.names === "kept" ? now : then;
  const nameNow = new Map([...now].map(([name, inode]) => [inode, name]));
  const files = new Map<string, Buffer>();
  const changes: string[] = [];
  for (const [name, inode] of wanted) {
    const written = await readIfThere(nameNow.has(inode) ? join(path, nameNow.get(inode)!) : join(disk, `h.${inode}`));
    const synced = (await readIfThere(join(disk, `f.${inode}`))) ?? Buffer.alloc(0);
    const kept = remains(random, loss.bytes, synced, written);
    files.set(name, kept);
    if (now.get(name) !== inode) changes.push(`${name} is back`);
    else if (written?.equals(kept) !== true)
      changes.push(`${name} has ${kept.length} bytes of ${written?.length ?? 0} (${synced.length} were synced)`);
  }
  for (const name of now.keys()) if (!files.has(name)) changes.push(`${name} is gone`);
  for (const name of now.keys()) await rm(join(path, name));
  for (const [name, content] of files) await writeFile(join(path, name), content, { mode: 0o600 });
  return changes;
};

/** When the machine has started, everything that is there is on the disk. */
const settle = async (disk: string, paths: readonly string[]): Promise<void> => {
  await rm(disk, { recursive: true, force: true });
  await mkdir(disk);
  for (const path of paths) {
    const lines: string[] = [];
    for (const [name, inode] of await namesIn(path)) {
      await writeFile(join(disk, `f.${inode}`), await readFile(join(path, name)));
      lines.push(`${inode} ${name}\n`);
    }
    await writeFile(join(disk, `d.${(await stat(path)).ino}`), lines.join(""));
  }
};

/** Ends everything, and undoes what was not synced if the world keeps a disk. The caller starts it again. */
export const losePower = async (world: World, loss: PowerLoss, random: Random): Promise<void> => {
  await killAll(world);
  world.count.powerLosses += 1;
  // node-local scratch is empty after the machine has started
  for (const name of await readdir(world.tmp)) await rm(join(world.tmp, name), { recursive: true, force: true });
  const { disk } = world;
  if (disk === undefined) return world.note("the power failed");
  const paths = WATCHED.map((name) => join(world.home, name)).filter((path) => existsSync(path));
  const changes: string[] = [];
  for (const path of paths) changes.push(...(await undo(random, disk, path, loss)));
  if (loss.bytes !== "all")
    for (const name of PASSING) {
      const path = join(world.home, name);
      if (!existsSync(path)) continue;
      if (loss.names === "kept") await writeFile(path, "");
      else await rm(path);
    }
  await settle(disk, paths);
  world.note(`the power failed: ${changes.length === 0 ? "all was synced" : changes.join("; ")}`);
};
