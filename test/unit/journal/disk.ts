import type { IoFile, JournalIo } from "../../../src/journal/io.ts";

/**
 * A disk in memory that forgets like a real one: only what was synced surely survives a crash; of the rest any part
 * may. After a failed datasync its data never reaches the disk, even if later ones succeed.
 */
interface Inode {
  data: Buffer;
  synced: Buffer;
  /** Ranges that a failed datasync lost. */
  holes: [number, number][];
}

export interface Fault {
  /** Return an errno to fail the call, or a number of bytes to write less. */
  (op: string, path: string): string | number | undefined;
}

/** Ranges minus what is rewritten. */
const without = (holes: readonly [number, number][], from: number, to: number): [number, number][] =>
  holes.flatMap(([start, end]): [number, number][] => [
    ...(start < from ? [[start, Math.min(end, from)] as [number, number]] : []),
    ...(end > to ? [[Math.max(start, to), end] as [number, number]] : []),
  ]);

const errno = (code: string): Error => Object.assign(new Error(`${code}: simulated`), { code });

export interface FakeDisk {
  readonly io: JournalIo;
  fault: Fault | undefined;
  /** Bytes that fit; more is ENOSPC. */
  capacity: number;
  /** Calls so far. */
  readonly calls: number;
  /** The machine dies in the middle of this call: it and all later ones never return. */
  crashAt: number;
  readonly crashed: Promise<void>;
  /** What the next machine finds. `random` in [0,1) decides what of the unsynced survived; without it, nothing did. */
  revive(random?: () => number): FakeDisk;
  /** The process dies, the machine does not: the next one sees everything that was written, synced or not. */
  kill(): FakeDisk;
  readonly files: ReadonlyMap<string, Buffer>;
  put(path: string, data: Buffer): void;
  remove(path: string): void;
}

const fresh = (data: Buffer): Inode => ({ data, synced: data, holes: [] });

/** What a machine knows of its disk: the names as they are, and those that a sync of their directory kept. */
interface Medium {
  readonly names: Map<string, Inode>;
  readonly durable: Map<string, Inode>;
}

/** Where what is written and what is kept begin to differ. */
const firstUnsynced = ({ data, synced }: Inode): number => {
  const common = Math.min(data.length, synced.length);
  if (data.subarray(0, common).equals(synced.subarray(0, common))) return common;
  let at = 0;
  while (data[at] === synced[at]) at += 1;
  return at;
};

/** Puts back what was there at the last sync: zeros behind its end. */
const restore = (content: Buffer, synced: Buffer, from: number, to: number): void => {
  if (to <= from) return;
  content.fill(0, from, to);
  if (from < synced.length) synced.copy(content, from, from, Math.min(to, synced.length));
};

const directoryOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** A machine that forgets nothing it synced, and keeps as much of the rest as `random` says. */
const afterPowerLoss = ({ names, durable }: Medium, random: (() => number) | undefined): Map<string, Buffer> => {
  const files = new Map<string, Buffer>();
  for (const path of new Set([...names.keys(), ...durable.keys()])) {
    const inode = random !== undefined && random() < 0.5 ? names.get(path) : durable.get(path);
    if (inode === undefined) continue;
    // Of what was written since the last sync, behind the end or over what was there: nothing, or all of it up to any
    // byte, or with pages that never arrived.
    const { synced, data, holes } = inode;
    const from = firstUnsynced(inode);
    const reach = random === undefined ? from : from + Math.floor(random() * (data.length - from + 1));
    const content = Buffer.alloc(
      Math.max(reach, random === undefined ? synced.length : Math.min(data.length, synced.length)),
    );
    synced.copy(content);
    data.copy(content, from, from, reach);
    for (const [start, end] of holes) restore(content, synced, Math.min(start, reach), Math.min(end, reach));
    if (random !== undefined && random() < 0.3 && reach > from) {
      const start = from + Math.floor(random() * (reach - from));
      restore(content, synced, start, Math.min(reach, start + 1 + Math.floor(random() * 64)));
    }
    files.set(path, content);
  }
  return files;
};

export const fakeDisk = (initial: ReadonlyMap<string, Buffer> = new Map()): FakeDisk => {
  const names = new Map<string, Inode>([...initial].map(([path, data]) => [path, fresh(data)]));
  return diskOn({ names, durable: new Map(names) });
};

const diskOn = (medium: Medium): FakeDisk => {
  const { names, durable } = medium;
  let calls = 0;
  let onCrash: (() => void) | undefined;
  let dead = false;
  const crashed = new Promise<void>((resolve) => {
    onCrash = resolve;
  });

  const enter = async (op: string, path: string): Promise<number | undefined> => {
    if (dead) await new Promise(() => undefined);
    calls += 1;
    if (calls === disk.crashAt) {
      dead = true;
      onCrash?.();
      if (op !== "write") await new Promise(() => undefined);
    }
    await Promise.resolve();
    const fault = disk.fault?.(op, path);
    if (typeof fault === "string") throw errno(fault);
    return fault;
  };
  const find = (path: string): Inode => {
    const inode = names.get(path);
    if (inode === undefined) throw errno("ENOENT");
    return inode;
  };
  const used = (): number => [...names.values()].reduce((sum, inode) => sum + inode.data.length, 0);
  const sync = (inode: Inode): void => {
    const kept = Buffer.from(inode.data);
    for (const [from, to] of inode.holes) restore(kept, inode.synced, from, Math.min(to, kept.length));
    inode.synced = kept;
  };

  const fileOf = (path: string, inode: Inode): IoFile => ({
    read: async (buffer, offset, length, position) => {
      await enter("read", path);
      return inode.data.copy(buffer, offset, position, Math.min(position + length, inode.data.length));
    },
    writev: async (buffers, position) => {
      const short = await enter("write", path);
      let bytes = Buffer.concat(buffers);
      if (typeof short === "number") bytes = bytes.subarray(0, Math.max(1, bytes.length - short));
      const growth = Math.max(0, position + bytes.length - inode.data.length);
      const room = disk.capacity - used();
      if (growth > room) {
        if (bytes.length - (growth - room) <= 0) throw errno("ENOSPC");
        bytes = bytes.subarray(0, bytes.length - (growth - room));
      }
      const size = Math.max(inode.data.length, position + bytes.length);
      const data = Buffer.alloc(size);
      inode.data.copy(data);
      bytes.copy(data, position);
      inode.data = data;
      // pages that are written again are dirty again, whatever happened to them before
      inode.holes = without(inode.holes, position, position + bytes.length);
      if (dead) await new Promise(() => undefined);
      return bytes.length;
    },
    datasync: async () => {
      try {
        await enter("datasync", path);
      } catch (error) {
        inode.holes.push([firstUnsynced(inode), inode.data.length]);
        throw error;
      }
      sync(inode);
    },
    truncate: async (length) => {
      await enter("truncate", path);
      inode.data = Buffer.from(inode.data.subarray(0, length));
    },
    size: async () => {
      await enter("size", path);
      return inode.data.length;
    },
    close: async () => {
      await enter("close", path);
    },
  });

  const io: JournalIo = {
    open: async (path, flags) => {
      await enter(flags === "r" || flags === "r+" ? "open" : "create", path);
      if (flags === "wx" && names.has(path)) throw errno("EEXIST");
      if (flags === "r" || flags === "r+") return fileOf(path, find(path));
      const inode = fresh(Buffer.alloc(0));
      names.set(path, inode);
      return fileOf(path, inode);
    },
    readdir: async (dir) => {
      await enter("readdir", dir);
      return [...names.keys()].filter((path) => directoryOf(path) === dir).map((path) => path.slice(dir.length + 1));
    },
    mkdir: async (dir) => {
      await enter("mkdir", dir);
    },
    rename: async (from, to) => {
      await enter("rename", from);
      const inode = find(from);
      names.delete(from);
      names.set(to, inode);
    },
    unlink: async (path) => {
      await enter("unlink", path);
      find(path);
      names.delete(path);
    },
    copy: async (from, to) => {
      await enter("copy", from);
      names.set(to, { ...fresh(Buffer.alloc(0)), data: Buffer.from(find(from).data) });
    },
    size: async (path) => {
      await enter("stat", path);
      return find(path).data.length;
    },
    syncDir: async (dir) => {
      await enter("syncdir", dir);
      for (const path of new Set([...names.keys(), ...durable.keys()])) {
        if (directoryOf(path) !== dir) continue;
        const inode = names.get(path);
        if (inode === undefined) durable.delete(path);
        else durable.set(path, inode);
      }
    },
  };

  const disk: FakeDisk = {
    io,
    fault: undefined,
    capacity: Number.POSITIVE_INFINITY,
    get calls() {
      return calls;
    },
    crashAt: -1,
    crashed,
    revive: (random) => {
      dead = true;
      return fakeDisk(afterPowerLoss(medium, random));
    },
    kill: () => {
      dead = true;
      return diskOn(medium);
    },
    get files() {
      return new Map([...names].map(([path, inode]) => [path, inode.data]));
    },
    put: (path, data) => {
      names.set(path, fresh(data));
      durable.set(path, names.get(path)!);
    },
    remove: (path) => {
      names.delete(path);
      durable.delete(path);
    },
  };
  return disk;
};
