import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../../errors.ts";
import { replaceFile } from "../../replace-file.ts";

/**
 * Tokens of users who share this server (rule 16): HOME/keys/users/NAME holds the hash of each. A token is shown once;
 * making another one revokes it. Files added or removed by hand count at the next start.
 */
export interface UserTokens {
  userOf(hash: string): string | undefined;
  list(): Promise<{ user: string; made: number }[]>;
  /** A new token for this user. */
  add(user: string): Promise<string>;
  remove(user: string): Promise<void>;
}

export const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

export const newToken = (): string => randomBytes(32).toString("base64url");

const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$/;
const HASH = /^[0-9a-f]{64}$/;

export const loadUserTokens = async (home: string): Promise<UserTokens> => {
  const directory = join(home, "keys", "users");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const users = new Map<string, string>();
  for (const user of await readdir(directory)) {
    const hash = (await readFile(join(directory, user), "utf8").catch(() => "")).trim();
    if (USER.test(user) && HASH.test(hash)) users.set(hash, user);
  }
  const forget = (user: string): void => {
    for (const [hash, whose] of users) if (whose === user) users.delete(hash);
  };
  return {
    userOf: (hash) => users.get(hash),
    list: async () => {
      const names = [...new Set(users.values())].sort();
      return Promise.all(
        names.map(async (user) => ({
          user,
          made: (await stat(join(directory, user)).catch(() => undefined))?.mtimeMs ?? 0,
        })),
      );
    },
    add: async (user) => {
      if (!USER.test(user)) throw new SlipwayError("bad-request", { detail: `'${user}' is not a valid user name` });
      const token = newToken();
      await replaceFile(join(directory, user), `${hashOf(token)}\n`);
      forget(user);
      users.set(hashOf(token), user);
      return token;
    },
    remove: async (user) => {
      if (![...users.values()].includes(user)) throw new SlipwayError("not-found", { what: `token of user ${user}` });
      forget(user);
      await rm(join(directory, user), { force: true });
    },
  };
};
