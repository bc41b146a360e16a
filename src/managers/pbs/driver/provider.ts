import { SlipwayError } from "../../../errors.ts";
import { CommandError, type CommandOptions, type CommandResult, reaching, type RunCommand } from "../../commands.ts";
import type { JobRequest, JobStatus, Provider } from "../../provider.ts";
import { createPbsAnswers, FINISHED, sequenceOf, UNKNOWN_JOB } from "./ask.ts";
import { describePbs } from "./description.ts";
import { createMovedJobs } from "./moved.ts";
import { pbsName } from "../directives.ts";
import { createLastSight } from "./last-sight.ts";
import { statusOf } from "./status.ts";

/** OpenPBS and PBS Professional, through qsub, qstat, qdel and pbsnodes. */

export interface PbsOptions {
  readonly run: RunCommand;
  /** For messages. */
  readonly cluster?: string;
  /** Paths of commands that are not found by their name: `{ qsub: "/opt/pbs/bin/qsub" }`. */
  readonly programs?: Readonly<Record<string, string>>;
}

/** Beside those of ask.ts: the job is ending already; the server did not answer. */
const BAD_STATE = 168;
const NO_SERVER = 255;

const ID = /^\d+(?:\[\d*\])?(?:\.[\w.-]+)?$/;
/** What a line of arguments may hold, with room to spare. */
const MOST_AT_ONCE = 1000;

const NOT_CONNECTED =
  /cannot connect to server|Connection (?:refused|timed out)|No route to host|errno=1(?:04|10|11)\b/i;
const BUSY = /server (?:is )?(?:too )?busy|try again|resource temporarily unavailable/i;

/** What qdel says of a job that needs no deleting. */
const IS_ENDING = /Unknown Job Id|Job has finished|has already finished|Request invalid for state of job/i;
const REPLY_LOST = /End of File|Connection reset|Communication failure|timed? ?out/i;

/** Whether this may pass by itself; of what must be done once at most, only what was certainly not done. */
export const pbsIsTransient = ({ code, stderr }: CommandResult, options: CommandOptions = {}): boolean =>
  code !== 0 && (NOT_CONNECTED.test(stderr) || (options.once !== true && (code === NO_SERVER || BUSY.test(stderr))));

const wordsOf = ({ stderr, stdout, code }: CommandResult): string =>
  (stderr.trim() || stdout.trim() || `exit status ${code}`).split("\n").slice(-5).join(" | ").slice(-1000);

const ownIds = (ids: readonly string[]): string[] => [...new Set(ids)].filter((id) => ID.test(id));

export const createPbsProvider = (options: PbsOptions): Provider => {
  const cluster = options.cluster ?? "PBS";
  const run = reaching(options.run, cluster);
  const program = (name: string): string => options.programs?.[name] ?? name;

  const noAnswer = (result: CommandResult): SlipwayError =>
    new SlipwayError("cluster-unreachable", { cluster, detail: wordsOf(result) });

  const answers = createPbsAnswers({ run, program, noAnswer });
  const lastSight = createLastSight();
  const movedJobs = createMovedJobs((ids) => answers.all("qstat", ["-f"], "Jobs", ids));

  const submitted = async (job: JobRequest, extra: readonly string[]): Promise<{ id: string; note: string }> => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for PBS needs a script" });
    // -f: it leaves no daemon, whose arguments would look like those of a submission under way
    const words = ["-f", ...extra, "-N", pbsName(job.name), ...(job.options ?? []), job.script];
    const result = await run([program("qsub"), ...words], {
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
    const result = await run([program("qdel"), ...ids], user === undefined ? {} : { user });
    if (result.code === 0) {
      for (const id of ids) lastSight.deleted(sequenceOf(id));
      return;
    }
    // the status is that of one of them: the others may have had other troubles
    const troubles = result.stderr.split("\n").filter((line) => line.trim() !== "" && !IS_ENDING.test(line));
    const isEnding = [FINISHED, UNKNOWN_JOB, BAD_STATE].includes(result.code ?? -1);
    if (troubles.length > 0 || !isEnding) throw noAnswer(result);
  };

  /**
   * Those that PBS knows now and has not begun to end. The server of OpenPBS 23.06 crashes over a qdel of a job that it
   * knows together with one that it does not: of several only these are named. One alone needs no such care.
   */
  const deletable = async (ids: readonly string[]): Promise<string[]> => {
    const found = await answers.living(ids);
    return ids.filter((id) => !/^[EFMX]?$/.test(found.get(sequenceOf(id))?.get("job_state") ?? ""));
  };

  return {
    describe: async () => {
      const [server, queues, nodes] = await Promise.all([
        answers.all("qstat", ["-B", "-f"], "Server"),
        answers.all("qstat", ["-Q", "-f"], "Queue"),
        answers.all("pbsnodes", ["-a"], "nodes"),
      ]);
      return describePbs(server, queues, nodes);
    },

    submit: async (job) => {
      const { id, note } = await submitted(job, []);
      return { nativeId: id, ...(note === "" ? {} : { note }) };
    },

    poll: async (nativeIds) => {
      const statuses = new Map<string, JobStatus>();
      const ids = ownIds(nativeIds);
      const found = await movedJobs.follow(ids, await answers.find(ids));
      for (const id of nativeIds) {
        const sequence = sequenceOf(id);
        const attributes = found.get(sequence);
        if (attributes !== undefined) lastSight.seen(sequence, attributes);
        statuses.set(id, attributes === undefined ? lastSight.endOf(sequence) : statusOf(attributes));
      }
      return statuses;
    },

    cancel: async (nativeIds) => {
      const given: string[] = [];
      for (const id of ownIds(nativeIds)) {
        const elsewhere = movedJobs.addressOf(id);
        if (elsewhere === undefined) given.push(id);
        else await remove([elsewhere]);
      }
      const ids = given.length > 1 ? await deletable(given) : given;
      for (let at = 0; at < ids.length; at += MOST_AT_ONCE) await remove(ids.slice(at, at + MOST_AT_ONCE));
    },

    list: async (namePrefix) => {
      const records = await answers.all("qstat", ["-f"], "Jobs");
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
