import { lstatSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Finds the files of a project; load-project.ts reads them. Most work has none, and then nothing else is needed. */

/** Weakest first: the one for everybody who works on the project, and one's own. */
export const PROJECT_FILES = ["slipway.yaml", ".slipway.yaml"] as const;

/** Paths are not deeper than this in earnest. */
const MOST_LEVELS = 128;

export interface Found {
  readonly files: readonly string[];
  /** What the user should know although nothing is wrong. */
  readonly warnings: readonly string[];
}

export interface Searcher {
  /** The user's own directory: nothing above it is looked at. */
  readonly home: string | undefined;
  readonly uid: number;
}

const isThere = (path: string): boolean => {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // what cannot even be looked at is as good as absent: the search ends below it
    return false;
  }
};

/** A directory by its real name, as the working directory is known. */
const realOf = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
};

const ownerOf = (path: string): number => lstatSync(path).uid;
const isTrusted = (uid: number, owner: number): boolean => owner === uid || owner === 0;

/** From the working directory up to the root of its git repository; without one, the working directory alone. */
const directories = (cwd: string, { home, uid }: Searcher): { found: string[]; warnings: string[] } => {
  const passed: string[] = [];
  const top = home === undefined ? undefined : realOf(home);
  for (let at = resolve(cwd); passed.length < MOST_LEVELS; at = dirname(at)) {
    passed.push(at);
    const git = join(at, ".git");
    if (isThere(git)) {
      const owner = ownerOf(git);
      // whoever may write to a directory above could otherwise reach into the work below it
      if (passed.length === 1 || isTrusted(uid, owner)) return { found: passed, warnings: [] };
      const names = PROJECT_FILES.join(" and ");
      const warning = `${git} belongs to another user (${owner}): ${names} are looked for in the working directory only`;
      return { found: [passed[0]!], warnings: [warning] };
    }
    if (at === dirname(at) || at === top) break;
  }
  return { found: [passed[0]!], warnings: [] };
};

/** The nearest file of each name. */
export const findProject = (cwd: string, searcher: Searcher): Found => {
  const { found, warnings } = directories(cwd, searcher);
  const files: string[] = [];
  for (const name of PROJECT_FILES) {
    const directory = found.find((each) => isThere(join(each, name)));
    if (directory === undefined) continue;
    const file = join(directory, name);
    const owner = ownerOf(file);
    const foreign = !isTrusted(searcher.uid, owner);
    // such as /tmp: anybody can leave files there for whoever comes by
    const skipped = foreign && (statSync(directory).mode & 0o002) !== 0;
    if (!skipped) files.push(file);
    if (skipped) warnings.push(`${file} is not read: it is another user's (${owner}), where everybody can write`);
    else if (foreign) warnings.push(`${file} belongs to another user (${owner})`);
  }
  return { files, warnings };
};
