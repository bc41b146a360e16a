// Claim: a Dask cluster that Slipway holds works as soon as one of dask-jobqueue does, and however many workers it has,
// Slurm is asked at most once a period and each job is submitted once.
import { setTimeout as sleep } from "node:timers/promises";
import { countCommands } from "../counted-commands.mjs";
import { findDask, withJobqueue, withSlipway } from "../dask-clusters.mjs";
import { alternate } from "../rounds.mjs";
import { openSlurm } from "../slurm.mjs";

const LISTINGS = ["squeue", "sacct"];
const COMMANDS = [...LISTINGS, "sbatch", "scancel", "sinfo", "scontrol"];
const PERIOD_MS = 5000;
const FEW = 4;

/** Where the time goes: until Slurm is asked for the first job, until that begins, and until the end. */
const parts = async ({ slurm, commands }, { began, seconds }) => {
  const from = began * 1000;
  const asked = (await commands.calls()).sbatch.find((at) => at >= from);
  const begun = await slurm.firstStart(from);
  return {
    seconds,
    asked: (asked - from) / 1000,
    queued: (begun - asked) / 1000,
    worked: seconds - (begun - from) / 1000,
  };
};

/** What is called in successive periods while the workers are there, and what was for each job. */
const countCalls = async ({ commands }, jobs, from, { periods, say, label }) => {
  const until = Date.now();
  const before = await commands.count(from, until);
  const listings = [];
  for (let i = 0; i < periods; i++) {
    const begun = Date.now();
    await sleep(PERIOD_MS);
    const calls = await commands.count(begun, Date.now());
    listings.push(LISTINGS.reduce((total, name) => total + calls[name], 0));
  }
  say(`${label}: ${before.sbatch} submissions for ${jobs} jobs; listings in a period: ${listings.join(", ")}`);
  const growing = LISTINGS.reduce((total, name) => total + before[name], 0) / Math.max(1, (until - from) / PERIOD_MS);
  return { listings, growing, submissions: before.sbatch / jobs };
};

/** `rounds` begin at moments that are spread over a second: dask-jobqueue looks at its work once in each. */
const contenders = (lab, wait, rounds) => {
  const text = ({ seconds, asked, queued, worked }) =>
    `${seconds.toFixed(2)} s (${asked.toFixed(2)} until sbatch, ${queued.toFixed(2)} in Slurm, ${worked.toFixed(2)} after)`;
  const measured = (of) => async (round) => {
    const after = 1 + (round + 0.5) / rounds;
    const found = await of(lab, { wait, jobs: wait === "first" ? 1 : FEW, after });
    lab.version = found.version;
    return parts(lab, found);
  };
  return [
    { key: "ours", label: "Slipway", text, measure: measured(withSlipway) },
    { key: "jobqueue", label: "dask-jobqueue", text, measure: measured(withJobqueue) },
  ];
};

export const measureDask = async (options, say) => {
  const many = options.sized(20, 4, 2);
  const slurm = await openSlurm({ cpus: many + FEW, accounting: false });
  try {
    const python = await findDask(options);
    const commands = await countCommands(slurm.directory, COMMANDS);
    const lab = { slurm, commands, python, dir: options.dir };
    // of each, once before: what is read from disk for the first time belongs to nobody
    for (const { measure } of options.size === "smoke" ? [] : contenders(lab, "first", 1)) await measure(0);
    const times = (wait, what) =>
      alternate(contenders(lab, wait, options.rounds), options.rounds, (text) => say(`${what}: ${text}`));
    const first = await times("first", "first result");
    const four = await times("workers", `${FEW} workers`);
    const calls = {};
    for (const [key, of] of [
      ["ours", withSlipway],
      ["jobqueue", withJobqueue],
    ]) {
      const from = Date.now();
      const counting = { periods: options.rounds, say, label: key === "ours" ? "Slipway" : "dask-jobqueue" };
      const { looked } = await of(lab, { wait: "workers", jobs: many }, () => countCalls(lab, many, from, counting));
      calls[key] = looked;
    }
    return describe(first.values, four.values, calls, { many, version: lab.version });
  } finally {
    await slurm.close();
  }
};

const describe = (first, four, calls, { many, version }) => {
  const peer = `dask-jobqueue ${version}`;
  const shared = { better: "less", skipped: {} };
  const timed = (name, title, values) => {
    const of = (key, what) => values.get(key).map((found) => found[what]);
    const part = (key, what, label) => ({ key: `${key}-${what}`, role: "part", label, values: of(key, what) });
    return {
      ...shared,
      name,
      title,
      unit: "s",
      ours: of("ours", "seconds"),
      others: [
        { key: "jobqueue", role: "peer", label: peer, values: of("jobqueue", "seconds") },
        part("ours", "asked", "Slipway: until the first sbatch"),
        part("ours", "queued", "Slipway: until Slurm begins with its job"),
        part("ours", "worked", "Slipway: from there"),
        part("jobqueue", "asked", "dask-jobqueue: until the first sbatch"),
        part("jobqueue", "queued", "dask-jobqueue: until Slurm begins with its job"),
        part("jobqueue", "worked", "dask-jobqueue: from there"),
      ],
      wanted: [{ of: "jobqueue", atMost: 1 }],
    };
  };
  const counted = (name, title, unit, ours, theirs, more = []) => ({
    ...shared,
    name,
    title,
    unit,
    ours,
    others: [{ key: "jobqueue", role: "part", label: peer, values: theirs }, ...more],
    wanted: [{ atMost: 1 }],
  });
  const growing = { key: "growing", role: "part", label: "while they were started", values: [calls.ours.growing] };
  return [
    timed("dask-first", "Dask on Slurm, from a cluster without workers to a first result", first),
    timed("dask-workers", `Dask on Slurm, from 0 to ${FEW} workers, each a job of its own`, four),
    counted(
      "dask-listings",
      `how often Slurm is asked (${LISTINGS.join(", ")}) in ${PERIOD_MS / 1000} s with ${many} workers of Dask`,
      "calls a period",
      calls.ours.listings,
      calls.jobqueue.listings,
      [growing],
    ),
    counted(
      "dask-submissions",
      `how often sbatch is called for each of ${many} workers of Dask, each a job of its own`,
      "calls a job",
      [calls.ours.submissions],
      [calls.jobqueue.submissions],
    ),
  ];
};
