// Claim: a task that is a job of its own costs little more than its script under plain sbatch, one by one and many at
// once. All times of a job are stamps of its own: its prolog, its command, its epilog.
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { writeScript } from "../counted-commands.mjs";
import { alternate } from "../rounds.mjs";
import { Broken, checkRun, checkSample } from "../sample.mjs";
import { connectTo, runThrough } from "../sdk.mjs";
import { openSlipway } from "../slipway.mjs";
import { openSlurm } from "../slurm.mjs";
import { median } from "../statistics.mjs";

const MOST_WAIT_MS = 600_000;

const clustersOf = (slurm) => `default: hpc
clusters:
  hpc:
    type: slurm
    config: ${slurm.config}
    queues:
      small: { partition: batch, nodes: 1, cores: 1, memory: 100M, walltime: 1h }
`;

const until = async (what, check) => {
  for (const begun = performance.now(); ; await sleep(20)) {
    const answer = await check();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() - begun > MOST_WAIT_MS) throw new Broken(`waited ${MOST_WAIT_MS / 1000} s for ${what}`);
  }
};

/** The same for both: it writes when it begins and when it ends. */
const stampedScript = async (slurm) => {
  const path = join(slurm.directory, "stamped");
  await writeScript(path, 'echo $EPOCHREALTIME >"$1"', "sleep 0.5", 'echo $EPOCHREALTIME >>"$1"');
  return path;
};
const stampsOf = async (file) => {
  const [begun, ended] = (await readFile(file, "utf8"))
    .trim()
    .split("\n")
    .map((text) => Number(text) * 1000);
  await rm(file);
  return { begun, ended };
};

const document = (tasks) => ({ name: "jobs", cwd: "/", environment: {}, tasks });

/** Seconds from the job's start to the command's, and from the command's end to the time when the task is done. */
const throughSlipway = async ({ client, slipway, slurm, script }) => {
  const file = join(slurm.directory, "stamps-ours");
  const { run } = await runThrough(client, document([{ run: [script, file], via: "job", mem: "100M" }]));
  const done = Date.now();
  checkRun(run, 1);
  await checkSample(slipway, run, { size: 1 });
  const { answer } = await slipway.ask("show", `${run.id}.${run.numbering.start}`);
  const started = await until("the job's prolog", () => slurm.startOf(answer.attempts[0].job));
  const over = await until("the job's epilog", () => slurm.endOf(answer.attempts[0].job));
  const { begun, ended } = await stampsOf(file);
  return { before: (begun - started) / 1000, after: (done - ended) / 1000, leaving: (over - ended) / 1000 };
};

const sbatch = async (slurm, ...words) => {
  const { stdout, stderr, code } = await slurm.run([
    "sbatch",
    "--parsable",
    "--output=/dev/null",
    "--mem=100M",
    ...words,
  ]);
  if (code !== 0) throw new Broken(`sbatch: ${stderr}`);
  return stdout.trim();
};

const throughSbatch = async ({ slurm, script }) => {
  const file = join(slurm.directory, "stamps-theirs");
  const id = await sbatch(slurm, script, file);
  const over = await until("the job's epilog", () => slurm.endOf(id));
  const { begun, ended } = await stampsOf(file);
  const after = (over - ended) / 1000;
  return { before: (begun - (await slurm.startOf(id))) / 1000, after, leaving: after };
};

const whole = ({ before, after }) => before + after;

const repeated = async (times, measure) => {
  const found = [];
  for (let i = 0; i < times; i++) found.push(await measure());
  const middle = (key) => median(found.map(key));
  return {
    overhead: middle(whole),
    before: middle(({ before }) => before),
    after: middle(({ after }) => after),
    leaving: middle(({ leaving }) => leaving),
  };
};

/** Seconds from submission to the end of the last of many. */
const manyThroughSlipway = async ({ client, slipway }, count) => {
  const tasks = [{ name: "nap", run: ["sleep", "2"], each: { array: `1-${count}` }, via: "job", mem: "100M" }];
  const { run, ms } = await runThrough(client, document(tasks));
  checkRun(run, count);
  await checkSample(slipway, run, { size: 4 });
  return { seconds: ms / 1000 };
};

const manyThroughSbatch = async ({ slurm }, count) => {
  const before = (await slurm.ends()).length;
  const begun = Date.now();
  await sbatch(slurm, `--array=1-${count}`, "--wrap", "exec sleep 2");
  const ends = await until("the array to end", async () => {
    const all = (await slurm.ends()).slice(before);
    return all.length >= count ? all : undefined;
  });
  return { seconds: (Math.max(...ends.map(({ at }) => at)) - begun) / 1000 };
};

/** A Slurm of its own, a server for it, and what is measured there. */
const withLab = async (options, cpus, measure) => {
  const slurm = await openSlurm({ cpus, accounting: false, epilog: true });
  try {
    const script = await stampedScript(slurm);
    const slipway = await openSlipway({ ...options, clusters: clustersOf(slurm) });
    const client = await connectTo(slipway);
    try {
      return await measure({ slurm, slipway, client, script });
    } finally {
      client.close();
      await slipway.close();
    }
  } finally {
    await slurm.close();
  }
};

const shared = { better: "less", unit: "s", skipped: {} };

export const measureTaskJob = async (options, say) => {
  const each = options.sized(10, 3, 1);
  const text = ({ overhead, before, after, leaving }) =>
    `${overhead.toFixed(3)} s a job: ${before.toFixed(3)} s before, ${after.toFixed(3)} s after; the job leaves after ${leaving.toFixed(3)} s`;
  const { values } = await withLab(options, 2, (lab) => {
    const single = (key, label, measure) => ({ key, label, text, measure: () => repeated(each, () => measure(lab)) });
    const contenders = [single("ours", "Slipway", throughSlipway), single("sbatch", "sbatch", throughSbatch)];
    return alternate(contenders, options.rounds, say);
  });
  const of = (key, what) => values.get(key).map((found) => found[what]);
  const part = (key, label, numbers) => ({ key, role: "part", label, values: numbers });
  return [
    {
      ...shared,
      name: "task-job",
      title:
        "what a task's own job takes on Slurm beside its command (from Slurm's start to the command's, from its end to DONE), less what the same script takes under plain sbatch",
      ours: of("ours", "overhead").map((seconds, i) => seconds - of("sbatch", "overhead")[i]),
      others: [
        part("before", "Slipway: from the job's start to the command's", of("ours", "before")),
        part("after", "Slipway: from the command's end to DONE", of("ours", "after")),
        part("leaving", "Slipway: from the command's end to that of the job", of("ours", "leaving")),
        part("sbatch", "sbatch: both, to the end of the job", of("sbatch", "overhead")),
      ],
      wanted: [{ atMost: 0.3 }],
    },
  ];
};

export const measureTaskJobs = async (options, say) => {
  const count = options.sized(1000, 100, 3);
  const cpus = options.sized(8, 8, 2);
  const text = ({ seconds }) => `${seconds.toFixed(1)} s`;
  const { values } = await withLab(options, cpus, (lab) => {
    const many = (key, label, measure) => ({ key, label, text, measure: () => measure(lab, count) });
    const contenders = [
      many("sbatch", "sbatch --array", manyThroughSbatch),
      many("ours", "Slipway", manyThroughSlipway),
    ];
    // each takes minutes: more rounds would say little more
    return alternate(contenders, Math.min(options.rounds, 2), say);
  });
  const of = (key) => values.get(key).map(({ seconds }) => seconds);
  return [
    {
      ...shared,
      name: "task-jobs",
      title: `${count} jobs of \`sleep 2\` on ${cpus} cores of Slurm, from submission to the end of the last`,
      ours: of("ours"),
      others: [{ key: "sbatch", role: "limit", label: "one sbatch --array", values: of("sbatch") }],
      limit: "sbatch",
      wanted: [{ of: "sbatch", atMost: 1.1 }],
    },
  ];
};
