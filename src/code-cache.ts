import { createHash } from "node:crypto";
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

/**
 * Runs a CommonJS program with the code that V8 compiled for it in an earlier process: that is a quarter of what the
 * start of an agent costs, and a third of a server's. The compiled code lies beside the program, for each version of V8 and kind of processor, and is
 * written by the first process that finds none. It counts only if it is whole, was made from exactly this program, and
 * belongs to the program's owner; without it, everything is the same but slower. A program that runs so cannot
 * `import()`: what it does not know before is import-module.ts's to load.
 */

const DIGEST_BYTES = 32;
/** A program that lasts is written after this long: V8 drops code that is not used any more. */
const SOON_MS = 5000;

export const cachePath = (program: string): string =>
  join(dirname(program), `${parse(program).name}-${process.versions.v8}-${process.arch}.cache`);

const digestOf = (source: Buffer, code: Buffer): Buffer => createHash("sha256").update(source).update(code).digest();

/** The compiled code; undefined if there is none that may be used. */
export const readCode = (path: string, source: Buffer, owner: number): Buffer | undefined => {
  let fd: number;
  try {
    // what is not a file must not be waited for
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const found = fstatSync(fd);
    if (!found.isFile() || found.uid !== owner) return undefined;
    const bytes = readFileSync(fd);
    const code = bytes.subarray(DIGEST_BYTES);
    return digestOf(source, code).equals(bytes.subarray(0, DIGEST_BYTES)) ? code : undefined;
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
};

/** Whoever cannot write here goes on without. */
export const writeCode = (path: string, source: Buffer, code: Buffer): void => {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(temporary, Buffer.concat([digestOf(source, code), code]), { flag: "wx", mode: 0o644 });
    renameSync(temporary, path);
  } catch {
    rmSync(temporary, { force: true });
  }
};

const writeOnce = (script: Script, path: string, source: Buffer): void => {
  let isWritten = false;
  const write = (): void => {
    if (!isWritten) writeCode(path, source, script.createCachedData());
    isWritten = true;
  };
  setTimeout(write, SOON_MS).unref();
  process.once("exit", write);
};

/** Runs it as Node would run its main program. What it compiles is kept if this is how it is mostly used. */
export const runProgram = (program: string, isUsual = true): void => {
  const source = readFileSync(program);
  const path = cachePath(program);
  const code = readCode(path, source, statSync(program).uid);
  // what the build writes is ASCII
  const wrapped = `(function(exports,require,module,__filename,__dirname){${source.toString("latin1")}\n})`;
  const script = new Script(wrapped, { filename: program, ...(code === undefined ? {} : { cachedData: code }) });
  if (code === undefined && isUsual) writeOnce(script, path, source);
  const module = { exports: {} };
  const run = script.runInThisContext() as (...words: unknown[]) => void;
  run.call(module.exports, module.exports, createRequire(program), module, program, dirname(program));
};
