import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, parse } from "node:path";
import { Script } from "node:vm";
import zlib from "node:zlib";

/**
 * Runs a CommonJS program with the code that V8 compiled for it in an earlier process: that is a quarter of what the
 * start of an agent costs, a third of a server's, and half of a command's. The compiled code lies beside the program, for
 * each version of V8 and kind of processor, and is written by the first process that finds none. It counts only if it is
 * whole, was made from exactly this program, and belongs to the program's owner; without it, everything is the same but
 * slower. A program that runs so cannot `import()`: what it does not know before is import-module.ts's to load.
 */

/** What comes before the code in a file: the sum of the program and of what follows, and how long the uses at the end are. */
const HEAD_BYTES = 8;
const MOST_USES = 200;
/** A program that lasts is written after this long: V8 drops code that is not used any more. */
const SOON_MS = 5000;

export const cachePath = (program: string): string =>
  join(dirname(program), `${parse(program).name}-${process.versions.v8}-${process.arch}.cache`);

/** Compiled code, and the uses of its program that it was made in: what those did not need is not in it. */
export interface Compiled {
  readonly code: Buffer;
  readonly uses: readonly string[];
}

/**
 * Protects from accidents: a file cut short, or made from another version of the program. Nobody gains by forging it,
 * since only the program's owner is believed.
 */
const sumOf = (source: Buffer, rest: Buffer): number => zlib.crc32(rest, zlib.crc32(source));

const parsed = (bytes: Buffer, source: Buffer): Compiled | undefined => {
  if (bytes.length < HEAD_BYTES || bytes.readUInt32LE(0) !== sumOf(source, bytes.subarray(4))) return undefined;
  const end = bytes.length - bytes.readUInt32LE(4);
  const uses = bytes.toString("latin1", end);
  return { code: bytes.subarray(HEAD_BYTES, end), uses: uses === "" ? [] : uses.split(" ") };
};

/** The compiled code; undefined if there is none that may be used. */
export const readCode = (path: string, source: Buffer, owner: number): Compiled | undefined => {
  let fd: number;
  try {
    // what is not a file must not be waited for
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const found = fstatSync(fd);
    return found.isFile() && found.uid === owner ? parsed(readFileSync(fd), source) : undefined;
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
};

/** As it is written; the code begins where V8 can read it in place. */
const packed = (source: Buffer, { code, uses }: Compiled): Buffer => {
  const words = Buffer.from(uses.join(" "), "latin1");
  const bytes = Buffer.concat([Buffer.alloc(HEAD_BYTES), code, words]);
  bytes.writeUInt32LE(words.length, 4);
  bytes.writeUInt32LE(sumOf(source, bytes.subarray(4)));
  return bytes;
};

/** A process that cannot write here runs without a cache, and gathers nothing. */
export const writeCode = (path: string, source: Buffer, gather: () => Compiled): void => {
  const temporary = `${path}.${process.pid}.tmp`;
  let fd: number;
  try {
    fd = openSync(temporary, "wx", 0o644);
  } catch {
    return;
  }
  try {
    try {
      writeFileSync(fd, packed(source, gather()));
    } finally {
      // a full disk may be heard of only now
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch {
    rmSync(temporary, { force: true });
  }
};

export interface Program {
  readonly exports: unknown;
  /** Keeps what is compiled by now, with what was kept before, for those who use the program so too. At most once for each use. */
  keep(use?: string): void;
}

/** Runs it as Node would run its main program, and leaves it to the caller when what was compiled is kept. */
export const openProgram = (program: string): Program => {
  const require = createRequire(program);
  // it is Node that follows maps to the sources, in what it has loaded itself; Node 21 and 22.0 have no sum
  if (process.sourceMapsEnabled || typeof zlib.crc32 !== "function")
    return { exports: require(program), keep: () => undefined };
  const source = readFileSync(program);
  const path = cachePath(program);
  const { uid: owner } = statSync(program);
  const found = readCode(path, source, owner);
  // what the build writes is ASCII
  const wrapped = `(function(exports,require,module,__filename,__dirname){${source.toString("latin1")}\n})`;
  const script = new Script(wrapped, { filename: program, ...(found === undefined ? {} : { cachedData: found.code }) });
  const module = { exports: {} };
  const run = script.runInThisContext() as (...words: unknown[]) => void;
  run.call(module.exports, module.exports, require, module, program, dirname(program));
  return {
    exports: module.exports,
    keep: (use) => {
      // nobody would believe anybody else's
      if (process.geteuid?.() !== owner) return;
      // V8 refuses what was made with other flags: those who use others leave it to the rest
      if (found !== undefined && (use === undefined || script.cachedDataRejected === true)) return;
      const uses = found?.uses ?? [];
      if (use !== undefined && (uses.includes(use) || uses.length >= MOST_USES)) return;
      writeCode(path, source, () => ({
        code: script.createCachedData(),
        uses: use === undefined ? uses : [...uses, use],
      }));
    },
  };
};

/** Runs a program that has one use, and keeps what it compiled soon or at its end, if `isUsual`: if that is this one. */
export const runProgram = (program: string, isUsual = true): void => {
  const { keep } = openProgram(program);
  if (!isUsual) return;
  let isKept = false;
  const keepOnce = (): void => {
    if (!isKept) keep();
    isKept = true;
  };
  setTimeout(keepOnce, SOON_MS).unref();
  process.once("exit", keepOnce);
};
