// Claim: on a real workload manager a pilot works within a second of its start, and however many pilots there are, the
// server asks the manager once per period about all of them, and its history once about all that the manager has
// forgotten.
import { setTimeout as sleep } from "node:timers/promises";
import { environment } from "../commands.mjs";
import { countCommands } from "../counted-commands.mjs";
import { cpuOf } from "../cpu-time.mjs";
import { alternate } from "../rounds.mjs";
import { Broken, checkRun, checkSample } from "../sample.mjs";
import { connectTo, runThrough } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";
import { openSlurm } from "../slurm.mjs";

/** Besides squeue. */
const OTHERS = ["sacct", "sbatch", "scancel", "sinfo", "scontrol"];
/** The fleet's default, in seconds; this is what we measure. */
const PERIOD = 5;
const MOST_WAIT_MS = 120_000;
const one = { name: "first", cwd: "/", environment: {}, tasks: [{ run: ["/bin/true"] }] };

const clustersOf = (slurm, fleet) => `default: hpc
clusters:
  hpc:
    type: slurm
    config: ${slurm.config}
    queues:
      small: { partition: batch, nodes: 1, cores: 1, memory: 100M, walltime: 1h, fleet: ${JSON.stringify(fleet)} }
`;

const until = async (what, check) => {
  for (const begun = performance.now(); ; await sleep(50)) {
    const answer = await check();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() - begun > MOST_WAIT_MS) throw new Broken(`waited ${MOST_WAIT_MS / 1000} s for ${what}`);
  }
};

/** Seconds for a first task: from its pilot's start by Slurm to its own, and from submit to result. */
const measureStart = async (options, slurm) => {
  const slipway = await openSlipway({ ...options, clusters: clustersOf(slurm, { min: 0, max: 1 }) });
  const client = await connectTo(slipway);
  try {
    const { run, ms } = await runThrough(client, one);
    checkRun(run, 1);
    await checkSample(slipway, run, { size: 1 });
    const [pilot] = await client.pilots();
    const { answer } = await slipway.ask("show", `${run.id}.${run.numbering.start}`);
    const startedAt = await slurm.startOf(pilot.nativeId);
    if (startedAt === undefined) throw new Broken(`Slurm's prolog has not told of job ${pilot.nativeId}`);
    return { start: (Date.parse(answer.attempts[0].started) - startedAt) / 1000, whole: ms / 1000 };
  } finally {
    client.close();
    await slipway.close();
  }
};

/** What the server calls in successive periods, and the CPU time that it uses. */
const measurePeriods = async (server, commands, periodMs, periods) => {
  // counted from between two listings, so that each falls in the middle of its period
  const from = Date.now();
  await until("a listing", async () => (await commands.calls()).squeue.some((at) => at > from));
  await sleep(periodMs / 2);
  const measured = [];
  for (let i = 0; i < periods; i++) {
    const [begun, cpu] = [Date.now(), cpuOf(server).own];
    await sleep(periodMs);
    const ended = Date.now();
    measured.push({
      ...(await commands.count(begun, ended)),
      cpu: ((cpuOf(server).own - cpu) * 1000) / (ended - begun),
    });
  }
  return measured;
};

/**
 * What the server calls in the period in which it learns that these jobs have ended, after Slurm has forgotten them.
 */
const measureForgotten = async (slipway, client, slurm, commands, periodMs, pilots) => {
  const jobs = pilots.map(({ nativeId }) => nativeId);
  // it must not look before they are forgotten
  process.kill(slipway.server, "SIGSTOP");
  let from;
  try {
    await slurm.run(["scancel", ...jobs]);
    await until("Slurm to forget jobs", async () => {
      const { stdout } = await slurm.run(["squeue", "--noheader", "--states=all", "--format=%A"]);
      return !stdout.split("\n").some((id) => jobs.includes(id));
    });
  } finally {
    from = Date.now();
    process.kill(slipway.server, "SIGCONT");
  }
  await sleep(periodMs * 0.9);
  const counts = await commands.count(from, Date.now());
  const ended = (await client.pilots()).filter(({ nativeId, ended }) => jobs.includes(nativeId) && ended !== null);
  if (ended.length < jobs.length)
    throw new Broken(`the server knows the end of ${ended.length} of ${jobs.length} jobs`);
  return counts;
};

/** A server with more and more pilots: what it calls at each number of them, and then when they are forgotten. */
const measureCalls = async (options, slurm, { counts, period, rounds, say }) => {
  const commands = await countCommands(slurm.directory, ["squeue", ...OTHERS]);
  // with their agents they stay until they are ended here, and no others replace them
  const fleet = { strategy: "none", init: counts[0], max: counts.at(-1), idle: "1h", period };
  const slipway = await openSlipway({
    ...options,
    clusters: clustersOf(slurm, fleet),
    env: { PATH: `${commands.bin}:${environment["PATH"]}` },
  });
  const client = await connectTo(slipway);
  try {
    const periodMs = period * 1000;
    const connected = async () =>
      (await client.pilots()).filter(({ agents }) => agents.some(({ state }) => state === "connected"));
    const kept = new Map();
    for (const [i, pilots] of counts.entries()) {
      if (i > 0) await client.addPilots({ count: pilots - counts[i - 1] });
      await until(`${pilots} pilots`, async () => (await connected()).length === pilots);
      const calls = await measurePeriods(slipway.server, commands, periodMs, rounds);
      kept.set(pilots, calls);
      say(`${pilots} pilots: listings in a period: ${calls.map(({ squeue }) => squeue).join(", ")}`);
    }
    const forgotten = [];
    const living = await connected();
    const share = Math.floor(living.length / rounds);
    for (let i = 0; slurm.withoutHistory === undefined && i < rounds; i++)
      forgotten.push(
        await measureForgotten(slipway, client, slurm, commands, periodMs, living.slice(i * share, (i + 1) * share)),
      );
    if (forgotten.length > 0)
      say(`${share} forgotten: history queries in a period: ${forgotten.map(({ sacct }) => sacct).join(", ")}`);
    return { kept, forgotten, share };
  } finally {
    client.close();
    await slipway.close();
  }
};

export const measurePilotsOnSlurm = async (options, say) => {
  const counts = options.sized([1, 10, 40], [1, 10], [1, 2]);
  // a period is one round of counting, and the last pilots are divided among the rounds
  const rounds = Math.min(options.rounds, counts.at(-1));
  const period = options.sized(PERIOD, PERIOD, 1);
  const slurm = await openSlurm({ cpus: counts.at(-1), accounting: options.size !== "smoke" });
  try {
    const starting = {
      key: "start",
      label: "a first task",
      text: ({ start, whole }) => `${start.toFixed(2)} s after its pilot's start, ${whole.toFixed(2)} s in all`,
      measure: () => measureStart(options, slurm),
    };
    const { values } = await alternate([starting], options.rounds, say);
    const calls = await measureCalls(options, slurm, { counts, period, rounds, say });
    return describe(values.get("start"), calls, { counts, period, slurm });
  } finally {
    await slurm.close();
  }
};

const describe = (starts, { kept, forgotten, share }, { counts, period, slurm }) => {
  const largest = counts.at(-1);
  const part = (key, label, values) => ({ key, role: "part", label, values });
  const listed = (pilots) => kept.get(pilots).map(({ squeue }) => squeue);
  const others = kept.get(largest).map((calls) => OTHERS.reduce((total, name) => total + calls[name], 0));
  const unit = "calls a period";
  const shared = { better: "less", skipped: {} };
  return [
    {
      ...shared,
      name: "pilot-start-slurm",
      title: "from a pilot's start by Slurm to the start of its first task",
      unit: "s",
      ours: starts.map(({ start }) => start),
      others: [
        part(
          "whole",
          "from submit to result, Slurm's own decision included",
          starts.map(({ whole }) => whole),
        ),
      ],
      wanted: [{ atMost: 1 }],
    },
    {
      ...shared,
      name: "listings-slurm",
      title: `how often Slurm is asked about ${largest} pilots (squeue) in a period of the fleet, ${period} s`,
      unit,
      ours: listed(largest),
      others: [
        ...counts.slice(0, -1).map((pilots) => part(String(pilots), `with ${pilots}`, listed(pilots))),
        part("others", `all other commands of Slurm, with ${largest}`, others),
        part(
          "cpu",
          `the server's CPU time with ${largest}, ms/s`,
          kept.get(largest).map(({ cpu }) => cpu),
        ),
      ],
      skipped: slurm.withoutHistory === undefined ? {} : { "history-slurm": slurm.withoutHistory },
      wanted: [{ atMost: 1 }],
    },
    ...(forgotten.length === 0
      ? []
      : [
          {
            ...shared,
            name: "history-slurm",
            title: `how often Slurm's history is asked (sacct) when ${share} pilots at once have ended and are forgotten`,
            unit,
            ours: forgotten.map(({ sacct }) => sacct),
            others: [
              part(
                "listings",
                "listings meanwhile",
                forgotten.map(({ squeue }) => squeue),
              ),
            ],
            wanted: [{ atMost: 1 }],
          },
        ]),
  ];
};
