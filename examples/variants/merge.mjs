// All samples in one table: a line for each position at which one of them differs, and which do.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [list, directory] = process.argv.slice(2);
const linesOf = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean);

const carriers = new Map();
for (const sample of linesOf(list)) {
  const file = join(directory, `${sample}.calls`);
  if (!existsSync(file)) console.log(`${sample} is missing`);
  else for (const call of linesOf(file)) carriers.set(call, [...(carriers.get(call) ?? []), sample]);
}
const table = [...carriers]
  .map(([call, samples]) => ({ position: Number(call.split(" ")[0]), text: `${call}: ${samples.join(", ")}` }))
  .sort((a, b) => a.position - b.position)
  .map(({ text }) => `${text}\n`)
  .join("");
writeFileSync(join(directory, "table.txt"), table);
process.stdout.write(table);
