import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { REFUSED_MOVES } from "../../src/server/refused-moves.ts";
import type { World } from "./world.ts";

/** `slipway journal verify --deep`: every record can be read, and snapshot and tail give the same as a full replay. */
export const journalProblems = async (world: World): Promise<string[]> => {
  const deep = await world.cli(["journal", "verify", "--deep"]);
  // a Slipway that does not have the option yet
  const verified = /unknown option/i.test(deep.stderr) ? await world.cli(["journal", "verify"]) : deep;
  return verified.status === 0 ? [] : [`journal verify: ${verified.stdout}${verified.stderr}`];
};

/** State changes that core refused, live or in replay, from the server's log. */
export const refusedMoves = async ({ home }: World): Promise<string[]> =>
  (await readFile(join(home, "logs", "server.log"), "utf8").catch(() => ""))
    .split("\n")
    .filter((line) => REFUSED_MOVES.test(line));
