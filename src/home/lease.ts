import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../replace-file.ts";
import { errnoOf, unless } from "./files.ts";
import { type ProcessIdentity, parseIdentity } from "../process-identity.ts";

/** Who holds the home. Every renewal changes its content; a reader on another host relies on that, not on its times. */
export interface Lease extends ProcessIdentity {
  readonly epoch: number;
  readonly counter: number;
  /** ISO time, for people. */
  readonly started: string;
  readonly address?: string | undefined;
}

const leasePath = (home: string): string => join(home, "lease.json");
export { leasePath };

/** All leases have one size, so that on a full disk the old one can be overwritten in place. */
const LEASE_BYTES = 2048;

export const parseLease = (text: string): Lease | undefined => {
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const identity = parseIdentity(body);
    const { epoch, counter, started, address } = body;
    if (identity === undefined || !Number.isSafeInteger(epoch) || !Number.isSafeInteger(counter)) return undefined;
    return {
      ...identity,
      epoch: epoch as number,
      counter: counter as number,
      started: String(started),
      ...(typeof address === "string" ? { address } : {}),
    };
  } catch {
    return undefined;
  }
};

/** The file's text, undefined if there is none. */
export const readLeaseText = (home: string): Promise<string | undefined> =>
  unless(["ENOENT"], () => readFile(leasePath(home), "utf8"));

export const writeLease = async (home: string, lease: Lease): Promise<void> => {
  const text = `${JSON.stringify(lease).padEnd(LEASE_BYTES - 1)}\n`;
  try {
    await replaceFile(leasePath(home), text, { sync: false });
  } catch (error) {
    if (errnoOf(error) !== "ENOSPC" && errnoOf(error) !== "EDQUOT") throw error;
    // A full disk must not cost the server its home: overwriting needs no space. A reader may see a mixture, which
    // counts as a change too.
    const file = await open(leasePath(home), "r+");
    try {
      await file.write(text, 0, "utf8");
    } finally {
      await file.close();
    }
  }
};
