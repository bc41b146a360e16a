// Packs the page's files for browsers: beside each file of text lies one with gzip, which the server sends as it is.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const TEXT = /\.(html|js|css|json|svg|txt|webmanifest)$/;
/** Less is not worth it. */
const LEAST_BYTES = 512;

/** Packs all files below a directory; the answer is what all of them weigh as they are sent. */
export const packPage = (directory) => {
  let sent = 0;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) sent += packPage(path);
    if (!entry.isFile() || entry.name.endsWith(".gz")) continue;
    const body = readFileSync(path);
    const packed = TEXT.test(entry.name) && body.length >= LEAST_BYTES ? gzipSync(body, { level: 9 }) : undefined;
    if (packed !== undefined) writeFileSync(`${path}.gz`, packed);
    sent += (packed ?? body).length;
  }
  return sent;
};
