// Prints the amplitudes as a table, damping down and frequency across, and writes table.csv.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const directory = process.argv[2];
const points = readdirSync(join(directory, "points")).map((name) =>
  JSON.parse(readFileSync(join(directory, "points", name), "utf8")),
);
const distinct = (key) => [...new Set(points.map((point) => point[key]))].toSorted((a, b) => a - b);
const [dampings, frequencies] = [distinct("damping"), distinct("frequency")];
const at = (damping, frequency) =>
  points.find((point) => point.damping === damping && point.frequency === frequency)?.amplitude;

const csv = points
  .toSorted((a, b) => a.damping - b.damping || a.frequency - b.frequency)
  .map(({ damping, frequency, amplitude }) => `${damping},${frequency},${amplitude.toFixed(6)}`);
writeFileSync(join(directory, "table.csv"), `damping,frequency,amplitude\n${csv.join("\n")}\n`);

const line = (first, rest) => `${first.padStart(8)} |${rest.map((text) => text.padStart(7)).join("")}`;
console.log(
  line(
    "damping",
    frequencies.map((frequency) => `f=${frequency}`),
  ),
);
console.log(`${"-".repeat(9)}+${"-".repeat(7 * frequencies.length)}`);
for (const damping of dampings)
  console.log(
    line(
      String(damping),
      frequencies.map((frequency) => at(damping, frequency)?.toFixed(3) ?? "?"),
    ),
  );
