import { chmod, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "../../../errors.ts";
import { createCalls } from "../../calls.ts";
import { CommandError, type RunCommand } from "../../commands.ts";
import { createJobOwners } from "../../job-owners.ts";
import type { JobRequest, JobStatus, Provider, Submitted } from "../../provider.ts";
import { createOarAnswers } from "./ask.ts";
import { describeOar } from "./description.ts";
import { oarIsTransient } from "./failures.ts";
import { parseSubmitted, refusalOf, statusOfJob } from "./parse.ts";

/**
 * OAR. Its database keeps every job: one question answers a poll, for living and ended ones alike, and for those that
 * OAR started in the place of others.
 */
export interface OarOptions {
  readonly run: RunCommand;
  /** The directory of oarsub and its sisters; without it they are searched in PATH. */
  readonly bin?: string;
  /** In whose name `run` executes, when not in that of this process. */
  readonly user?: string;
  /** The property that gives a core's memory in MB, for `describe`. */
  readonly memoryPerCoreProperty?: string;
}

const MOST_LOOKS = 60;
const LOOK_MS = 500;
const NO_SUCH_JOB: JobStatus = { state: "ended", raw: "no such job", outcome: "unknown" };

const isId = (id: string): boolean => /^\d{1,9}$/.test(id);

/** Executable for whoever may read it: else the job ends with 126. */
const makeExecutable = async (script: string): Promise<void> => {
  const { mode } = await stat(script);
  if ((mode & 0o111) !== (mode & 0o444) >> 2) await chmod(script, (mode & 0o7777) | ((mode & 0o444) >> 2));
};

export const createOarProvider = ({ run, bin, user, memoryPerCoreProperty }: OarOptions): Provider => {
  const calls = createCalls({
    run,
    cluster: "OAR",
    pathOf: (program) => (bin === undefined ? program : join(bin, program)),
    wordsOf: ({ stderr, stdout }) => refusalOf(stderr, stdout),
  });
  const owners = createJobOwners(user ?? userInfo().username);
  const answers = createOarAnswers(calls);

  const submitted = async (job: JobRequest, extra: readonly string[]): Promise<Submitted> => {
    const { script, directory } = job;
    if (script === undefined) throw new SlipwayError("internal", { detail: "a job for OAR has no script" });
    // OAR gives the path to a shell, at two places
    if (!/^[\w./@%+,:=-]+$/.test(script))
      throw calls.refused(`the path of the job's script has characters that OAR cannot take: ${script}`);
    await makeExecutable(script);
    const array = job.array === undefined ? [] : ["--array", String(job.array)];
    const words = ["-S", ...array, ...extra, ...(job.options ?? []), script];
    // where the job runs is read from PWD, not from the directory itself
    const where = { cwd: directory, env: { PWD: directory } };
    const result = await calls.call("oarsub", words, { ...where, once: true, ...owners.as(job.user) });
    const elements = parseSubmitted(result.stdout);
    const [nativeId] = elements;
    if (oarIsTransient(result)) throw calls.unreachable(result);
    if (result.code !== 0 || nativeId === undefined) throw calls.refused(result);
    if (job.array !== undefined && elements.length !== job.array)
      throw new CommandError(`oarsub printed ${elements.length} ids for ${job.array} jobs`, result.argv, true);
    for (const id of elements) owners.note(id, job.user);
    return {
      nativeId,
      ...(job.array === undefined ? {} : { elements }),
      ...(result.stderr.trim() === "" ? {} : { note: refusalOf(result.stderr, "") }),
    };
  };

  const poll = async (nativeIds: readonly string[]): Promise<Map<string, JobStatus>> => {
    const jobs = await answers.find([...new Set(nativeIds)].filter(isId));
    const successors = new Map(jobs.flatMap(({ id, repeats }) => (repeats === undefined ? [] : [[repeats, id]])));
    const byId = new Map(jobs.map((job) => [job.id, job]));
    const statuses = new Map<string, JobStatus>();
    for (const id of nativeIds) {
      const job = byId.get(id);
      owners.note(id, job?.owner);
      statuses.set(id, job === undefined ? NO_SUCH_JOB : statusOfJob(job, successors.get(id)));
    }
    return statuses;
  };

  const remove = async (nativeIds: readonly string[]): Promise<void> => {
    const denied: string[] = [];
    for (const { ids, as } of owners.grouped(nativeIds)) {
      const result = await calls.call("oardel", ids, as);
      if (result.code === 0) continue;
      // it says the same of jobs that never were, and of those of others
      const others = [...result.stderr.matchAll(/Cannot frag (\d+)/g)].map(([, id]) => id!);
      if (others.length === 0 && !/REGISTERED/.test(result.stdout)) throw calls.unreachable(result);
      denied.push(...others);
    }
    if (denied.length === 0) return;
    const alive = [...(await poll(denied))].filter(([, { state }]) => state !== "ended");
    if (alive.length > 0)
      throw calls.refused(`job ${alive.map(([id]) => id).join(", ")} may not be deleted by this user`);
  };

  return {
    describe: () => describeOar(calls, memoryPerCoreProperty),

    submit: (job) => submitted(job, []),

    poll,

    cancel: (nativeIds) => remove([...new Set(nativeIds)].filter(isId)),

    list: async (namePrefix) => {
      const found = await answers.living(namePrefix);
      for (const { id, owner } of found) owners.note(id, owner);
      return found.map(({ id, name, array }) => ({ name, nativeId: id, ...(array === undefined ? {} : { array }) }));
    },

    tryOut: async (job) => {
      const { nativeId, note } = await submitted(job, ["--hold"]);
      await remove([nativeId]);
      // its deletion takes OAR a moment
      for (let tried = 0; tried < MOST_LOOKS; tried += 1) {
        if ((await poll([nativeId])).get(nativeId)?.state === "ended") break;
        await sleep(LOOK_MS);
      }
      return `OAR took it as job ${nativeId}, held, and deleted it again${note === undefined ? "" : ` (${note})`}`;
    },
  };
};
