import { join } from "node:path";
import { type JournalIo, readAt, writeAll } from "./io.ts";
import { segmentName, snapshotName } from "./names.ts";
import type { Loaded } from "./read.ts";

/**
 * Puts on disk what was read, before anything builds on it. A predecessor that was killed may have left records in the
 * page cache that no sync ever covered: a successor replays and seals them, so from then on a power loss must not take
 * them.
 *
 * Records after the last marker need more than a sync: if the predecessor's own sync of them failed, the system has
 * forgotten that they are not on disk, and the next sync would claim success. So they are written again, unchanged.
 */
export const createSettler = (io: JournalIo, dir: string, loaded: Loaded): (() => Promise<void>) => {
  const { plan, unproven } = loaded;
  const names = [
    ...(plan.snapshot === undefined ? [] : [snapshotName(plan.snapshot.upTo)]),
    ...plan.parts.filter((part) => !part.missing).map((part) => segmentName(part.id)),
  ];
  /** As they were replayed: read only once, since after a failed sync another read may find less. */
  const kept = new Map<string, Buffer>();

  const settle = async (name: string): Promise<void> => {
    const tail = unproven.get(name);
    const file = await io.open(join(dir, name), tail === undefined ? "r" : "r+");
    try {
      if (tail !== undefined) {
        const bytes = kept.get(name) ?? (await readAt(file, tail.from, tail.to - tail.from));
        if (bytes.length < tail.to - tail.from) throw new Error(`${name} became shorter while it was read`);
        kept.set(name, bytes);
        await writeAll(file, [bytes], tail.from);
      }
      await file.datasync();
    } finally {
      await file.close();
    }
  };

  return async () => {
    for (const name of names) await settle(name);
    if (names.length > 0) await io.syncDir(dir);
    kept.clear();
  };
};
