// Adds up the counts of all parts and prints the most frequent words, and the longest one.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [directory, count] = process.argv.slice(2);
const totals = new Map();
let longest = "";
for (let part = 1; part <= Number(count); part += 1) {
  for (const line of readFileSync(join(directory, "counts", `${part}.txt`), "utf8")
    .trimEnd()
    .split("\n")) {
    const [times, word] = line.trim().split(/\s+/);
    totals.set(word, (totals.get(word) ?? 0) + Number(times));
  }
  const [, word] = readFileSync(join(directory, "longest", `${part}.txt`), "utf8")
    .trim()
    .split(" ");
  if (word.length > longest.length) longest = word;
}
const words = [...totals].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
writeFileSync(join(directory, "words.txt"), words.map(([word, times]) => `${times} ${word}\n`).join(""));
const all = words.reduce((sum, [, times]) => sum + times, 0);
console.log(`${all} words, ${words.length} different ones; the longest is "${longest}"`);
for (const [word, times] of words.slice(0, 10)) console.log(`${String(times).padStart(4)} ${word}`);
