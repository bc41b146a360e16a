import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { appendFile, copyFile, readFile, readdir, rename, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspectJournal } from "../../../src/journal/index.ts";
import { until } from "../../until.ts";
import { askToCompact } from "../clients.ts";
import { untilFinished } from "../finish.ts";
import type { World } from "../world.ts";
import { type Play, type Scenario, type Stage, expect } from "./scenario.ts";

/** The journal: torn, flipped, incomplete, and a disk that fails once. */

const directoryOf = (world: World): string => join(world.home, "journal");

const segmentsOf = async (world: World): Promise<string[]> =>
  (await readdir(directoryOf(world))).filter((name) => name.endsWith(".log")).toSorted();

/** A server that dies leaves zeros behind the last record, which it had prepared: without them, the end of a file is that. */
const kill = async (world: World): Promise<void> => {
  await world.killServer();
  for (const { name, length, size } of (await inspectJournal(directoryOf(world))).segments)
    if (length > 0 && length < size) await truncate(join(directoryOf(world), name), length);
};

/** A hash of every file in the journal, to see that a refusal changes nothing. */
const fingerprint = async (world: World): Promise<string> => {
  const hash = createHash("sha256");
  for (const name of (await readdir(directoryOf(world))).toSorted()) {
    const path = join(directoryOf(world), name);
    if ((await stat(path)).isFile()) hash.update(name).update(await readFile(path));
  }
  return hash.digest("hex");
};

/** Several segments, each from a server that was killed, with a finished run in each. */
const history = async (stage: Stage, servers: number): Promise<Play> => {
  const play = await stage.open();
  for (let i = 0; i < servers; i += 1) {
    await play.world.up();
    await play.submit({ tasks: 10 });
    await play.settle();
    await kill(play.world);
  }
  return play;
};

/** The server must not start, must say where the damage is, and must change nothing. */
const refuses = async (world: World, words: RegExp): Promise<void> => {
  const before = await fingerprint(world);
  const { status, stderr } = await world.cli(["up"]);
  expect(status === 3 && words.test(stderr), `up on a damaged journal: exit status ${status}: ${stderr}`);
  expect((await fingerprint(world)) === before, "a server that refused to start changed the journal");
  const verify = await world.cli(["journal", "verify"]);
  expect(verify.status === 1 && words.test(verify.stdout), `journal verify: ${verify.status}: ${verify.stdout}`);
};

/**
 * The repair makes the server start again and keeps the runs that the damage did not touch. What was damaged may be
 * gone or run again; what comes next is complete.
 */
const repairs = async ({ world, submit, driven }: Play, untouched: readonly number[]): Promise<void> => {
  const { status, stdout, stderr } = await world.cli(["journal", "repair"]);
  expect(status === 0, `journal repair: ${status}: ${stdout}${stderr}`);
  await world.up();
  const { id } = await submit({ tasks: 10 });
  await untilFinished(world);
  const runs = new Map((await world.client.runs()).map((run) => [run.id, run]));
  for (const run of [...untouched, id!])
    expect(runs.get(run)?.counts["DONE"] === 10, `after the repair run ${run} is ${JSON.stringify(runs.get(run))}`);
  driven.submitted.length = 0;
};

export const journalScenarios: readonly Scenario[] = [
  {
    name: "a torn last record is cut with a warning, and the rest loads",
    run: async (stage) => {
      const play = await history(stage, 2);
      const { world } = play;
      const newest = join(directoryOf(world), (await segmentsOf(world)).at(-1)!);
      const bytes = await readFile(newest);
      // a truncated write: the beginning of a record, never acknowledged
      await appendFile(newest, bytes.subarray(bytes.length - 60, bytes.length - 20));
      await world.up();
      await play.check();
      const log = await readFile(join(world.home, "logs", "server.log"), "utf8");
      expect(/cut a torn tail of \d+ bytes at offset \d+/.test(log), "no warning of a torn tail in server.log");
      await play.submit();
      await play.settle();
      // and one whose last record lost its end: everything before it loads
      await kill(world);
      const last = join(directoryOf(world), (await segmentsOf(world)).at(-1)!);
      await truncate(last, (await stat(last)).size - 3);
      await world.up();
      expect((await world.client.runs()).length === 3, "a torn last record took more with it than itself");
      await play.settle();
    },
  },
  {
    name: "a flipped byte keeps the server from starting, is named, and is repaired",
    run: async (stage) => {
      const play = await history(stage, 3);
      const { world } = play;
      const middle = (await segmentsOf(world))[1]!;
      const path = join(directoryOf(world), middle);
      const bytes = await readFile(path);
      const at = Math.floor(bytes.length / 2);
      await copyFile(path, join(world.root, "whole"));
      bytes[at]! ^= 0x10;
      await writeFile(path, bytes);
      await refuses(world, new RegExp(`${middle} at offset \\d+`));
      // nothing more was lost: with the byte back in its place everything is there
      await copyFile(join(world.root, "whole"), path);
      await world.up();
      await play.check();
      await world.killServer();
      await writeFile(path, bytes);
      await refuses(world, new RegExp(`${middle} at offset \\d+`));
      await repairs(play, [1, 3]);
    },
  },
  {
    name: "a missing segment keeps the server from starting, is named, and is repaired",
    run: async (stage) => {
      const play = await history(stage, 3);
      const { world } = play;
      for (const nth of [1, 0]) {
        const name = (await segmentsOf(world))[nth]!;
        const [path, aside] = [join(directoryOf(world), name), join(world.root, "aside")];
        await rename(path, aside);
        await refuses(world, new RegExp(`${name} at offset 0: the segment is missing`));
        await rename(aside, path);
        await world.up();
        await play.check();
        await world.killServer();
      }
      const name = (await segmentsOf(world))[1]!;
      await rename(join(directoryOf(world), name), join(world.root, "aside"));
      await repairs(play, [1, 3]);
    },
  },
  {
    name: "an fsync that fails once loses and repeats nothing",
    absent: ({ fsyncShim }) => (fsyncShim === undefined ? "no C compiler for the shim" : undefined),
    run: async (stage) => {
      const play = await stage.open();
      const { world } = play;
      const flag = join(world.root, "fail-fsync");
      await world.up();
      for (let round = 0; round < 3; round += 1) {
        const going = play.submit({ tasks: 60 });
        await until("the work to begin", async () => (await world.executions()) > round * 120);
        await world.failFsync();
        await until("an fsync to fail", () => !existsSync(flag));
        await going;
        await play.submit({ tasks: 60 });
        await play.settle();
      }
      await world.killServer();
      await world.up();
      await play.check();
      // the first fsync of a server's life, that of its new segment
      await world.killServer();
      await world.failFsync();
      await world.up();
      expect(!existsSync(flag), "the start synced nothing");
      await play.submit();
      await play.settle();
    },
  },
  {
    name: "a server killed at any moment of a compaction loses nothing",
    run: async (stage) => {
      const play = await stage.open();
      const { world } = play;
      await world.up();
      for (let round = 0; round < 12; round += 1) {
        await play.submit({ tasks: 40, every: 5, times: 1, retries: 1 });
        if (round % 3 === 0) await play.settle();
        // some are still running: the snapshot contains them too
        const compacted = askToCompact(world);
        await new Promise((resolve) => void setTimeout(resolve, round * 25));
        await world.killServer();
        await compacted;
        await world.up();
        expect((await world.client.runs()).length === round + 1, "a run is gone");
      }
      await play.settle();
      expect(await askToCompact(world), "the compaction after all that failed");
      await play.check();
    },
  },
];
