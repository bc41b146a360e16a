// Claim: the range that is shown for the end of a run holds the truth in 80 % of runs. Simulated runs, drawn from fixed
// seeds, step the shipped core and scheduler; each is asked once, when a tenth of its work is done. The estimate was
// calibrated on the seeds from 1 (TUNED_ON of them); it is judged on others, which nothing was tuned on.
import { loadSource } from "../../scripts/load-source.mjs";

const SOURCE = `export { ask } from "./bench/eta/coverage.ts";`;

const TUNED_ON = 3000;
const FIRST_HELD_OUT = 1_000_001;
const RUNS = { full: 1000, quick: 100, smoke: 5 };

const percent = (part, all) => (all.length === 0 ? 0 : (100 * part.length) / all.length);
const isInside = ({ truth, estimate }) => truth >= estimate.p10 && truth <= estimate.p90;
/** How far off, as people say it: 25 % for 4 instead of 5 and for 5 instead of 4. */
const medianError = (asked, of) => {
  const errors = asked.map((each) => Math.abs(Math.log(Math.max(1, of(each)) / each.truth))).sort((a, b) => a - b);
  return 100 * (Math.exp(errors[errors.length >> 1]) - 1);
};

const part = (key, label, values) => ({ key, label, role: "part", values });

const KINDS = [
  ["array", "one array"],
  ["stages", "arrays one after the other"],
  ["fork-join", "forks and joins"],
  ["layers", "layers of single tasks"],
  ["pipelines", "pipelines beside each other"],
  ["mixed", "single tasks and arrays, mixed"],
];

export const measureEta = async (options, say) => {
  const { ask } = await loadSource(SOURCE);
  const runs = RUNS[options.size];
  const asked = [];
  for (let i = 0; i < runs; i++) {
    asked.push(ask(FIRST_HELD_OUT + i));
    if ((i + 1) % 100 === 0) say(`${i + 1} of ${runs} runs`);
  }
  const inside = (name, list) => `${name}: ${list.length} runs`;
  const parts = [
    ...KINDS.map(([family, label]) => [family, label, asked.filter((each) => each.family === family)]),
    ["first", "nothing of the kind ran before", asked.filter(({ earlier }) => earlier === 0)],
    ["again", "the same ran one to three times before", asked.filter(({ earlier }) => earlier > 0)],
  ];
  const wanted = options.size === "full" ? [{ atLeast: 77 }, { atMost: 83 }] : [];
  return [
    {
      name: "eta",
      title: `does p10 to p90, asked at a tenth of the work, hold the end? ${runs} simulated runs, seeds from ${FIRST_HELD_OUT} (tuned on 1 to ${TUNED_ON})`,
      unit: "% inside",
      better: "more",
      ours: [percent(asked.filter(isInside), asked)],
      others: [
        part("before", "ended before p10", [
          percent(
            asked.filter(({ truth, estimate: { p10 } }) => truth < p10),
            asked,
          ),
        ]),
        part("after", "ended after p90", [
          percent(
            asked.filter(({ truth, estimate: { p90 } }) => truth > p90),
            asked,
          ),
        ]),
        ...parts.map(([key, label, list]) => part(key, inside(label, list), [percent(list.filter(isInside), list)])),
      ],
      wanted,
      skipped: {},
      simulated: true,
    },
    {
      name: "eta-error",
      title: "how far p50 is off, at the median of the same runs",
      unit: "%",
      better: "less",
      ours: [medianError(asked, ({ estimate: { p50 } }) => p50)],
      others: [
        {
          key: "linear",
          label: "the time so far over the share of tasks so far",
          role: "peer",
          values: [medianError(asked, ({ linear }) => linear)],
        },
        ...parts.map(([key, label, list]) =>
          part(key, inside(label, list), [list.length === 0 ? 0 : medianError(list, ({ estimate: { p50 } }) => p50)]),
        ),
      ],
      wanted: options.size === "full" ? [{ of: "linear", atMost: 1 }] : [],
      skipped: {},
      simulated: true,
    },
  ];
};
