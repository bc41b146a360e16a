import { constants } from "node:os";
import type { FrameWriter } from "./frames.ts";
import { Event, type Exit, STAGES } from "./protocol.ts";

/** Events as bytes: the Node spawner writes them here, the agent reads them here. */

/**
 * EXIT is u32 id, u8 kind (0 exit code, 1 signal, 2 neither; WAS_ENDED added if the agent had asked for its end), u32
 * value, u8 stage, u32 errno, u32 strays, then as f64: start, end (epoch ms), largest resident set (bytes), user and
 * system time (ms), the peak of its cgroup (bytes), read from storage and written to it (bytes); u32 processes in its
 * cgroup that the kernel killed for memory.
 */
const WAS_ENDED = 0x80;
const EXIT_BYTES = 86;

let names: Map<number, string> | undefined;

/** `ENOENT` for 2. Node's own table lacks some (EDQUOT, ESTALE); unknown numbers stay numbers. */
export const errnoName = (errno: number): string => {
  if (names === undefined) {
    names = new Map();
    for (const [name, value] of Object.entries(constants.errno)) if (!names.has(value)) names.set(value, name);
  }
  return names.get(errno) ?? `E${errno}`;
};

export const errnoNumber = (code: string | undefined): number =>
  (constants.errno as Readonly<Record<string, number>>)[code ?? ""] ?? constants.errno.EINVAL;

export const writeExit = (writer: FrameWriter, exit: Exit): void => {
  writer.begin(Event.EXIT);
  writer.u32(exit.id);
  writer.u8((exit.code !== null ? 0 : exit.signal !== null ? 1 : 2) + (exit.ended ? WAS_ENDED : 0));
  writer.u32(exit.code ?? exit.signal ?? 0);
  writer.u8(exit.error === null ? 0 : STAGES.indexOf(exit.error.stage));
  writer.u32(exit.error?.errno ?? 0);
  writer.u32(exit.strays);
  writer.f64(exit.startedAt);
  writer.f64(exit.endedAt);
  writer.f64(exit.maxRssBytes);
  writer.f64(exit.userMs);
  writer.f64(exit.systemMs);
  writer.f64(exit.cgroupPeakBytes);
  writer.f64(exit.readBytes);
  writer.f64(exit.writtenBytes);
  writer.u32(exit.oomKills);
  writer.end();
};

export const readExit = (buffer: Buffer, at: number, end: number): Exit => {
  if (end - at !== EXIT_BYTES) throw new RangeError("malformed exit");
  const kind = buffer[at + 4]! & ~WAS_ENDED;
  const value = buffer.readUInt32LE(at + 5);
  const stage = STAGES[buffer[at + 9]!] ?? null;
  const errno = buffer.readUInt32LE(at + 10);
  return {
    id: buffer.readUInt32LE(at),
    code: kind === 0 ? value : null,
    signal: kind === 1 ? value : null,
    error: stage === null ? null : { stage, errno, code: errnoName(errno) },
    ended: (buffer[at + 4]! & WAS_ENDED) !== 0,
    strays: buffer.readUInt32LE(at + 14),
    startedAt: buffer.readDoubleLE(at + 18),
    endedAt: buffer.readDoubleLE(at + 26),
    maxRssBytes: buffer.readDoubleLE(at + 34),
    userMs: buffer.readDoubleLE(at + 42),
    systemMs: buffer.readDoubleLE(at + 50),
    cgroupPeakBytes: buffer.readDoubleLE(at + 58),
    readBytes: buffer.readDoubleLE(at + 66),
    writtenBytes: buffer.readDoubleLE(at + 74),
    oomKills: buffer.readUInt32LE(at + 82),
  };
};

/** The exit of a task that never started, at no time: 127 for a command that was not found, 126 for one that cannot be executed. */
export const failedStart = (id: number, stage: Exclude<(typeof STAGES)[number], null>, errno: number): Exit => {
  const code = stage !== "exec" ? null : errno === constants.errno.ENOENT ? 127 : 126;
  const error = { stage, errno, code: errnoName(errno) };
  return {
    id,
    code,
    signal: null,
    startedAt: 0,
    endedAt: 0,
    error,
    ended: false,
    maxRssBytes: 0,
    cgroupPeakBytes: 0,
    oomKills: 0,
    userMs: 0,
    systemMs: 0,
    readBytes: 0,
    writtenBytes: 0,
    strays: 0,
  };
};
