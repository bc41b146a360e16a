import type { World } from "./world.ts";

/** `slipway journal verify --deep`: every record can be read, and snapshot and tail give what full replay gives. */
export const journalProblems = async (world: World): Promise<string[]> => {
  const deep = await world.cli(["journal", "verify", "--deep"]);
  // a Slipway that has no such option yet
  const verified = /unknown option/i.test(deep.stderr) ? await world.cli(["journal", "verify"]) : deep;
  return verified.status === 0 ? [] : [`journal verify: ${verified.stdout}${verified.stderr}`];
};
