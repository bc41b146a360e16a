// Writes the section of docs/performance.md and the drawings from a file of results that was measured elsewhere:
// node bench/docs-from.mjs FILE.json
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { writeSection } from "./docs-section.mjs";

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error("usage: node bench/docs-from.mjs FILE.json");
  process.exit(2);
}
for (const written of writeSection(JSON.parse(readFileSync(file, "utf8"))))
  console.log(`wrote ${relative(process.cwd(), written)}`);
