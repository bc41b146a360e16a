import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../errors.ts";

/**
 * The page's files, as the build left them. All are read once, at the first request, and only what was found then is
 * ever answered: no path of a request reaches the file system.
 */
export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  /** Made by the build (scripts/pack-page.mjs). */
  readonly gzip: Buffer | undefined;
  readonly etag: string;
  /** Its name changes with its content. */
  readonly isHashed: boolean;
}

const MOST_FILES = 256;
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_DEPTH = 4;

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
  svg: "image/svg+xml",
  png: "image/png",
  ico: "image/x-icon",
  webp: "image/webp",
  woff2: "font/woff2",
  txt: "text/plain; charset=utf-8",
  webmanifest: "application/manifest+json",
};

/** `index-BxY12abc.js`, `index.BxY12abc.css`. */
const HASHED = /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/;

const typeOf = (name: string): string | undefined => {
  const ending = /\.([a-z0-9]+)$/.exec(name)?.[1] ?? "";
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
};

const readPlain = async (path: string, left: number): Promise<Buffer> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    if (size > left) throw new SlipwayError("no-page", { detail: `: its files are larger than ${MOST_BYTES} bytes` });
    return await file.readFile();
  } finally {
    await file.close();
  }
};

/** Every file below the directory, by its path there; what is neither a file nor a directory is not looked at. */
const readTree = async (root: string): Promise<Map<string, Buffer>> => {
  const found = new Map<string, Buffer>();
  let left = MOST_BYTES;
  const walk = async (path: string, depth: number): Promise<void> => {
    for (const entry of await readdir(join(root, path), { withFileTypes: true })) {
      const name = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory() && depth < MOST_DEPTH) await walk(name, depth + 1);
      if (!entry.isFile() || typeOf(name.replace(/\.gz$/, "")) === undefined) continue;
      const body = await readPlain(join(root, name), left);
      left -= body.length;
      found.set(name, body);
      if (found.size > MOST_FILES) throw new SlipwayError("no-page", { detail: `: it has over ${MOST_FILES} files` });
    }
  };
  await walk("", 0);
  return found;
};

/** The page's files by their path below its directory; throws `no-page` where there is none. */
export const readPageFiles = async (root: string): Promise<ReadonlyMap<string, PageFile>> => {
  const tree = await readTree(root).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? new SlipwayError("no-page", {}, error) : error;
  });
  if (!tree.has("index.html")) throw new SlipwayError("no-page");
  const files = new Map<string, PageFile>();
  for (const [name, body] of tree) {
    const type = typeOf(name);
    if (type === undefined) continue;
    files.set(name, {
      type,
      body,
      gzip: tree.get(`${name}.gz`),
      etag: createHash("sha256").update(body).digest("base64url").slice(0, 22),
      isHashed: HASHED.test(name),
    });
  }
  return files;
};
