import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { REFUSED_MOVES } from "../../src/server/refused-moves.ts";
import type { World } from "./world.ts";

/** `slipway journal verify --deep`: every record can be read, and snapshot and tail give what full replay gives. */
export const journalProblems = async (world: World): Promise<string[]> => {
  const deep = await world.cli(["journal", "verify", "--deep"]);
  // a Slipway that has no such option yet
  const verified = /unknown option/i.test(deep.stderr) ? await world.cli(["journal", "verify"]) : deep;
  return verified.status === 0 ? [] : [`journal verify: ${verified.stdout}${verified.stderr}`];
};

/** Moves of states that core refused, live or on replay, as the server's log tells. */
export const refusedMoves = async ({ home }: World): Promise<string[]> =>
  (await readFile(join(home, "logs", "server.log"), "utf8").catch(() => ""))
    .split("\n")
    .filter((line) => REFUSED_MOVES.test(line));
