import { readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import {
  buildLaunch,
  type LaunchDocument,
  readLaunchFile,
  type ReadFile,
  withFileContents,
} from "../launch/plan/launch-spec.ts";
import { decodeUtf8, reasonOf } from "../config/file-text.ts";
import { badValue } from "../config/source.ts";
import { SlipwayError } from "../errors.ts";
import { formatSize } from "../core/quantities.ts";

/** A launch's file, read and checked where it was typed: the files it names go along with it. */

const MOST_BYTES = 32 * 1024 * 1024;

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
    .sort();

export const loadLaunch = (file: string): Readonly<Record<string, unknown>> => {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    throw new SlipwayError("no-such-file", { where: "command line", path: file, detail: reasonOf(error) }, error);
  }
  const written: LaunchDocument = readLaunchFile(decodeUtf8(bytes, file), file);
  let total = 0;
  const document = withFileContents(written, (from, at): readonly ReadFile[] => {
    // relative paths inside a file start where the file is
    const source = path.resolve(path.dirname(file), from);
    const readOne = (name: string, full: string): ReadFile => {
      const { size, mode } = statSync(full);
      total += size;
      if (total > MOST_BYTES)
        throw new SlipwayError("too-large", {
          what: "what `files` stages",
          size: `over ${formatSize(MOST_BYTES)}`,
          limit: formatSize(MOST_BYTES),
        });
      return { name, bytes: readFileSync(full), executable: (mode & 0o100) !== 0 };
    };
    try {
      if (!statSync(source).isDirectory()) return [readOne("", source)];
      return filesBelow(source).map((name) => readOne(name, path.join(source, name)));
    } catch (error) {
      if (error instanceof SlipwayError) throw error;
      return badValue(at.source, at.path, `cannot read ${source}: ${reasonOf(error)}`, "Correct the path.");
    }
  });
  // mistakes are reported here, where the file is, with their lines
  const { name } = buildLaunch(document);
  return { ...document.value, name };
};
