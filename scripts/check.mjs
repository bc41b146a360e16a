// `npm run check`: types, lint (with the layers between rooms), format, unit tests, and documents that are generated. All run,
// then the failures are shown.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const bin = (name) => join(root, "node_modules", ".bin", name);

const CHECKS = [
  ["types", bin("tsc"), "-p", "."],
  ["types of the page", bin("tsc"), "-p", "dashboard"],
  ["lint and layers", bin("oxlint"), "--deny-warnings"],
  ["format", bin("oxfmt"), "--check"],
  ["documents", process.execPath, join(root, "scripts", "docs.mjs"), "--check"],
  ["unit tests", bin("vitest"), "run", "--project", "unit", "--reporter=dot"],
  ["what works", process.execPath, join(root, "scripts", "what-works.mjs"), "--check"],
];

const check = ([name, command, ...args]) =>
  new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (output += data));
    child.on("error", (error) => resolve({ name, passed: false, output: error.message }));
    child.on("close", (status) => resolve({ name, passed: status === 0, output }));
  });

const results = await Promise.all(CHECKS.map(check));
for (const { name, passed, output } of results) if (!passed) console.error(`--- ${name}\n${output.trimEnd()}\n`);
for (const { name, passed } of results) console.log(`${passed ? "ok    " : "FAILED"} ${name}`);
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
