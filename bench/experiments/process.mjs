// Claim: starting processes costs Slipway little more than it costs the machine. `slipway run --array 1-N -- /bin/true`
// on a warm server, compared with C loops, xargs -P, GNU parallel and other task runners.
import { availableParallelism } from "node:os";
import { alternate, bestOf } from "../rounds.mjs";
import { checkRun, checkSample } from "../sample.mjs";
import { cpuNow, cpuPerTask, openSlipway } from "../slipway.mjs";
import { compileLimits } from "../limits.mjs";
import { gnuParallel, PARALLEL_SHARE, prepareParallel, pythonPeer, PYTHON_PEERS, xargs } from "../peers.mjs";
import { secondsInside } from "../null-run.mjs";
import { summary } from "../statistics.mjs";

/** Before each measurement, so that the pilot is up and warm however long the peers took. */
const WARM = 300;
const rateText = ({ rate }) => `${Math.round(rate)} tasks/s`;

/** Ours: `echo` instead of `true` shows that output is kept, and what that costs. */
const ourContenders = (slipway, count) => {
  const measured = async (command, options) => {
    await slipway.ask("run", "--array", `1-${Math.min(WARM, count)}`, "--", ...command);
    const processes = await slipway.processes();
    const before = cpuNow(processes);
    const { answer: run, seconds } = await slipway.ask("run", "--array", `1-${count}`, "--", ...command);
    const cpu = cpuPerTask(before, cpuNow(processes), count);
    checkRun(run, count);
    await checkSample(slipway, run, options);
    return { rate: count / secondsInside(run), wall: count / seconds, cpu };
  };
  return [
    {
      key: "slipway",
      label: "slipway run -- /bin/true",
      text: (value) => `${rateText(value)}, ${Math.round(value.wall)} as typed`,
      measure: () => measured(["/bin/true"]),
    },
    {
      key: "slipway-echo",
      label: "slipway run -- /bin/echo {item}",
      text: rateText,
      measure: () => measured(["/bin/echo", "{item}"], { output: (index) => `${index}\n` }),
    },
  ];
};

/** One program in several ways: with as many at a time as there are cores, and twice as many. */
const family = (key, label, role, measure, optional = true) =>
  [1, 2].map((factor) => {
    const at = factor * availableParallelism();
    return {
      key: `${key}-${at}`,
      family: key,
      role,
      label: label(at),
      text: rateText,
      optional,
      measure: async () => ({ rate: await measure(at) }),
    };
  });

/** A slow one runs fewer tasks: the rate is what is compared. */
const fewer = (count, share) => (share === 1 ? "" : ` (${Math.ceil(count * share)} tasks)`);

const pythonContenders = (count, options) =>
  PYTHON_PEERS.map(({ key, label, share }) => ({
    key,
    family: key,
    role: "peer",
    label: `${label}${fewer(count, share)}`,
    text: rateText,
    optional: true,
    measure: () => pythonPeer(key, Math.ceil(count * share), availableParallelism(), options),
  }));

/** The best way of each program, and why others have no numbers. */
const chosen = (contenders, { values, skipped }) => {
  const others = [];
  const absent = {};
  for (const name of new Set(contenders.flatMap(({ family }) => family ?? []))) {
    const ways = contenders.filter((contender) => contender.family === name);
    const measured = ways
      .filter(({ key }) => values.has(key))
      .map((way) => ({ ...way, values: values.get(way.key).map(({ rate }) => rate), raw: values.get(way.key) }));
    if (measured.length === 0) {
      absent[name] = skipped[ways[0].key];
      continue;
    }
    const best = bestOf(measured);
    const version = best.raw[0].version;
    others.push({
      key: name,
      role: best.role,
      label: version === undefined ? best.label : `${best.label} ${version}`,
      values: best.values,
    });
  }
  return { others, absent };
};

/** A share of the C loops' rate; at least as fast as everyone else. */
const wantedOf = (others) => [
  { of: "full", atLeast: 0.85 },
  { of: "bare", atLeast: 0.7 },
  ...others.filter(({ role }) => role === "peer").map(({ key }) => ({ of: key, atLeast: 1 })),
];

export const measureProcesses = async (options, say) => {
  const count = options.sized(10_000, 1000, 20);
  const slipway = await openSlipway(options);
  let limits;
  try {
    limits = await compileLimits();
    let parallelVersion;
    const parallel = async (at) => {
      parallelVersion ??= await prepareParallel(options);
      return gnuParallel(Math.ceil(count * PARALLEL_SHARE), at);
    };
    // A limit that cannot be compiled is skipped; one that fails breaks the experiment.
    const optional = !limits.available;
    const contenders = [
      ...ourContenders(slipway, count),
      ...family(
        "bare",
        (at) => `C: posix_spawn alone, ${at} at a time`,
        "limit",
        (at) => limits.bare(count, at),
        optional,
      ),
      {
        key: "bare-wide",
        family: "bare",
        role: "limit",
        label: `C: posix_spawn alone, in ${availableParallelism()} processes`,
        text: rateText,
        optional,
        measure: async () => ({ rate: await limits.wide(count, availableParallelism()) }),
      },
      ...family(
        "full",
        (at) => `C: with TMPDIR, session, output, ${at} at a time`,
        "limit",
        (at) => limits.full(count, at),
        optional,
      ),
      ...family(
        "xargs",
        (at) => `xargs -P${at}`,
        "peer",
        (at) => xargs(count, at),
      ),
      ...family("parallel", (at) => `GNU parallel -j${at}${fewer(count, PARALLEL_SHARE)}`, "peer", parallel),
      ...pythonContenders(count, options),
    ];
    const measured = await alternate(contenders, options.rounds, say);
    const { others, absent } = chosen(contenders, measured);
    const ours = measured.values.get("slipway");
    const echo = measured.values.get("slipway-echo").map(({ rate }) => rate);
    const printing = { key: "echo", role: "also", label: "slipway run -- /bin/echo {item}", values: echo };
    const cpu = Object.fromEntries(
      Object.keys(ours[0].cpu).map((key) => [key, summary(ours.map((value) => value.cpu[key]))]),
    );
    const shared = { unit: "tasks/s", better: "more", limit: "bare", skipped: absent, wanted: wantedOf(others) };
    return [
      {
        ...shared,
        name: "process",
        title: `${count} × /bin/true, submitted to finished (warm server)`,
        ours: ours.map(({ rate }) => rate),
        others: [...others, printing],
        cpu,
      },
      {
        ...shared,
        name: "process-typed",
        title: `${count} × /bin/true, the whole command as typed, its start and end included`,
        ours: ours.map(({ wall }) => wall),
        others,
      },
    ];
  } finally {
    await slipway.close();
    await limits?.close();
  }
};
