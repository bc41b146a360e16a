import { SlipwayError } from "../errors.ts";

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a directory",
  EACCES: "permission denied",
};

/** Why a file cannot be read, in words. */
export const reasonOf = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  return REASONS[code ?? ""] ?? message;
};

/** Text, or an error: bytes that are not UTF-8 are never replaced silently. */
export const decodeUtf8 = (bytes: Uint8Array, path: string): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new SlipwayError("bad-file", { where: path, detail: "the file is not UTF-8 text" }, error);
  }
};
