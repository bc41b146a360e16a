import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SlipwayError } from "../errors.ts";
import { formatSize } from "../core/quantities.ts";
import { chooseStage, readProjectFile, type Level } from "./project-file.ts";
import { decodeUtf8, reasonOf } from "./run-file.ts";
import { MAX_FILE_BYTES } from "./yaml-document.ts";

/** Finds and reads the files of a project. What is found is not trusted: project-keys.ts says what may stand in it. */

/** Weakest first: the one for everybody who works on the project, and one's own. */
export const PROJECT_FILES = ["slipway.yaml", ".slipway.yaml"] as const;

/** Paths are not deeper than this in earnest. */
const MOST_LEVELS = 128;

/** Which files a project has, and the stage to use. */
export interface ProjectLocation {
  /** Weakest first. */
  readonly files: readonly string[];
  readonly stage?: string | undefined;
}

export interface Project extends ProjectLocation {
  readonly levels: readonly Level[];
}

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

/** The bytes of a file that somebody else may have put there: no pipe and no device, and not without end. */
const readBytes = (path: string): Buffer => {
  const refuse = (detail: string): never => {
    throw new SlipwayError("bad-file", { where: path, detail });
  };
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new SlipwayError("no-such-file", { where: "project", path, detail: reasonOf(error) }, error);
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) refuse("it is not a file");
    if ((stats.mode & 0o002) !== 0) refuse(`everybody can write to it; \`chmod o-w ${path}\` changes that`);
    if (stats.size > MAX_FILE_BYTES)
      throw new SlipwayError("too-large", {
        what: path,
        size: formatSize(stats.size),
        limit: formatSize(MAX_FILE_BYTES),
      });
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    for (let more = -1; more !== 0 && length < bytes.length; length += more)
      more = readSync(fd, bytes, length, bytes.length - length, length);
    return bytes.subarray(0, length);
  } finally {
    closeSync(fd);
  }
};

/** Reads a project's files and chooses the stage. */
export const loadProject = ({ files, stage }: ProjectLocation): Project => ({
  files,
  stage,
  levels: chooseStage(
    files.map((file) => readProjectFile(decodeUtf8(readBytes(file), file), file)),
    stage,
  ),
});
