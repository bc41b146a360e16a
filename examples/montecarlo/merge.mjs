// Adds up the samples and prints the estimate with its expected error.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [directory, count] = [process.argv[2], Number(process.argv[3])];
let [points, hits] = [0, 0];
for (let seed = 1; seed <= count; seed += 1) {
  const sample = JSON.parse(readFileSync(join(directory, `${seed}.json`), "utf8"));
  if (sample.seed !== seed) throw new Error(`${seed}.json holds the sample of seed ${sample.seed}`);
  points += sample.points;
  hits += sample.hits;
}
const share = hits / points;
const pi = 4 * share;
const expected = 4 * Math.sqrt((share * (1 - share)) / points);
writeFileSync(
  join(dirname(directory), "pi.json"),
  `${JSON.stringify({ pi, expected, points, hits, samples: count })}\n`,
);
console.log(`pi is about ${pi.toFixed(5)}, give or take ${expected.toFixed(5)}`);
console.log(`${points.toLocaleString("en")} points in ${count} samples; off by ${Math.abs(pi - Math.PI).toFixed(5)}`);
