import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ROLES, type Role } from "../../api/caller.ts";
import { SlipwayError } from "../../errors.ts";
import { replaceFile } from "../../replace-file.ts";

/**
 * Tokens of users who share this server, and of those who act for its owner with a role (rule 16): HOME/keys/users/NAME
 * holds the hash of each, and after it the role. A token is shown once; making another one revokes it. Files added or
 * removed by hand count at the next start.
 */
export interface Holder {
  readonly user: string;
  /** Undefined: a user of this machine, for their own launches. */
  readonly role: Role | undefined;
}

export interface UserTokens {
  holderOf(hash: string): Holder | undefined;
  list(): Promise<(Holder & { made: number })[]>;
  /** A new token for this name. */
  add(user: string, role: Role | undefined): Promise<string>;
  remove(user: string): Promise<void>;
}

export const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

export const newToken = (): string => randomBytes(32).toString("base64url");

const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$/;
const LINE = new RegExp(`^([0-9a-f]{64})(?: (${ROLES.join("|")}))?$`);

export const loadUserTokens = async (home: string): Promise<UserTokens> => {
  const directory = join(home, "keys", "users");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const users = new Map<string, Holder>();
  for (const user of await readdir(directory)) {
    const [, hash, role] = LINE.exec((await readFile(join(directory, user), "utf8").catch(() => "")).trim()) ?? [];
    if (USER.test(user) && hash !== undefined) users.set(hash, { user, role: role as Role | undefined });
  }
  const forget = (user: string): void => {
    for (const [hash, whose] of users) if (whose.user === user) users.delete(hash);
  };
  return {
    holderOf: (hash) => users.get(hash),
    list: async () => {
      const holders = [...users.values()].toSorted((a, b) => (a.user < b.user ? -1 : 1));
      return Promise.all(
        holders.map(async ({ user, role }) => ({
          user,
          role,
          made: (await stat(join(directory, user)).catch(() => undefined))?.mtimeMs ?? 0,
        })),
      );
    },
    add: async (user, role) => {
      if (!USER.test(user)) throw new SlipwayError("bad-request", { detail: `'${user}' is not a valid user name` });
      const token = newToken();
      await replaceFile(join(directory, user), `${hashOf(token)}${role === undefined ? "" : ` ${role}`}\n`);
      forget(user);
      users.set(hashOf(token), { user, role });
      return token;
    },
    remove: async (user) => {
      if (![...users.values()].some((holder) => holder.user === user))
        throw new SlipwayError("not-found", { what: `token of user ${user}` });
      forget(user);
      await rm(join(directory, user), { force: true });
    },
  };
};
