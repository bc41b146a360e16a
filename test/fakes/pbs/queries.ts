import { STATUS, VERSION, type Answer, type PbsConfig } from "./config.ts";
import { attributesOf, clock, type Attribute, type Job } from "./job.ts";
import type { Jobs } from "./jobs.ts";
import type { Moms } from "./moms.ts";
import { toJson, toText } from "./print.ts";

/** What qstat and pbsnodes answer. */

interface Flags {
  readonly letters: ReadonlySet<string>;
  readonly isJson: boolean;
  readonly rest: readonly string[];
}

const flagsOf = (argv: readonly string[], withValue: string): Flags => {
  const letters = new Set<string>();
  const rest: string[] = [];
  let format = "";
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at]!;
    if (!word.startsWith("-")) rest.push(word);
    else
      for (let index = 1; index < word.length; index += 1) {
        const letter = word[index]!;
        letters.add(letter);
        if (withValue.includes(letter)) {
          const value = word.slice(index + 1) || (argv[(at += 1)] ?? "");
          if (letter === "F") format = value;
          break;
        }
      }
  }
  return { letters, isJson: format === "json", rest };
};

const printed = (
  config: PbsConfig,
  flags: Flags,
  section: string,
  title: string,
  records: readonly Attribute[],
  code = 0,
  stderr = "",
): Answer =>
  flags.isJson
    ? { code, bytes: toJson(config, section, records).toString("base64"), stderr }
    : { code, stdout: toText(title, records), stderr };

const short = (jobs: readonly Job[]): string => {
  if (jobs.length === 0) return "";
  const line = (job: Job): string =>
    `${job.id.slice(0, 17).padEnd(17)} ${job.name.slice(0, 16).padEnd(16)} ${job.owner.user.slice(0, 16).padEnd(16)} ${"00:00:00".padStart(8)} ${job.state} ${job.queue}`;
  return `Job id            Name             User              Time Use S Queue\n----------------  ---------------- ----------------  -------- - -----\n${jobs.map((job) => `${line(job)}\n`).join("")}`;
};

const queueAttributes = (queue: PbsConfig["queues"][number], jobs: Jobs): Attribute[] => [
  ["queue_type", "Execution"],
  ["total_jobs", String([...jobs.all.values()].filter((job) => job.queue === queue.name && job.state !== "F").length)],
  ...(queue.maxWalltime === undefined
    ? []
    : [["resources_max", [["walltime", clock(queue.maxWalltime)]]] satisfies Attribute]),
  ...(queue.defaultWalltime === undefined
    ? []
    : [["resources_default", [["walltime", clock(queue.defaultWalltime)]]] satisfies Attribute]),
  ["enabled", queue.enabled ? "True" : "False"],
  ["started", queue.started ? "True" : "False"],
];

export const qstat = (config: PbsConfig, jobs: Jobs, argv: readonly string[]): Answer => {
  const flags = flagsOf(argv, "FuW");
  const { letters, rest } = flags;
  if (letters.has("B")) {
    const attributes: Attribute[] = [
      ["server_state", "Active"],
      ["default_queue", config.defaultQueue],
      ["acl_roots", config.rootMaySubmit ? "root" : ""],
      ["job_history_enable", config.history ? "True" : "False"],
      ["pbs_version", VERSION],
    ];
    return printed(config, flags, "Server", "Server: ", [[config.server, attributes]]);
  }
  if (letters.has("Q")) {
    const known = config.queues.filter(({ name }) => rest.length === 0 || rest.includes(name));
    const records = known.map((queue): Attribute => [queue.name, queueAttributes(queue, jobs)]);
    const isWrong = rest.some((name) => !config.queues.some((queue) => queue.name === name));
    return isWrong
      ? printed(config, flags, "Queue", "Queue: ", records, STATUS.unknownQueue, "qstat: Unknown queue\n")
      : printed(config, flags, "Queue", "Queue: ", records);
  }
  const past = letters.has("x");
  // not an error, going by the status; but living jobs are not shown either
  if (past && !config.history) {
    const told = (rest.length === 0 ? [""] : rest).map(
      (id) => `qstat: PBS is not configured to maintain job history ${id}\n`,
    );
    return printed(config, flags, "Jobs", "", [], 0, told.join(""));
  }
  let code = 0;
  let stderr = "";
  let found: Job[] = [];
  const isSeen = (job: Job): boolean => past || job.state !== "F";
  if (rest.length === 0)
    found = [...jobs.all.values()].filter((job) => isSeen(job) && (letters.has("t") || job.arrayId === undefined));
  for (const id of rest) {
    const job = jobs.find(id);
    const name = id.includes(".") ? id : `${id}.${config.server}`;
    if (!/^\d+(\[\d*\])?(\.|$)/.test(id)) {
      code = 1;
      stderr += `qstat: illegally formed job identifier: ${id}\n`;
    } else if (job === undefined) {
      code = STATUS.unknownJob;
      stderr += `qstat: Unknown Job Id ${name}\n`;
    } else if (!isSeen(job)) {
      code = STATUS.finished;
      stderr += `qstat: ${name} Job has finished, use -x or -H to obtain historical job information\n`;
    } else {
      found.push(job);
      if (letters.has("t")) found.push(...[...jobs.all.values()].filter((part) => part.arrayId === job.id));
    }
  }
  if (!letters.has("f")) return { code, stdout: short(found), stderr };
  if (flags.isJson && config.onlyFirst && rest.length > 1) found = found.slice(0, 1);
  const records = found.map((job): Attribute => [job.id, attributesOf(job, config.server)]);
  return printed(config, flags, "Jobs", "Job Id: ", records, code, stderr);
};

export const pbsnodes = (config: PbsConfig, jobs: Jobs, moms: Moms, argv: readonly string[]): Answer => {
  const flags = flagsOf(argv, "FC");
  const records = config.nodes
    .filter(({ name }) => flags.rest.length === 0 || flags.rest.includes(name))
    .map((node): Attribute => {
      const usage = jobs.usage.get(node.name)!;
      const isFull = usage.exclusive || usage.ncpus >= node.ncpus;
      const running = [...jobs.all.values()].filter((job) => job.state === "R" && job.hosts.includes(node.name));
      return [
        node.name,
        [
          ["Mom", node.name],
          ["Port", "15002"],
          ["pbs_version", VERSION],
          ["ntype", "PBS"],
          ["state", !moms.isUp(node.name) ? "down" : usage.exclusive ? "job-exclusive" : isFull ? "job-busy" : "free"],
          ["pcpus", "2"],
          ...(running.length === 0
            ? []
            : [["jobs", running.map(({ id }) => `${id}/0`).join(", ")] satisfies Attribute]),
          [
            "resources_available",
            [
              ["arch", "linux"],
              ["host", node.name],
              ["mem", `${node.memKb}kb`],
              ["ncpus", String(node.ncpus)],
              ["ngpus", String(node.ngpus)],
              ["vnode", node.name],
              ...Object.entries(node.custom),
            ],
          ],
          [
            "resources_assigned",
            usage.jobs === 0
              ? []
              : [
                  ["mem", `${usage.memKb}kb`],
                  ["ncpus", String(usage.ncpus)],
                  ["ngpus", String(usage.ngpus)],
                ],
          ],
          ...(node.queue === undefined ? [] : [["queue", node.queue] satisfies Attribute]),
          ["resv_enable", "True"],
          ["sharing", "default_shared"],
          ["license", "l"],
          ["last_state_change_time", String(Math.floor(Date.now() / 1000))],
        ],
      ];
    });
  return printed(config, flags, "nodes", "", records);
};
