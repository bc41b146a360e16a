import { readFile, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { highestEpoch } from "../journal/names.ts";
import { replaceFile } from "../replace-file.ts";
import { createFile, unless } from "./files.ts";
import { type ProcessIdentity, parseIdentity } from "../process-identity.ts";

/** One file per epoch, named after it and made by the server that claims it; its existence is the claim. */
export interface EpochClaim {
  readonly epoch: number;
  /** Undefined if the file cannot be understood. */
  readonly by: ProcessIdentity | undefined;
  /** Its server ended in an orderly way. */
  readonly released: boolean;
  readonly text: string;
}

/** How many old epoch files stay, for people to read. */
const KEPT = 8;
const NAME = /^[0-9a-f]{8}$/;

const epochsDir = (home: string): string => join(home, "epochs");
const epochPath = (home: string, epoch: number): string => join(epochsDir(home), epoch.toString(16).padStart(8, "0"));

const listEpochs = async (home: string): Promise<number[]> => {
  const names = (await unless(["ENOENT"], () => readdir(epochsDir(home)))) ?? [];
  return names.filter((name) => NAME.test(name)).map((name) => parseInt(name, 16));
};

/** 0 if no epoch was ever claimed. */
export const highestClaimed = async (home: string): Promise<number> => Math.max(0, ...(await listEpochs(home)));

const content = (by: ProcessIdentity, released: boolean): string => `${JSON.stringify({ ...by, released })}\n`;

export const readClaim = async (home: string, epoch: number): Promise<EpochClaim | undefined> => {
  const text = await unless(["ENOENT"], () => readFile(epochPath(home, epoch), "utf8"));
  if (text === undefined) return undefined;
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    return { epoch, by: parseIdentity(body), released: body["released"] === true, text };
  } catch {
    return { epoch, by: undefined, released: false, text };
  }
};

/**
 * Claims the epoch above the highest in any file of the home, provided that nobody has claimed one since `view`, which
 * found the home free. Undefined: someone has, and the caller must look again.
 */
export const claimEpoch = async (
  home: string,
  view: { readonly top: number; readonly highest: number },
  by: ProcessIdentity,
): Promise<number | undefined> => {
  const journal = (await unless(["ENOENT"], () => readdir(join(home, "journal")))) ?? [];
  const epoch = Math.max(view.highest, highestEpoch(journal)) + 1;
  if (!(await createFile(epochPath(home, epoch), content(by, false)))) return undefined;
  const others = (await listEpochs(home)).filter((other) => other !== epoch);
  if (Math.max(0, ...others) <= view.top) return epoch;
  await unless(["ENOENT"], () => unlink(epochPath(home, epoch)));
  return undefined;
};

export const releaseEpoch = (home: string, epoch: number, by: ProcessIdentity): Promise<void> =>
  replaceFile(epochPath(home, epoch), content(by, true));

/** Removes the files of old epochs and of interrupted claims. */
export const pruneEpochs = async (home: string, epoch: number): Promise<void> => {
  for (const name of await readdir(epochsDir(home))) {
    const old = NAME.test(name) ? parseInt(name, 16) <= epoch - KEPT : name.endsWith(".tmp");
    if (old) await unless(["ENOENT"], () => unlink(join(epochsDir(home), name)));
  }
};
