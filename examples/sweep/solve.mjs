// Integrates x'' + 2 d x' + x = cos(f t) from rest until it has settled, and prints the amplitude it settles at.
const [damping, frequency, steps] = process.argv.slice(2).map(Number);
if (!(damping > 0) || !(frequency > 0) || !(steps > 0)) {
  console.error("usage: solve.mjs DAMPING FREQUENCY STEPS-PER-PERIOD, all more than 0");
  process.exit(2);
}

const force = (t, x, v) => Math.cos(frequency * t) - 2 * damping * v - x;
const period = (2 * Math.PI) / frequency;
const step = period / steps;
// The transient decays with exp(-d t): after 20 / d it is far below the printed precision.
const settling = Math.ceil(20 / damping / period);

let [t, x, v, amplitude] = [0, 0, 0, 0];
for (let i = 0; i < (settling + 1) * steps; i += 1) {
  const [k1, l1] = [v, force(t, x, v)];
  const [k2, l2] = [v + (step / 2) * l1, force(t + step / 2, x + (step / 2) * k1, v + (step / 2) * l1)];
  const [k3, l3] = [v + (step / 2) * l2, force(t + step / 2, x + (step / 2) * k2, v + (step / 2) * l2)];
  const [k4, l4] = [v + step * l3, force(t + step, x + step * k3, v + step * l3)];
  x += (step / 6) * (k1 + 2 * k2 + 2 * k3 + k4);
  v += (step / 6) * (l1 + 2 * l2 + 2 * l3 + l4);
  t += step;
  if (i >= settling * steps) amplitude = Math.max(amplitude, Math.abs(x));
}
console.log(JSON.stringify({ damping, frequency, amplitude }));
