// Where each read fits the reference best: its offset, a tab, and the read.
import { readFileSync } from "node:fs";

const [reference, reads] = process.argv.slice(2).map((file) => readFileSync(file, "utf8").trim());

const differences = (read, offset) => [...read].filter((base, i) => base !== reference[offset + i]).length;

for (const read of reads.split("\n")) {
  let best = 0;
  for (let offset = 1; offset <= reference.length - read.length; offset += 1)
    if (differences(read, offset) < differences(read, best)) best = offset;
  console.log(`${best}\t${read}`);
}
