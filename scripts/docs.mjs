// Writes the documents that are generated from the code: docs/errors.md, docs/cli.md, docs/api.md and the table of
// rules in docs/architecture.md. `--check` writes nothing and fails if one of them is out of date.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiPage } from "./docs-api.mjs";
import { cliPage } from "./docs-cli.mjs";
import { errorsPage } from "./docs-errors.mjs";
import { withRules } from "./docs-rules.mjs";
import { root } from "./test-results.mjs";

const PAGES = [
  ["docs/errors.md", errorsPage],
  ["docs/cli.md", cliPage],
  ["docs/api.md", apiPage],
  ["docs/architecture.md", withRules],
];

const read = (path) => (existsSync(path) ? readFileSync(path, "utf8") : "");

const checking = process.argv.includes("--check");
const made = await Promise.all(PAGES.map(async ([name, make]) => [name, await make(read(join(root, name)))]));
for (const [name, text] of made) {
  if (text === undefined || text === read(join(root, name))) continue;
  if (checking) {
    console.error(`${name} is not up to date: npm run docs writes it`);
    process.exitCode = 1;
  } else {
    writeFileSync(join(root, name), text);
    console.log(`wrote ${name}`);
  }
}
