import { SlipwayError } from "../../errors.ts";
import { CommandError, type CommandOptions, type CommandResult, type RunCommand } from "../commands.ts";
import type { JobRequest, JobStatus, Provider } from "../provider.ts";
import { describePbs } from "./description.ts";
import { pbsName } from "./directives.ts";
import { createLastSight } from "./last-sight.ts";
import { parseJson, parseText, type Attributes, type Records } from "./parse.ts";
import { statusOf } from "./status.ts";

/** OpenPBS and PBS Professional, through qsub, qstat, qdel and pbsnodes. */

export interface PbsOptions {
  readonly run: RunCommand;
  /** For messages. */
  readonly cluster?: string;
  /** Paths of commands that are not found by their name: `{ qsub: "/opt/pbs/bin/qsub" }`. */
  readonly programs?: Readonly<Record<string, string>>;
}

/** Exit statuses of PBS's commands: its error numbers, less 15000, as a byte. */
const FINISHED = 35;
const UNKNOWN_JOB = 153;
const NO_SERVER = 255;

const ID = /^\d+(?:\[\d*\])?(?:\.[\w.-]+)?$/;
/** What a line of arguments may hold, with room to spare. */
const MOST_IDS = 1000;

const NOT_CONNECTED =
  /cannot connect to server|Connection (?:refused|timed out)|No route to host|errno=1(?:04|10|11)\b/i;
const BUSY = /server (?:is )?(?:too )?busy|try again|resource temporarily unavailable/i;

const NO_HISTORY = /maintain job history|job_history_enable/i;
const REPLY_LOST = /End of File|Connection reset|Communication failure|timed? ?out/i;

/** Whether this may pass by itself; of what must be done once at most, only what was certainly not done. */
export const pbsIsTransient = ({ code, stderr }: CommandResult, options: CommandOptions = {}): boolean =>
  code !== 0 && (NOT_CONNECTED.test(stderr) || (options.once !== true && (code === NO_SERVER || BUSY.test(stderr))));

const wordsOf = ({ stderr, stdout, code }: CommandResult): string =>
  (stderr.trim() || stdout.trim() || `exit status ${code}`).split("\n").slice(-5).join(" | ").slice(-1000);

/** `12.head` and `12` are the same job, as are `12.head` and `12.head.site`. */
const sequenceOf = (id: string): string => id.split(".")[0]!;

export const createPbsProvider = (options: PbsOptions): Provider => {
  const cluster = options.cluster ?? "PBS";
  const program = (name: string): string => options.programs?.[name] ?? name;
  /** What this installation was found not to do; a restarted server finds out again. */
  const lacks = { severalIds: false, history: false };
  const lastSight = createLastSight();

  const noAnswer = (result: CommandResult): SlipwayError =>
    new SlipwayError("cluster-unreachable", { cluster, detail: wordsOf(result) });

  /** One listing, as JSON or, where that cannot be read, as text. Throws when the server did not answer. */
  const listing = async (
    name: string,
    words: readonly string[],
    section: string,
    ids: readonly string[] = [],
  ): Promise<{ records: Records; result: CommandResult }> => {
    const ask = async (format: readonly string[]): Promise<CommandResult> => {
      const result = await options.run([program(name), ...words, ...format, ...ids]);
      const { code, stderr } = result;
      const isAnswer = code === 0 || code === FINISHED || code === UNKNOWN_JOB || NO_HISTORY.test(stderr);
      if (!isAnswer) throw noAnswer(result);
      return result;
    };
    const result = await ask(["-F", "json"]);
    const records = parseJson(result.stdout, section);
    if (records !== undefined) return { records, result };
    const plain = await ask([]);
    return { records: parseText(plain.stdout), result: plain };
  };

  /** A server that keeps no history, as is the default, answers `-x` without its living jobs and calls it no error. */
  const jobs = async (ids: readonly string[]): Promise<{ records: Records; result: CommandResult }> => {
    if (!lacks.history) {
      const answer = await listing("qstat", ["-x", "-f"], "Jobs", ids);
      if (!NO_HISTORY.test(answer.result.stderr)) return answer;
      lacks.history = true;
    }
    return listing("qstat", ["-f"], "Jobs", ids);
  };

  const bySequence = (records: Records): Map<string, Attributes> =>
    new Map([...records].map(([id, attributes]) => [sequenceOf(id), attributes]));

  /**
   * The jobs asked for, with one command. Some builds print only the first of several: then everything is listed, and
   * from then on at once.
   */
  const find = async (ids: readonly string[]): Promise<Map<string, Attributes>> => {
    if (ids.length === 1 || (ids.length <= MOST_IDS && !lacks.severalIds)) {
      const { records, result } = await jobs(ids);
      const found = bySequence(records);
      const denied = new Set(Array.from(result.stderr.matchAll(/\b\d+(?:\[\d*\])?(?=[.\s:]|$)/g), ([id]) => id));
      if (ids.every((id) => found.has(sequenceOf(id)) || denied.has(sequenceOf(id)))) return found;
      if (ids.length === 1) return found;
      lacks.severalIds = true;
    }
    return bySequence((await jobs([])).records);
  };

  const submitted = async (job: JobRequest, extra: readonly string[]): Promise<{ id: string; note: string }> => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for PBS needs a script" });
    const words = [...extra, "-N", pbsName(job.name), ...(job.options ?? []), job.script];
    const result = await options.run([program("qsub"), ...words], {
      once: true,
      cwd: job.directory,
      ...(job.user === undefined ? {} : { user: job.user }),
    });
    const lines = result.stdout.split("\n").map((line) => line.trim());
    const id = lines.findLast((line) => ID.test(line));
    if (result.code === 0 && id !== undefined)
      return { id, note: [...lines.filter((line) => line !== id), result.stderr.trim()].join("\n").trim() };
    if (NOT_CONNECTED.test(result.stderr)) throw noAnswer(result);
    // it may have been taken: the caller finds it by its name
    if (result.code === 0 || result.code === NO_SERVER || REPLY_LOST.test(result.stderr))
      throw new CommandError(`qsub: ${wordsOf(result)}`, result.argv, true);
    throw new SlipwayError("cluster-refused", { cluster, detail: wordsOf(result) });
  };

  const remove = async (ids: readonly string[], user?: string): Promise<void> => {
    const result = await options.run([program("qdel"), ...ids], user === undefined ? {} : { user });
    if (result.code === 0) {
      for (const id of ids) lastSight.deleted(sequenceOf(id));
      return;
    }
    // the status is that of one of them: the others may have had other troubles
    const troubles = result.stderr
      .split("\n")
      .filter((line) => line.trim() !== "" && !/Unknown Job Id|Job has finished|has already finished/i.test(line));
    const isGone = result.code === FINISHED || result.code === UNKNOWN_JOB;
    if (troubles.length > 0 || !isGone) throw noAnswer(result);
  };

  return {
    describe: async () => {
      const [server, queues, nodes] = await Promise.all([
        listing("qstat", ["-B", "-f"], "Server"),
        listing("qstat", ["-Q", "-f"], "Queue"),
        listing("pbsnodes", ["-a"], "nodes"),
      ]);
      return describePbs(server.records, queues.records, nodes.records);
    },

    submit: async (job) => {
      const { id, note } = await submitted(job, []);
      return { nativeId: id, ...(note === "" ? {} : { note }) };
    },

    poll: async (nativeIds) => {
      const answers = new Map<string, JobStatus>();
      const known = [...new Set(nativeIds)].filter((id) => ID.test(id));
      const found = known.length === 0 ? new Map<string, Attributes>() : await find(known);
      for (const id of nativeIds) {
        const sequence = sequenceOf(id);
        const attributes = found.get(sequence);
        if (attributes !== undefined) lastSight.seen(sequence, attributes);
        answers.set(id, attributes === undefined ? lastSight.endOf(sequence) : statusOf(attributes));
      }
      return answers;
    },

    cancel: async (nativeIds) => {
      const ids = [...new Set(nativeIds)].filter((id) => ID.test(id));
      for (let at = 0; at < ids.length; at += MOST_IDS) await remove(ids.slice(at, at + MOST_IDS));
    },

    list: async (namePrefix) => {
      const { records } = await listing("qstat", ["-f"], "Jobs");
      const found: { name: string; nativeId: string }[] = [];
      for (const [nativeId, attributes] of records) {
        const name = attributes.get("Job_Name") ?? "";
        if (name.startsWith(namePrefix) && statusOf(attributes).state !== "ended") found.push({ name, nativeId });
      }
      return found;
    },

    tryOut: async (job) => {
      const { id, note } = await submitted(job, ["-h"]);
      await remove([id], job.user);
      return `qsub took it, held, as ${id}; it was deleted again${note === "" ? "" : `. It said: ${note}`}`;
    },
  };
};
