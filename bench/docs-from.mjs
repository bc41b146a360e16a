// Writes the section of docs/performance.md and the drawings from a file of results that was measured elsewhere; with
// --baseline also bench/baseline.json: node bench/docs-from.mjs FILE.json [--baseline]
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { BASELINE, writeBaseline } from "./baseline.mjs";
import { writeSection } from "./docs-section.mjs";

const [file, more] = process.argv.slice(2);
if (file === undefined || (more !== undefined && more !== "--baseline")) {
  console.error("usage: node bench/docs-from.mjs FILE.json [--baseline]");
  process.exit(2);
}
const results = JSON.parse(readFileSync(file, "utf8"));
const written = writeSection(results);
if (more !== undefined) {
  writeBaseline(results);
  written.push(BASELINE);
}
for (const path of written) console.log(`wrote ${relative(process.cwd(), path)}`);
