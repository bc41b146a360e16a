import type { FrameWriter } from "./frames.ts";
import { NONE, Request, type StartRequest } from "./protocol.ts";

/** Requests as bytes: the agent writes them here, the Node spawner reads them here. */

export const writeEnv = (
  writer: FrameWriter,
  id: number,
  entries: readonly string[],
): ReturnType<FrameWriter["end"]> => {
  writer.begin(Request.ENV);
  writer.u32(id);
  writer.u32(entries.length);
  for (const entry of entries) writer.text(entry);
  return writer.end();
};

/** DROP_ENV, END and SIGNAL: numbers only. */
export const writeNumbers = (writer: FrameWriter, type: number, ...values: readonly number[]): void => {
  writer.begin(type);
  for (const value of values) writer.u32(value);
  writer.end();
};

/** The flags at the end of START. */
const APPEND = 1;

const writeTexts = (writer: FrameWriter, texts: readonly string[]): void => {
  writer.u32(texts.length);
  for (const text of texts) writer.text(text);
};

const NO_ENTRIES: readonly string[] = [];

/** Those that many tasks share are turned into bytes once. */
const writeEnvironment = (writer: FrameWriter, { extraEnv, commonEnv, ownEnv = NO_ENTRIES }: StartRequest): void => {
  const shared = commonEnv?.entries ?? NO_ENTRIES;
  writer.u32(extraEnv.length + shared.length + ownEnv.length);
  for (const text of extraEnv) writer.text(text);
  if (commonEnv?.bytes !== undefined) writer.bytes(commonEnv.bytes);
  else {
    const from = writer.size;
    for (const text of shared) writer.text(text);
    const bytes = writer.since(from);
    if (commonEnv !== undefined && bytes !== undefined) commonEnv.bytes = bytes;
  }
  for (const text of ownEnv) writer.text(text);
};

export const writeStart = (writer: FrameWriter, request: StartRequest): ReturnType<FrameWriter["end"]> => {
  writer.begin(Request.START);
  writer.u32(request.id);
  writer.u32(request.env);
  writer.u32(toGrace(request.graceMs));
  writer.u32(request.after ?? NONE);
  writer.text(request.cwd);
  writer.optional(request.stdout);
  writer.optional(request.stderr);
  writer.optional(request.tmpdir);
  writer.optional(request.cgroup);
  writer.text(request.token);
  writeTexts(writer, request.argv);
  writeEnvironment(writer, request);
  if (request.cpus === null) writer.u32(NONE);
  else {
    writer.u32(request.cpus.length);
    for (const cpu of request.cpus) writer.u32(cpu);
  }
  writer.u32(request.append ? APPEND : 0);
  return writer.end();
};

/** Whole milliseconds that fit a timer; about 24 days at most. */
export const toGrace = (ms: number): number => Math.min(0x7fff_ffff, Math.max(0, Math.ceil(ms) || 0));

const short = (): never => {
  throw new RangeError("malformed request");
};

/** Reads the body of one frame. Throws a RangeError if it is cut short or something is left over. */
export const createBodyReader = (buffer: Buffer, from: number, end: number) => {
  let at = from;
  const u32 = (): number => {
    if (end - at < 4) return short();
    at += 4;
    return buffer.readUInt32LE(at - 4);
  };
  const slice = (length: number): string => {
    if (end - at <= length || buffer[at + length] !== 0) return short();
    const text = buffer.toString("utf8", at, at + length);
    if (text.includes("\0")) return short();
    at += length + 1;
    return text;
  };
  const text = (): string => slice(u32());
  const list = <T>(bytesEach: number, read: () => T): T[] => {
    const count = u32();
    return count * bytesEach > end - at ? short() : Array.from({ length: count }, read);
  };
  return {
    u32,
    text,
    optional: (): string | null => {
      const length = u32();
      return length === NONE ? null : slice(length);
    },
    texts: (): string[] => list(5, text),
    numbers: (): number[] | null => {
      if (end - at >= 4 && buffer.readUInt32LE(at) === NONE) {
        at += 4;
        return null;
      }
      return list(4, u32);
    },
    done: (): void => {
      if (at !== end) short();
    },
  };
};

export const readStart = (buffer: Buffer, from: number, end: number): StartRequest => {
  const body = createBodyReader(buffer, from, end);
  const [id, env, graceMs, behind] = [body.u32(), body.u32(), body.u32(), body.u32()];
  const after = behind === NONE ? null : behind;
  const [cwd, stdout, stderr] = [body.text(), body.optional(), body.optional()];
  const [tmpdir, cgroup, token] = [body.optional(), body.optional(), body.text()];
  const [argv, extraEnv, cpus] = [body.texts(), body.texts(), body.numbers()];
  const flags = body.u32();
  body.done();
  if (argv.length === 0 || flags > APPEND) short();
  const append = flags === APPEND;
  return { id, env, graceMs, after, cwd, stdout, stderr, tmpdir, cgroup, token, argv, extraEnv, cpus, append };
};
