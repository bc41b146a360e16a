import { readFileSync, statSync } from "node:fs";
import { basename, extname } from "node:path";
import { formatSize } from "../core/quantities.ts";
import { SlipwayError } from "../errors.ts";
import { createProblems } from "./problems.ts";
import { decodeUtf8, reasonOf } from "./file-text.ts";
import { documentOf, ONLY_REQUESTS, type RunDocument } from "./run-file.ts";
import { RUN_PLAN } from "./run-schema.ts";
import { badValue, type Path } from "./source.ts";
import { nameFrom } from "./text-rules.ts";
import { MAX_FILE_BYTES, readYaml } from "./yaml-document.ts";

/** A run that stands in a file: apart from run-file.ts, since a command line needs no YAML. */

/** `x-…` keys at the top are for anchors and notes. */
const withoutNotes = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("x-")))
    : value;

/**
 * Reads the text of a run file. Every problem is a SlipwayError whose `where` is `file:line:column`; those that leave
 * something to read are in the document, for buildRun to throw with its own.
 */
export const readRunFile = (text: string, fileName: string): RunDocument => {
  const problems = createProblems();
  const yaml = readYaml(text, fileName, RUN_PLAN, problems);
  const kind = Array.isArray(yaml.value) ? "a list" : typeof yaml.value === "object" ? "empty" : "plain text";
  if (typeof yaml.value !== "object" || yaml.value === null || Array.isArray(yaml.value)) {
    throw new SlipwayError("bad-file", {
      where: `${fileName}:1:1`,
      detail: `a run file is a map with the key \`tasks\`; this one is ${kind}`,
    });
  }
  const document = documentOf(
    withoutNotes(yaml.value),
    yaml,
    nameFrom(basename(fileName, extname(fileName)), "run"),
    problems,
  );
  const only = (path: Path, remedy: string): void =>
    void problems.take(() => badValue(yaml, path, "belongs to requests, not to files", remedy));
  for (const key of ONLY_REQUESTS) if (Object.hasOwn(document.value, key)) only([key], "Remove it.");
  for (const i of document.value.tasks.keys())
    if (yaml.written!(["tasks", i, "each", "stream"]) !== undefined)
      only(["tasks", i, "each", "stream"], "Use lines, json or values.");
  return document;
};

/** Reads a run file from disk. */
export const loadRunFile = (path: string): RunDocument => {
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) {
      throw new SlipwayError("too-large", { what: path, size: formatSize(size), limit: formatSize(MAX_FILE_BYTES) });
    }
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof SlipwayError) throw error;
    throw new SlipwayError("no-such-file", { where: "command line", path, detail: reasonOf(error) }, error);
  }
  return readRunFile(decodeUtf8(bytes, path), path);
};
