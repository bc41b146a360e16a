import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { decodeEvent } from "../core/codec.ts";
import { SlipwayError } from "../errors.ts";
import { readEndpoint } from "../protocol/endpoint.ts";
import { formatSize } from "../core/quantities.ts";
import { pruneArchives } from "./archive/archive.ts";
import { compact } from "./archive/compact.ts";
import { claimHome } from "./home/index.ts";
import {
  inspectJournal,
  type JournalInfo,
  openJournal,
  readJournal,
  repairJournal,
  verifyJournal,
} from "./journal/index.ts";

/** `slipway journal …`: looks at, checks, mends and exports the journal of a home. */

const print = (json: boolean, value: object, lines: readonly string[]): void => {
  process.stdout.write(json ? `${JSON.stringify(value)}\n` : `${lines.join("\n")}\n`);
};

/** Work that writes needs the home for itself. */
const alone = async <T>(home: string, work: (epoch: number) => Promise<T>): Promise<T> => {
  const claim = await claimHome(home, {
    onWait: ({ host, ms }) =>
      process.stderr.write(`held by a server on ${host}; waiting ${ms / 1000} s to see whether it lives\n`),
  });
  claim.onLost(() => process.exit(3));
  try {
    return await work(claim.epoch);
  } finally {
    await claim.release();
  }
};

const compactAlone = async (home: string, dir: string): Promise<{ before: number; after: number; archived: number }> =>
  alone(home, async (epoch) => {
    const journal = await openJournal({ dir, epoch }, () => undefined);
    try {
      const before = await journal.sizeOnDisk();
      const { upTo } = await journal.roll();
      const { snapshot, archived, files } = await compact(home, upTo);
      await journal.snapshotWritten(snapshot);
      await pruneArchives(home, new Set(files));
      return { before, after: await journal.sizeOnDisk(), archived: archived.length };
    } finally {
      await journal.close();
    }
  });

/** Bytes and typed columns as numbers, so that a line of JSON says it all. */
const plain = (_key: string, value: unknown): unknown => {
  if (ArrayBuffer.isView(value))
    return value instanceof Uint8Array && value.byteLength > 65_536
      ? `${value.byteLength} bytes`
      : [...(value as unknown as Iterable<number>)];
  return value;
};

const infoLines = (info: JournalInfo): string[] => {
  const { snapshot, segments, problems, warnings } = info;
  return [
    `format    ${info.format}`,
    `size      ${formatSize(info.bytes)}`,
    `records   ${info.records} to replay, the last is number ${info.lastLsn}`,
    `snapshot  ${snapshot === undefined ? "none" : `${snapshot.name}, ${snapshot.records} records, ${formatSize(snapshot.bytes)}`}`,
    `segments  ${segments.length}`,
    ...segments.map(({ name, size, use, firstLsn, lastLsn }) => {
      const held = lastLsn < firstLsn ? "no records" : `records ${firstLsn} to ${lastLsn}`;
      return `  ${name}  ${formatSize(size)}  ${use === "ignored" ? "ignored" : held}`;
    }),
    ...warnings.map((warning) => `warning   ${warning}`),
    ...problems.map(({ segment, offset, detail }) => `damage    ${segment} at offset ${offset}: ${detail}`),
  ];
};

const actions: Record<string, (home: string, dir: string, json: boolean) => Promise<number>> = {
  info: async (_home, dir, json) => {
    const info = await inspectJournal(dir);
    print(json, info, infoLines(info));
    return 0;
  },
  verify: async (_home, dir, json) => {
    const verdict = await verifyJournal(dir);
    const problems = verdict.problems.map(({ segment, offset, detail }) => `${segment} at offset ${offset}: ${detail}`);
    print(
      json,
      verdict,
      verdict.ok
        ? [`the journal is whole: ${verdict.records} records`]
        : ["the journal is damaged:", ...problems, "`slipway journal repair` keeps all that can be read."],
    );
    return verdict.ok ? 0 : 1;
  },
  repair: async (home, dir, json) => {
    const repaired = await alone(home, () => repairJournal(dir));
    print(json, repaired, [
      JSON.stringify(repaired, null, 2),
      "The damaged files were kept beside the journal. The next `slipway up` works.",
    ]);
    return 0;
  },
  compact: async (home, dir, json) => {
    if ((await readEndpoint(home)) !== undefined) {
      const outcome = await compactThroughServer(home);
      if (outcome) {
        print(json, { asked: true }, ["the server was asked to compact its journal"]);
        return 0;
      }
    }
    const done = await compactAlone(home, dir);
    print(json, done, [
      `compacted: ${formatSize(done.before)} to ${formatSize(done.after)}, ${done.archived} runs archived`,
    ]);
    return 0;
  },
  export: async (_home, dir) => {
    await readJournal(dir, (type, payload, lsn) => {
      const event = type < 100 ? decodeEvent(type, payload) : { type: `snapshot.${type}`, bytes: payload.byteLength };
      process.stdout.write(`${JSON.stringify({ lsn, ...event }, plain)}\n`);
    });
    return 0;
  },
};

/** A running server compacts by itself when told so; SIGUSR1 is Node's own, so a request it is. */
const compactThroughServer = async (home: string): Promise<boolean> => {
  const { request } = await import("node:http");
  const endpoint = await readEndpoint(home);
  if (endpoint === undefined) return false;
  return new Promise((resolve) => {
    const ask = request({ socketPath: endpoint.socket, path: "/api/v1/server/compact", method: "POST" }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode === 200));
    });
    ask.on("error", () => resolve(false));
    ask.end();
  });
};

export const journalCommand = async (args: string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { home: { type: "string" }, json: { type: "boolean" } },
  });
  const action = actions[positionals[0] ?? ""];
  const json = values.json === true;
  // a reader that leaves early (`| head`) is no error
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  try {
    if (action === undefined || values.home === undefined)
      throw new SlipwayError("usage", { detail: `journal ${Object.keys(actions).join(" | ")}` });
    const dir = join(values.home, "journal");
    if (!existsSync(dir))
      throw new SlipwayError("home-unusable", {
        home: values.home,
        detail: "no server has used it, so it has no journal",
      });
    return await action(values.home, dir, json);
  } catch (error) {
    const known =
      error instanceof SlipwayError ? error : new SlipwayError("internal", { detail: (error as Error).message }, error);
    process.stderr.write(json ? `${JSON.stringify(known.toJSON())}\n` : `error: ${known.message}\n  ${known.hint}\n`);
    return known.row.exit;
  }
};
