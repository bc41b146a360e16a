// Positions at which most aligned reads differ from the reference: position, base there, base in the reads.
import { readFileSync } from "node:fs";

const [reference, aligned] = process.argv.slice(2).map((file) => readFileSync(file, "utf8").trim());

const seen = Array.from(reference, () => ({}));
for (const line of aligned.split("\n")) {
  const [offset, read] = line.split("\t");
  for (const [i, base] of [...read].entries()) {
    const there = seen[Number(offset) + i];
    there[base] = (there[base] ?? 0) + 1;
  }
}
for (const [position, bases] of seen.entries()) {
  const [most] = Object.entries(bases).sort(([, a], [, b]) => b - a);
  if (most !== undefined && most[0] !== reference[position])
    console.log(`${position} ${reference[position]} ${most[0]}`);
}
