// Throws darts at the unit square and prints how many hit the quarter circle.
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { seed: { type: "string" }, points: { type: "string" } } });
const seed = Number(values.seed);
const points = Number(values.points);

// A stand-in for the failures of real programs: this seed's first attempt fails.
if (seed % 100 === 0 && process.env["SLIPWAY_ATTEMPT"] === "1") {
  console.error(`seed ${seed}: the first attempt always fails`);
  process.exit(1);
}

/** Numbers in [0, 1), the same for the same seed (the generator sfc32). */
const createRandom = (start) => {
  let [a, b, c, d] = [0x9e3779b9, 0x243f6a88, 0xb7e15162, start | 0];
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  };
  for (let i = 0; i < 20; i += 1) next();
  return next;
};

const random = createRandom(seed);
let hits = 0;
for (let i = 0; i < points; i += 1) {
  const x = random();
  const y = random();
  if (x * x + y * y < 1) hits += 1;
}
console.log(JSON.stringify({ seed, points, hits }));
