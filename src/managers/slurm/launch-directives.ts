import type { QueueConfig } from "../../config/clusters-file.ts";
import type { LaunchAsk, LaunchDirectives } from "../launch-dialect.ts";
import { fileName } from "./directives.ts";
import type { SlurmQueue } from "./keys.ts";
import { readSbatchArgs, sbatchOption, type UserOption } from "./sbatch-options.ts";
import type { SlurmSizing } from "./sizing.ts";

/** `D-HH:MM:SS`; Slurm counts whole minutes, so that a limit is rounded up to one. */
const slurmTime = (seconds: number): string => {
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${Math.floor(minutes / 1440)}-${two(Math.floor(minutes / 60) % 24)}:${two(minutes % 60)}:00`;
};

/** An administrator's options of a queue were written for pilots: what a launch decides itself is left out. */
const queueOptions = (queue: QueueConfig | undefined, notes: string[]): readonly UserOption[] =>
  readSbatchArgs(queue?.options ?? [], ({ option, detail }) => {
    notes.push(`left out of the queue's options: ${option ?? detail}`);
  });

export const slurmLaunchDirectives = (input: LaunchAsk<SlurmQueue>, sized: SlurmSizing): LaunchDirectives => {
  const { spec, pool, refuse } = input;
  const notes: string[] = [];
  const user = readSbatchArgs(spec.slurm.args, refuse);
  const has = (name: string): boolean => user.some((option) => option.name === name);
  const cpus = user.find((option) => option.name === "cpus-per-task");
  if (cpus !== undefined && sized.sizing.slotType === "cpu" && spec.slots > 0) {
    refuse({ entry: cpus.entry, option: cpus.spelled, detail: " where slots are CPUs", remedy: "Use slots_per_node." });
  }
  const time = user.find((option) => option.name === "time");
  if (time !== undefined && spec.walltime !== undefined) {
    refuse({ entry: time.entry, option: time.spelled, detail: " beside walltime", remedy: "Keep one of them." });
  }
  const walltime = time === undefined ? (spec.walltime ?? pool.queue?.walltime) : undefined;

  const options: { name: string; value?: string }[] = [
    { name: "job-name", value: input.jobName },
    { name: "output", value: fileName(input.stdout) },
    { name: "error", value: fileName(input.stderr) },
    { name: "chdir", value: input.directory },
  ];
  const say = (name: string, value: string | undefined): void => {
    if (value !== undefined && !has(name)) options.push({ name, value });
  };
  say("partition", pool.partition);
  say("account", pool.queue?.account);
  say("qos", pool.queue?.qos);
  say("constraint", pool.queue?.constraint);
  say("reservation", pool.queue?.reservation);
  say("wckey", input.project);
  options.push({ name: "no-requeue" });
  say("time", walltime === undefined ? undefined : slurmTime(walltime));
  if (pool.queue?.exclusive === true && !has("exclusive")) options.push({ name: "exclusive" });

  // of several --gres the last one counts: the launcher's own and the user's become one
  const theirs = user.findLast((option) => option.name === "gres")?.value;
  const sizing = sized.options.map((option) =>
    option.startsWith("--gres=") && theirs !== undefined ? `${option},${theirs}` : option,
  );
  const merged = sizing.some((option) => option.startsWith("--gres="));
  const appended = user.filter((option) => option.name !== "gres" || (!merged && option.value === theirs));
  const lines = [
    ...options.map(sbatchOption),
    ...sizing.map((option) => sbatchOption({ name: option.slice(2) })),
    ...queueOptions(pool.queue, notes).map(sbatchOption),
    ...appended.map(sbatchOption),
  ];
  return { lines: lines.map((line) => `#SBATCH ${line}`), ...(walltime === undefined ? {} : { walltime }), notes };
};
