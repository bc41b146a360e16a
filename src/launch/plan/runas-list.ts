/**
 * `sudo_authorized`: in whose names jobs may run, in the form of a Runas_List of sudoers. Entries are names, `%group`,
 * `#uid` or ALL, each with `!` to exclude; the last one that matches decides, and root is always excluded.
 */

export interface UserFacts {
  readonly name: string;
  readonly uid: number;
  readonly groups: readonly string[];
}

const ENTRY = /^!*(?:ALL|#\d+|%#?[A-Za-z0-9_][A-Za-z0-9_.-]*\$?|[A-Za-z_][A-Za-z0-9_.-]*\$?)$/;

/** Whether an entry can go into a sudoers file unchanged. */
export const isRunasEntry = (entry: string): boolean => ENTRY.test(entry);

const matches = (entry: string, { name, uid, groups }: UserFacts): boolean => {
  if (entry === "ALL") return true;
  if (entry.startsWith("#")) return Number(entry.slice(1)) === uid;
  return entry.startsWith("%") ? groups.includes(entry.slice(1)) : entry === name;
};

export const isAuthorized = (list: readonly string[], user: UserFacts): boolean => {
  if (user.uid === 0 || user.name === "root") return false;
  let authorized = false;
  for (const entry of list) {
    const plain = entry.replace(/^!+/, "");
    const excludes = (entry.length - plain.length) % 2 === 1;
    if (isRunasEntry(entry) && matches(plain, user)) authorized = !excludes;
  }
  return authorized;
};
