// Claim: a node with many cores is used as well as one with few. `slipway run -- /bin/true` on 1, 2, 4 … all cores of
// this machine (taskset, for everything that belongs to it), each beside a C loop of the same width, one posix_spawn at a
// time in each of its processes. With all cores, what a directory made per task costs the C loop, and peers.
import { availableParallelism } from "node:os";
import { findProgram } from "../commands.mjs";
import { compileLimits } from "../limits.mjs";
import { secondsInside } from "../null-run.mjs";
import { pythonPeer, PYTHON_PEERS, xargs } from "../peers.mjs";
import { alternate } from "../rounds.mjs";
import { checkRun, checkSample } from "../sample.mjs";
import { mainThreadOf } from "../cpu-time.mjs";
import { cpuNow, cpuPerTask, openSlipway } from "../slipway.mjs";
import { ratios, summary } from "../statistics.mjs";

const rateText = ({ rate }) => `${Math.round(rate)} tasks/s`;
const named = (cores) => `${cores} core${cores === 1 ? "" : "s"}`;

/** 1, 2, 4 … and all. Without taskset, all. */
const widths = () => {
  const all = availableParallelism();
  const some = Array.from({ length: 16 }, (_, i) => 2 ** i).filter((cores) => cores < all);
  return findProgram("taskset") === undefined ? [all] : [...some, all];
};

/** A server of its own, on so many cores. */
const ours = (slipway, cores, count) => ({
  key: `ours-${cores}`,
  label: `slipway run -- /bin/true on ${named(cores)}`,
  text: (value) => `${rateText(value)}, the agent's loop ${value.loop.toFixed(1)} µs a task`,
  measure: async () => {
    await slipway.ask("run", "--array", `1-${Math.min(count, 150 * cores)}`, "--", "/bin/true");
    const processes = await slipway.processes();
    const [before, loop] = [cpuNow(processes), mainThreadOf(processes.agent)];
    const { answer: run, seconds } = await slipway.ask("run", "--array", `1-${count}`, "--", "/bin/true");
    const used = (mainThreadOf(processes.agent) - loop) / count;
    const cpu = cpuPerTask(before, cpuNow(processes), count);
    checkRun(run, count);
    await checkSample(slipway, run, { size: 2 });
    return { rate: count / secondsInside(run), typed: count / seconds, loop: used, cpu };
  },
});

const limit = (key, label, optional, measure) => ({
  key,
  label,
  text: rateText,
  optional,
  measure: async () => ({ rate: await measure() }),
});

/** Slow ones: a few tasks show the rate. */
const SHARE = 0.2;

const peers = (cores, count, options) => [
  limit(`xargs-${cores}`, `xargs -P${cores} on ${named(cores)}`, true, () =>
    xargs(Math.ceil(count * SHARE), cores, cores),
  ),
  ...PYTHON_PEERS.map(({ key, label }) => ({
    key: `${key}-${cores}`,
    label: `${label} on ${named(cores)}`,
    text: rateText,
    optional: true,
    measure: () => pythonPeer(key, Math.ceil(count * 0.1), cores, options, cores),
  })),
];

export const measureProcessCores = async (options, say) => {
  const all = widths();
  const most = all.at(-1);
  const perCore = options.sized(1500, 200, 4);
  // what a run costs once must not weigh more on few cores
  const countFor = (cores) => Math.max(perCore * cores, options.sized(6000, 800, 4));
  const limits = await compileLimits();
  const open = new Map();
  try {
    for (const cores of all) open.set(cores, await openSlipway({ ...options, cores }));
    const optional = !limits.available;
    const contenders = all.flatMap((cores) => [
      ours(open.get(cores), cores, countFor(cores)),
      limit(`bare-${cores}`, `C: posix_spawn alone on ${named(cores)}`, optional, () =>
        limits.wide(countFor(cores), cores, { cores }),
      ),
      ...peers(cores, perCore * cores, options),
    ]);
    for (const [parents, words] of [
      ["one", "a directory per task, all in one"],
      ["own", "a directory per task, each process in its own"],
    ])
      contenders.push(
        limit(`mkdir-${parents}`, `C: posix_spawn and ${words}, on ${named(most)}`, optional, () =>
          limits.wide(countFor(most), most, { parents }),
        ),
      );
    const { values, skipped } = await alternate(contenders, options.rounds, say);
    const rates = (key) => values.get(key)?.map(({ rate }) => rate);
    const full = values.get(`ours-${most}`);
    const other = (key, role, label = contenders.find((each) => each.key === key).label) =>
      values.has(key) ? [{ key, role, label, values: rates(key) }] : [];
    const bare = (cores) =>
      values.has(`bare-${cores}`) ? ratios(rates(`ours-${cores}`), rates(`bare-${cores}`)) : null;
    const narrower = all.slice(0, -1);
    const peerKeys = ["xargs", ...PYTHON_PEERS.map(({ key }) => key)];
    const curves = [
      { name: "Slipway", points: all.filter((cores) => bare(cores)).map((cores) => [cores, bare(cores).median]) },
      ...peerKeys.map((key) => ({
        name: key === "xargs" ? "xargs -P" : PYTHON_PEERS.find((peer) => peer.key === key).label,
        points: all
          .filter((cores) => values.has(`${key}-${cores}`) && values.has(`bare-${cores}`))
          .map((cores) => [cores, ratios(rates(`${key}-${cores}`), rates(`bare-${cores}`)).median]),
      })),
    ].filter(({ points }) => points.length > 0);
    const cpu = Object.fromEntries(
      Object.keys(full[0].cpu).map((key) => [key, summary(full.map((value) => value.cpu[key]))]),
    );
    const wanted = most >= 8 ? 0.7 : 0.8;
    return [
      {
        name: "process-cores",
        title: `${countFor(most)} × /bin/true on ${named(most)} and on fewer; TMPDIR where it is by default`,
        unit: "tasks/s",
        better: "more",
        limit: values.has(`bare-${most}`) ? `bare-${most}` : undefined,
        ours: full.map(({ rate }) => rate),
        others: [
          ...other(`bare-${most}`, "limit"),
          ...peerKeys.flatMap((key) => other(`${key}-${most}`, "peer")),
          ...other("mkdir-one", "also"),
          ...other("mkdir-own", "also"),
          ...narrower.flatMap((cores) => [
            ...other(`ours-${cores}`, "part", `Slipway on ${named(cores)}`),
            ...other(`bare-${cores}`, "part"),
            ...peerKeys.flatMap((key) => other(`${key}-${cores}`, "part")),
          ]),
        ],
        wanted: [{ of: `bare-${most}`, atLeast: wanted }],
        skipped,
        cpu: { ...cpu, "of the agent, its loop": summary(full.map(({ loop }) => loop)) },
        curves,
      },
      {
        name: "process-cores-typed",
        title: "the same on all cores, the whole command as typed",
        unit: "tasks/s",
        better: "more",
        ours: full.map(({ typed }) => typed),
        others: other(`bare-${most}`, "limit"),
        limit: values.has(`bare-${most}`) ? `bare-${most}` : undefined,
        wanted: [{ of: `bare-${most}`, atLeast: 0.75 }],
        skipped: {},
      },
    ];
  } finally {
    for (const slipway of open.values()) await slipway.close();
    await limits.close();
  }
};
