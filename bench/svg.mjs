// A small chart of curves over logarithmic axes, as SVG text that reads on light and dark pages.

const WIDTH = 720;
const HEIGHT = 400;
const LEFT = 64;
const RIGHT = 170;
const TOP = 44;
const BOTTOM = 48;
const COLOURS = ["#0969da", "#bf8700", "#1a7f37", "#8250df", "#cf222e", "#57606a"];

const escaped = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Powers of ten that enclose all values. */
const decades = (values) => {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
};

const label = (value) => (value >= 1 ? value.toLocaleString("en") : String(Number(value.toPrecision(1))));

/** `curves`: [{ name, points: [[x, y], …] }] with all values above 0. The axes end with their first and last ticks. */
export const chart = ({ title, x: xTitle, y: yTitle, curves, xTicks, yTicks }) => {
  const points = curves.flatMap((curve) => curve.points);
  const xs = xTicks ?? decades(points.map(([x]) => x));
  const ys = yTicks ?? decades(points.map(([, y]) => y));
  const scale = (ticks, from, to) => (value) => {
    const [low, high] = [Math.log10(ticks[0]), Math.log10(ticks.at(-1))];
    return Number((from + ((Math.log10(value) - low) / (high - low)) * (to - from)).toFixed(1));
  };
  const x = scale(xs, LEFT, WIDTH - RIGHT);
  const y = scale(ys, HEIGHT - BOTTOM, TOP);
  const text = (at, size, anchor, words, more = "") =>
    `<text x="${at[0]}" y="${at[1]}" font-size="${size}" text-anchor="${anchor}" ${more}>${escaped(words)}</text>`;
  const grid = [
    ...xs.map((value) => `<path d="M${x(value)} ${TOP}V${HEIGHT - BOTTOM}" class="grid"/>`),
    ...ys.map((value) => `<path d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}" class="grid"/>`),
    ...xs.map((value) => text([x(value), HEIGHT - BOTTOM + 18], 12, "middle", label(value))),
    ...ys.map((value) => text([LEFT - 8, y(value) + 4], 12, "end", label(value))),
  ];
  const drawn = curves.flatMap(({ name, points: own }, i) => {
    const colour = COLOURS[i % COLOURS.length];
    const path = own.map(([px, py], n) => `${n === 0 ? "M" : "L"}${x(px)} ${y(py)}`).join("");
    return [
      `<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...own.map(([px, py]) => `<circle cx="${x(px)}" cy="${y(py)}" r="3.5" fill="${colour}"/>`),
      `<rect x="${WIDTH - RIGHT + 16}" y="${TOP + i * 22}" width="12" height="12" fill="${colour}"/>`,
      text([WIDTH - RIGHT + 34, TOP + 10 + i * 22], 12, "start", name),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" font-family="sans-serif">`,
    `<title>${escaped(title)}</title>`,
    "<style>text{fill:#57606a}.grid{stroke:#8c959f;stroke-opacity:.35;fill:none}@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>",
    text([LEFT, 24], 15, "start", title),
    ...grid,
    text([(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10], 12, "middle", xTitle),
    text(
      [16, (TOP + HEIGHT - BOTTOM) / 2],
      12,
      "middle",
      yTitle,
      `transform="rotate(-90 16 ${(TOP + HEIGHT - BOTTOM) / 2})"`,
    ),
    ...drawn,
    "</svg>",
    "",
  ].join("\n");
};
