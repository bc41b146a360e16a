import { randomBytes } from "node:crypto";
import type { Role } from "../api/caller.ts";
import { sameSecret } from "../protocol/token.ts";

/** One-time codes: 256 random bits that sign somebody in once, within a minute. In memory only, and few. */
export const CODE_SECONDS = 60;
const MOST_CODES = 32;

export interface Codes {
  make(role: Role): { readonly code: string; readonly expires: number };
  /** What it was made for; never the same one twice. */
  redeem(given: string): Role | undefined;
}

export const createCodes = (clock: () => number): Codes => {
  // in order of their making
  let codes: { readonly code: string; readonly role: Role; readonly expires: number }[] = [];
  return {
    make: (role) => {
      const code = randomBytes(32).toString("base64url");
      const expires = clock() + CODE_SECONDS * 1000;
      codes = [...codes.slice(1 - MOST_CODES), { code, role, expires }];
      return { code, expires };
    },
    redeem: (given) => {
      // all are compared, whichever is the right one
      const found = codes.filter(({ code }) => sameSecret(given, code))[0];
      codes = codes.filter((each) => each !== found && each.expires > clock());
      return found !== undefined && found.expires > clock() ? found.role : undefined;
    },
  };
};
