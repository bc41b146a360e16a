import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { SlipwayError } from "../errors.ts";
import { formatSize } from "../core/quantities.ts";
import { chooseStage, readProjectFile, type Level } from "./project-file.ts";
import { decodeUtf8, reasonOf } from "./file-text.ts";
import { MAX_FILE_BYTES } from "./yaml-document.ts";

/** Reads the files of a project. What is found is not trusted: project-keys.ts says what may stand in it. */

/** Which files a project has, and the stage to use. */
export interface ProjectLocation {
  /** Weakest first. */
  readonly files: readonly string[];
  readonly stage?: string | undefined;
}

export interface Project extends ProjectLocation {
  readonly levels: readonly Level[];
}

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
