// Cuts a text into parts with about the same number of lines: 1.txt, 2.txt, …
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [file, directory, count] = process.argv.slice(2);
const lines = readFileSync(file, "utf8").trimEnd().split("\n");
const parts = Number(count);
for (let i = 0; i < parts; i += 1) {
  const part = lines.slice(Math.floor((i * lines.length) / parts), Math.floor(((i + 1) * lines.length) / parts));
  writeFileSync(join(directory, `${i + 1}.txt`), `${part.join("\n")}\n`);
}
