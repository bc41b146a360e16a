import { request } from "node:http";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { ClustersConfig } from "../config/clusters-file.ts";
import { loadClusters } from "../config/load-clusters.ts";
import { readEvent } from "../core/check.ts";
import { decodeEvent, encodeEvent } from "../core/codec.ts";
import { SlipwayError } from "../errors.ts";
import { CLIENT_HOST } from "../protocol/client-host.ts";
import { readEndpoint } from "../protocol/endpoint.ts";
import { formatSize } from "../core/quantities.ts";
import { pruneArchives } from "../archive/archive.ts";
import { compact, replayState } from "../archive/compact.ts";
import { type DeepVerdict, verifyDeep } from "../archive/verify.ts";
import { claimHome } from "../home/index.ts";
import {
  inspectJournal,
  type Journal,
  type JournalInfo,
  type Repaired,
  openJournal,
  readJournal,
  type Replay,
  repairJournal,
  verifyJournal,
} from "../journal/index.ts";

/** `slipway journal …`: inspects, checks, repairs and exports the journal of a home. */

/** Record types below this are events, the others parts of a snapshot. */
const FIRST_PART = 100;

const print = (json: boolean, value: object, lines: readonly string[]): void => {
  process.stdout.write(json ? `${JSON.stringify(value)}\n` : `${lines.join("\n")}\n`);
};

/** Work that writes needs exclusive use of the home. */
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

const compactAlone = async (
  home: string,
  dir: string,
  { limits: { losses }, keepHistory }: ClustersConfig,
): Promise<{ before: number; after: number; archived: number }> =>
  alone(home, async (epoch) => {
    let opened: Journal | undefined;
    const open = async (replay: Replay): Promise<void> => {
      // no more than two records will be written
      opened = await openJournal({ dir, epoch, keepHistory, aheadBytes: 0 }, replay);
    };
    const state = await replayState(home, open, { losses });
    const journal = opened!;
    try {
      if (state.undecided > 0) {
        const { type, payload } = encodeEvent({ type: "losses.judged", at: Date.now(), limit: state.lossLimit });
        journal.append(type, payload);
      }
      const before = await journal.sizeOnDisk();
      const { upTo } = await journal.roll();
      const { snapshot, archived, files } = await compact(home, upTo);
      await journal.snapshotWritten(snapshot);
      if (!keepHistory) await pruneArchives(home, new Set(files));
      return { before, after: await journal.sizeOnDisk(), archived: archived.length };
    } finally {
      await journal.close();
    }
  });

/** Bytes and typed columns as numbers, so that a line of JSON says everything. */
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

/** The findings of a deep check, in words. */
const deepLines = (deep: DeepVerdict): string[] => {
  const other = {
    all: `a replay of everything since the first record (${deep.records} records)`,
    older: `a replay from ${deep.from}, the oldest snapshot there is (${deep.records} records)`,
    none: "a replay with a further snapshot in its middle",
  }[deep.comparedWith];
  const lines = [
    `what the next start reads, ${deep.runs} runs up to record ${deep.lastLsn}, ${deep.ok ? "is the same as" : "is NOT the same as"} ${other}`,
    ...deep.differences.map(
      ({ what, values: [here, there] }) => `  ${what}: ${here} at the next start, ${there} there`,
    ),
  ];
  if (deep.comparedWith !== "all")
    lines.push(
      `what led to ${deep.from} is gone and was not compared; \`keep-history: true\` in clusters.yaml keeps it from now on`,
    );
  if (deep.undecided > 0)
    lines.push(`${deep.undecided} losses of tasks hold no decision; the next start judges them by limits.losses, once`);
  return lines;
};

interface Given {
  readonly home: string;
  readonly dir: string;
  readonly json: boolean;
  readonly deep: boolean;
  readonly clusters: string | undefined;
}

const settings = ({ home, clusters }: Given): Promise<ClustersConfig> => loadClusters({ home, explicitPath: clusters });

/** Events of a journal must be fit to be applied; parts of a snapshot are not examined. */
const lookAt = (type: number, payload: Buffer): void => {
  if (type < FIRST_PART) readEvent(type, payload);
};

const exported = (type: number, payload: Buffer): object => {
  if (type >= FIRST_PART) return { type: `snapshot.${type}`, bytes: payload.byteLength };
  try {
    return decodeEvent(type, payload) ?? { type, bytes: payload.byteLength };
  } catch (error) {
    return { type, bytes: payload.byteLength, problem: (error as Error).message };
  }
};

/** Repairs, and sets aside what a start could not apply. */
const repairAlone = async (given: Given): Promise<Repaired> => {
  let repaired: Repaired | undefined;
  await replayState(
    given.home,
    async (replay) => {
      repaired = await repairJournal(given.dir, {
        replay,
        explain: (type, payload) => JSON.parse(JSON.stringify(exported(type, payload), plain)) as unknown,
      });
    },
    { losses: (await settings(given)).limits.losses },
  );
  return repaired!;
};

const repairLines = (repaired: Repaired): string[] => {
  if (!repaired.changed) return ["the journal is whole: nothing was changed"];
  const { setAside, movedTo, problems } = repaired;
  return [
    ...problems.map(({ segment, offset, detail }) => `damage     ${segment} at offset ${offset}: ${detail}`),
    ...setAside.flatMap(({ file, segment, offset, record, detail }) => [
      `set aside  record ${record}, ${segment} at offset ${offset}: ${detail}`,
      `           ${file}`,
    ]),
    `kept       ${repaired.kept} records`,
    `the files as they were, and a report, are in ${movedTo}. The next \`slipway up\` works.`,
  ];
};

const actions: Record<string, (given: Given) => Promise<number>> = {
  info: async ({ dir, json }) => {
    const info = await inspectJournal(dir);
    print(json, info, infoLines(info));
    return 0;
  },
  verify: async (given) => {
    const { home, dir, json } = given;
    const verdict = await verifyJournal(dir, { replay: lookAt });
    const problems = verdict.problems.map(({ segment, offset, detail }) => `${segment} at offset ${offset}: ${detail}`);
    const deep = given.deep && verdict.ok ? await verifyDeep(home, (await settings(given)).limits.losses) : undefined;
    print(
      json,
      { ...verdict, ...(deep === undefined ? {} : { deep }) },
      verdict.ok
        ? [`the journal is whole: ${verdict.records} records`, ...(deep === undefined ? [] : deepLines(deep))]
        : ["the journal is damaged:", ...problems, "`slipway journal repair` keeps everything that can be read."],
    );
    return verdict.ok && deep?.ok !== false ? 0 : 1;
  },
  repair: async (given) => {
    const { home, json } = given;
    const repaired = await alone(home, () => repairAlone(given));
    print(json, repaired, repairLines(repaired));
    return 0;
  },
  compact: async (given) => {
    const { home, dir, json } = given;
    if ((await readEndpoint(home)) !== undefined) {
      const outcome = await compactThroughServer(home);
      if (outcome) {
        print(json, { asked: true }, ["the server was asked to compact its journal"]);
        return 0;
      }
    }
    const done = await compactAlone(home, dir, await settings(given));
    print(json, done, [
      `compacted: ${formatSize(done.before)} to ${formatSize(done.after)}, ${done.archived} runs archived`,
    ]);
    return 0;
  },
  export: async ({ dir }) => {
    await readJournal(dir, (type, payload, lsn) => {
      process.stdout.write(`${JSON.stringify({ lsn, ...exported(type, payload) }, plain)}\n`);
    });
    return 0;
  },
};

/** A running server compacts on request; SIGUSR1 belongs to Node itself, so it is an HTTP request. */
const compactThroughServer = async (home: string): Promise<boolean> => {
  const endpoint = await readEndpoint(home);
  if (endpoint === undefined) return false;
  return new Promise((resolve) => {
    const ask = request(
      {
        socketPath: endpoint.socket,
        path: "/api/v1/server/compact",
        method: "POST",
        headers: { host: CLIENT_HOST },
      },
      (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode === 200));
      },
    );
    ask.on("error", () => resolve(false));
    ask.end();
  });
};

export const journalCommand = async (args: string[]): Promise<number> => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      home: { type: "string" },
      json: { type: "boolean" },
      deep: { type: "boolean" },
      clusters: { type: "string" },
    },
  });
  const action = actions[positionals[0] ?? ""];
  const json = values.json === true;
  // a reader that leaves early (`| head`) is not an error
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
    return await action({ home: values.home, dir, json, deep: values.deep === true, clusters: values.clusters });
  } catch (error) {
    const known =
      error instanceof SlipwayError ? error : new SlipwayError("internal", { detail: (error as Error).message }, error);
    process.stderr.write(json ? `${JSON.stringify(known.toJSON())}\n` : `error: ${known.message}\n  ${known.hint}\n`);
    return known.row.exit;
  }
};
