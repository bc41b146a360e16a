import { SlipwayError } from "../../../errors.ts";
import { createCalls } from "../../calls.ts";
import { chunksOf } from "../../chunks.ts";
import { CommandError, type RunCommand } from "../../commands.ts";
import type { JobRequest, JobStatus, Provider, Submitted } from "../../provider.ts";
import { pbsName } from "../directives.ts";
import { createPbsAnswers, sequenceOf } from "./ask.ts";
import { describePbs } from "./description.ts";
import { BAD_STATE, FINISHED, isNotReached, isReplyLost, UNKNOWN_JOB, wordsOf } from "./failures.ts";
import { createLastSight } from "./last-sight.ts";
import { createMovedJobs } from "./moved.ts";
import { statusOf } from "./status.ts";

/** OpenPBS and PBS Professional, through qsub, qstat, qdel and pbsnodes. */

export interface PbsOptions {
  readonly run: RunCommand;
  /** For messages. */
  readonly cluster?: string;
  /** Paths of commands that are not found by their name: `{ qsub: "/opt/pbs/bin/qsub" }`. */
  readonly programs?: Readonly<Record<string, string>>;
}

const ID = /^\d+(?:\[\d*\])?(?:\.[\w.-]+)?$/;
/** What a line of arguments may hold, with room to spare. */
const MOST_AT_ONCE = 1000;

/** What qdel says of a job that needs no deleting. */
const IS_ENDING = /Unknown Job Id|Job has finished|has already finished|Request invalid for state of job/i;

const ownIds = (ids: readonly string[]): string[] => [...new Set(ids)].filter((id) => ID.test(id));

export const createPbsProvider = ({ run, cluster = "PBS", programs = {} }: PbsOptions): Provider => {
  const calls = createCalls({ run, cluster, pathOf: (program) => programs[program] ?? program, wordsOf });
  const answers = createPbsAnswers(calls);
  const lastSight = createLastSight();
  const movedJobs = createMovedJobs((ids) => answers.all("qstat", ["-f"], "Jobs", ids));

  const submitted = async (job: JobRequest, extra: readonly string[]): Promise<Submitted> => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for PBS needs a script" });
    // -f: it leaves no daemon, whose arguments would look like those of a submission under way
    const words = ["-f", ...extra, "-N", pbsName(job.name), ...(job.options ?? []), job.script];
    const result = await calls.call("qsub", words, {
      once: true,
      cwd: job.directory,
      ...(job.user === undefined ? {} : { user: job.user }),
    });
    const lines = result.stdout.split("\n").map((line) => line.trim());
    const id = lines.findLast((line) => ID.test(line));
    if (result.code === 0 && id !== undefined) {
      const note = [...lines.filter((line) => line !== id), result.stderr.trim()].join("\n").trim();
      return { nativeId: id, ...(note === "" ? {} : { note }) };
    }
    if (isNotReached(result)) throw calls.unreachable(result);
    // it may have been accepted: the caller finds it by its name
    if (result.code === 0 || isReplyLost(result)) throw new CommandError(`qsub: ${wordsOf(result)}`, result.argv, true);
    throw calls.refused(result);
  };

  const remove = async (ids: readonly string[], user?: string): Promise<void> => {
    const result = await calls.call("qdel", ids, user === undefined ? {} : { user });
    if (result.code === 0) {
      for (const id of ids) lastSight.deleted(sequenceOf(id));
      return;
    }
    // the status is that of one of them: the others may have had other troubles
    const troubles = result.stderr.split("\n").filter((line) => line.trim() !== "" && !IS_ENDING.test(line));
    const isEnding = [FINISHED, UNKNOWN_JOB, BAD_STATE].includes(result.code ?? -1);
    if (troubles.length > 0 || !isEnding) throw calls.unreachable(result);
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
    describe: () => describePbs(answers),

    submit: (job) => submitted(job, []),

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
      for (const some of chunksOf(ids, { ids: MOST_AT_ONCE })) await remove(some);
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
      const { nativeId, note } = await submitted(job, ["-h"]);
      await remove([nativeId], job.user);
      return `qsub took it, held, as ${nativeId}; it was deleted again${note === undefined ? "" : `. It said: ${note}`}`;
    },
  };
};
