import type { AttemptView, TaskView } from "../../api/schemas.ts";
import { formatDuration, formatSize } from "../../core/quantities.ts";
import { isByteResource } from "../../core/resources.ts";
import { stateWord } from "../../core/state-words.ts";
import { lostFact } from "./output-lost.ts";
import { stateColored, type Style } from "./style.ts";
import { facts, table } from "./table.ts";
import { commandLine, count, duration, localTime, plural, printable, secondsBetween } from "./text.ts";

const ORDER = ["cpus", "gpus", "mem", "tmp"];
const rank = (name: string): number => ORDER.indexOf(name) + 1 || ORDER.length + 1;

/** What the exit code does not say already. */
const otherReason = ({ reason, exitCode }: Pick<AttemptView, "reason" | "exitCode">): string | undefined =>
  reason === null || reason === `exit code ${exitCode}` ? undefined : reason;

/** `cpus 2, mem 500M`. */
export const resourcesText = (resources: Readonly<Record<string, number>>): string =>
  Object.entries(resources)
    .filter(([, amount]) => amount > 0)
    .toSorted(([a], [b]) => rank(a) - rank(b))
    .map(([name, amount]) => `${printable(name)} ${isByteResource(name) ? formatSize(amount) : String(amount)}`)
    .join(", ");

const ending = (attempt: AttemptView): string => {
  if (attempt.signal !== null) return attempt.signal;
  return attempt.exitCode === null ? "-" : `exit ${attempt.exitCode}`;
};

/** `203M (rusage)`; servers of earlier versions say nothing. */
const peakText = (peak: AttemptView["peakMemory"] | undefined): string | undefined =>
  peak ? `${formatSize(peak.bytes)} (${peak.source})` : undefined;

const attemptsTable = (attempts: readonly AttemptView[], now: number, width?: number): string =>
  table(
    attempts,
    [
      { title: "ATTEMPT", value: (attempt) => String(attempt.n), right: true },
      { title: "STATE", value: (attempt) => stateWord(attempt.state) },
      { title: "WHERE", value: (attempt) => attempt.host ?? attempt.agent ?? "-", shrinksTo: 10 },
      attempts.some(({ job }) => job)
        ? { title: "JOB", drops: 4, value: (attempt) => attempt.job ?? "-", shrinksTo: 8 }
        : { title: "PILOT", drops: 4, value: (attempt) => attempt.pilot ?? "-", shrinksTo: 8 },
      { title: "STARTED", drops: 3, value: (attempt) => localTime(attempt.started) },
      {
        title: "TIME",
        value: (attempt) => {
          const seconds = secondsBetween(attempt.started, attempt.finished ?? now);
          return seconds === undefined ? "-" : duration(seconds);
        },
        right: true,
      },
      ...(attempts.some(({ cpu }) => cpu)
        ? [
            {
              title: "CPU",
              drops: 2,
              value: ({ cpu }: AttemptView) => (cpu ? duration(cpu.user + cpu.system) : "-"),
              right: true,
            },
          ]
        : []),
      ...(attempts.some(({ peakMemory }) => peakMemory)
        ? [{ title: "MEMORY", value: ({ peakMemory }: AttemptView) => peakText(peakMemory) ?? "-", right: true }]
        : []),
      ...(attempts.some(({ mem }) => mem)
        ? [{ title: "LIMIT", drops: 1, value: ({ mem }: AttemptView) => (mem ? formatSize(mem) : "-"), right: true }]
        : []),
      { title: "END", value: ending },
      { title: "REASON", value: (attempt) => otherReason(attempt) ?? "", shrinksTo: 12 },
    ],
    width,
  );

/** Which attempts are not in the table. */
const dropped = ({ attempts, attemptsDropped: count }: TaskView): string => {
  if (count === 0) return "";
  const before = attempts.find(({ n }, i) => attempts[i + 1]?.n !== n + 1)?.n ?? 0;
  return count === 1
    ? `\nattempt ${before + 1} is no longer kept`
    : `\nattempts ${before + 1} to ${before + count} are no longer kept (${count})`;
};

const output = (path: string | null, size: number | null): string | undefined =>
  path === null ? (size === null ? undefined : formatSize(size)) : printable(path);

/** Of a task that is a job of its own: where, under which name, and what its manager says. */
const jobFacts = ({ via, job }: TaskView, now: number): (readonly [string, string | undefined])[] => {
  if (via !== "job") return [];
  if (job == null) return [["job", "none in the manager now"]];
  const { nativeId, name, array, cluster, queue, state, says, reason, directory } = job;
  const element = array === null ? "" : `, element ${array.element} of ${array.of}`;
  const age = secondsBetween(job.requested, now);
  const asked = age === undefined ? "" : ` (requested ${duration(age)} ago)`;
  return [
    ["job", printable(`${nativeId ?? "not known yet"} (${name}${element})`)],
    ["cluster", printable(`${cluster}/${queue}`)],
    ["job state", `${state}${asked}`],
    ["manager says", says === null ? undefined : printable(says)],
    ["job reason", reason === null ? undefined : printable(reason)],
    ["job directory", printable(directory)],
  ];
};

/** What `retry --set` gave it: `mem 8G, time-limit 1h`. */
const setText = (set: TaskView["set"]): string | undefined => {
  if (set == null) return undefined;
  const { resources = {}, timeLimit, timeRequest, retries } = set;
  const amounts = Object.entries(resources).map(
    ([name, amount]) => `${printable(name)} ${isByteResource(name) ? formatSize(amount) : String(amount)}`,
  );
  if (timeLimit !== undefined) amounts.push(`time-limit ${formatDuration(timeLimit)}`);
  if (timeRequest !== undefined) amounts.push(`time-request ${formatDuration(timeRequest)}`);
  if (retries !== undefined) amounts.push(`retries ${retries}`);
  return `set ${amounts.join(", ")}`;
};

/** It is counted in steps of this, rounded up. */
const LEAST_CPU = 0.01;

/** `12 s (user 9.1 s, system 3.3 s)`. */
const cpuText = (cpu: AttemptView["cpu"]): string | undefined => {
  if (!cpu) return undefined;
  const total = cpu.user + cpu.system;
  if (total <= LEAST_CPU) return `at most ${duration(LEAST_CPU)}`;
  return `${duration(total)} (user ${duration(cpu.user)}, system ${duration(cpu.system)})`;
};

const ioText = (io: AttemptView["io"]): string | undefined =>
  io ? `read ${formatSize(io.readBytes)}, written ${formatSize(io.writtenBytes)} (${io.source})` : undefined;

/** Lines of an earlier attempt; those of the last one are shown in full. */
const EARLIER_LINES = 4;

/** What attempts wrote last: stderr, or stdout where that is empty. */
const lastLines = ({ attempts, lastStderr }: TaskView): string[] => {
  const indented = (text: string, most?: number): string =>
    text
      .trimEnd()
      .split("\n")
      .slice(most === undefined ? 0 : -most)
      .map((line) => `  ${printable(line)}`)
      .join("\n");
  const several = attempts.length > 1;
  const sections = attempts.map((attempt, i): string => {
    const last = i === attempts.length - 1;
    const stderr = attempt.lastStderr ?? (last ? lastStderr : null);
    const [text, stream] = stderr ? [stderr, "stderr"] : [attempt.lastStdout, "stdout"];
    if (!text) return "";
    const of = several ? `attempt ${attempt.n}, ` : "";
    return `${of}last lines of ${stream}:\n${indented(text, last ? undefined : EARLIER_LINES)}`;
  });
  return sections.filter((section) => section !== "");
};

/** `n1 (4), n2 (4)`; of many, the first. */
const MOST_HOSTS = 16;

/** What it asks for; of a task with ranks, also how many, where, and all of them together. */
const rankFacts = ({ ranks, resources }: TaskView): (readonly [string, string | undefined])[] => {
  const one = resourcesText(resources) || undefined;
  if (!ranks) return [["resources", one]];
  const { count: ranksCount, nodes, places, totals } = ranks;
  const used = new Set(places.map(({ host, agent }) => host ?? agent)).size;
  const on = used > 0 ? plural(used, "node") : nodes === null ? undefined : plural(nodes, "node");
  const hosts = places.slice(0, MOST_HOSTS).map((place) => `${place.host ?? `agent ${place.agent}`} (${place.ranks})`);
  const more = places.length - hosts.length;
  return [
    ["ranks", on === undefined ? count(ranksCount) : `${count(ranksCount)} on ${on}`],
    [
      "hosts",
      hosts.length === 0 ? undefined : printable(hosts.join(", ") + (more > 0 ? `, and ${count(more)} more` : "")),
    ],
    ["each rank", one],
    ["in all", resourcesText(totals) || undefined],
  ];
};

const skippedText = ({ skipped, upToDate }: TaskView): string | undefined => {
  if (skipped !== true) return undefined;
  return upToDate === true ? "its outputs are up to date" : "done by the run that this one resumes";
};

/** `show RUN.TASK`. */
export const taskScreen = (task: TaskView, style: Style, now: number, width?: number): string => {
  const sections = [
    `${style.bold(`task ${task.id}`)}  ${printable(task.name)}  ${stateColored(task.state, style)}`,
    facts([
      ["command", printable(commandLine(task.command))],
      ["skipped", skippedText(task)],
      ["item", task.item === null ? undefined : printable(task.item)],
      ["directory", printable(task.cwd)],
      ...rankFacts(task),
      ["this retry", setText(task.set)],
      ["wall time", task.wall == null ? undefined : duration(task.wall)],
      ["CPU time", cpuText(task.cpu)],
      ["peak memory", peakText(task.peakMemory)],
      ["I/O", ioText(task.io)],
      ["exit code", task.exitCode === null ? undefined : String(task.exitCode)],
      ["signal", task.signal ?? undefined],
      ["reason", otherReason(task) === undefined ? undefined : printable(otherReason(task)!)],
      ["stdout", output(task.stdout, task.stdoutBytes)],
      ["stderr", output(task.stderr, task.stderrBytes)],
      ["output", task.outputLost ? lostFact(task.outputLost) : undefined],
      ...jobFacts(task, now),
    ]),
  ];
  if (task.attempts.length > 0) sections.push(attemptsTable(task.attempts, now, width) + dropped(task));
  sections.push(...lastLines(task));
  return sections.join("\n\n");
};
