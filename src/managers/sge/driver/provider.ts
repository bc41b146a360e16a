import { userInfo } from "node:os";
import { join } from "node:path";
import { SlipwayError } from "../../../errors.ts";
import { createCalls } from "../../calls.ts";
import { chunksOf } from "../../chunks.ts";
import { CommandError, type RunCommand } from "../../commands.ts";
import { createJobOwners } from "../../job-owners.ts";
import type { FoundJob, JobRequest, JobStatus, Provider, Submitted } from "../../provider.ts";
import { createSgeAnswers } from "./ask.ts";
import { describeSge } from "./description.ts";
import { isReplyLost, sgeIsTransient } from "./failures.ts";
import { createLastSight } from "./last-sight.ts";
import { elementId, parseSubmitted, refusalOf, rowsOf } from "./parse.ts";

/**
 * Grid Engine. A poll is one listing of the living and lately finished; jobs that have left it are looked up with one
 * bulk query of the accounting, and reasons of those that wait or are in error are asked for all at once, now and then.
 */
export interface SgeOptions {
  readonly run: RunCommand;
  /** The directory of qsub and its sisters; without it they are searched in PATH. */
  readonly bin?: string;
  /** SGE_ROOT, SGE_CELL and SGE_CLUSTER_NAME, where they are not in the environment already. */
  readonly root?: string;
  readonly cell?: string;
  readonly cluster?: string;
  /** In whose name `run` executes, when not in that of this process. */
  readonly user?: string;
  /** Milliseconds of any clock that only goes forward. */
  readonly now?: () => number;
}

const MOST_AT_ONCE = 500;
const NO_SUCH_ID: JobStatus = { state: "ended", raw: "no such id", outcome: "unknown" };
/** What qdel says of a job that it deletes, or that needs no deleting. */
const IS_ENDING = /has (deleted|registered)|does not exist|already in deletion/;

const isId = (id: string): boolean => /^\d+(\.\d+)?$/.test(id);

const variablesOf = ({ root, cell, cluster }: SgeOptions): Record<string, string> => ({
  ...(root === undefined ? {} : { SGE_ROOT: root }),
  ...(cell === undefined ? {} : { SGE_CELL: cell }),
  ...(cluster === undefined ? {} : { SGE_CLUSTER_NAME: cluster }),
});

export const createSgeProvider = (options: SgeOptions): Provider => {
  const { run, bin, now = () => performance.now() } = options;
  const env = variablesOf(options);
  const calls = createCalls({
    run,
    cluster: "Grid Engine",
    pathOf: (program) => (bin === undefined ? program : join(bin, program)),
    env: () => env,
    wordsOf: ({ stderr, stdout }) => refusalOf(stderr, stdout),
  });
  const owners = createJobOwners(options.user ?? userInfo().username);
  const lastSight = createLastSight(now);
  const answers = createSgeAnswers({ calls, owners, lastSight, now });

  const submitted = async (job: JobRequest, extra: readonly string[]): Promise<Submitted> => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for Grid Engine has no script" });
    // what can never be satisfied is refused, not queued for ever
    const array = job.array === undefined ? [] : ["-t", `1-${job.array}`];
    const words = ["-terse", "-w", "e", "-N", job.name, ...array, ...extra, ...(job.options ?? []), job.script];
    const result = await calls.call("qsub", words, { cwd: job.directory, once: true, ...owners.as(job.user) });
    const taken = parseSubmitted(result.stdout);
    if (result.code !== 0 && sgeIsTransient(result)) throw calls.unreachable(result);
    // the answer was lost: by its name it is looked for
    if (result.code !== 0 && isReplyLost(result))
      throw new CommandError(refusalOf(result.stderr, ""), result.argv, true);
    if (result.code !== 0 || taken === undefined) throw calls.refused(result);
    const elements = Array.from({ length: job.array ?? 0 }, (_, element) => elementId(taken.nativeId, element));
    for (const id of [taken.nativeId, ...elements].slice(job.array === undefined ? 0 : 1)) {
      lastSight.named(id, job.name);
      owners.note(id, job.user);
    }
    const found = elements.length === 0 ? {} : { elements };
    return { nativeId: taken.nativeId, ...found, ...(taken.note === "" ? {} : { note: taken.note }) };
  };

  const remove = async (ids: readonly string[]): Promise<void> => {
    for (const group of owners.grouped(ids))
      for (const some of chunksOf(group.ids, { ids: MOST_AT_ONCE })) {
        const result = await calls.call("qdel", [some.join(",")], group.as);
        const lines = `${result.stdout}\n${result.stderr}`.split("\n");
        const troubles = lines.filter((line) => line.trim() !== "" && !IS_ENDING.test(line));
        if (result.code !== 0 && troubles.length > 0) {
          const words = refusalOf(troubles.join("\n"), "");
          throw sgeIsTransient(result) ? calls.unreachable(words) : calls.refused(words);
        }
        for (const id of some) lastSight.deleted(id);
      }
  };

  return {
    describe: () => describeSge(calls),

    submit: (job) => submitted(job, []),

    poll: async (nativeIds) => {
      const statuses = new Map<string, JobStatus>();
      for (const id of nativeIds) {
        const status = isId(id) ? lastSight.endOf(id) : NO_SUCH_ID;
        if (status !== undefined) statuses.set(id, status);
      }
      const ids = [...new Set(nativeIds)].filter((id) => !statuses.has(id));
      if (ids.length === 0) return statuses;
      const rows = await answers.find(ids);
      const living = ids.flatMap((id) => rows.get(id) ?? []).filter(({ state }) => !state.includes("z"));
      const left = ids.filter((id) => rows.get(id)?.state.includes("z") ?? true);
      const history = await answers.history(left);
      // one listing and one further question at most
      if (left.length === 0) await answers.readReasons(living);
      for (const row of living) {
        owners.note(row.id, row.owner);
        statuses.set(row.id, lastSight.seen(row));
      }
      for (const id of left) {
        const status = history.get(id);
        const end = status === undefined ? lastSight.withoutRecord(id, rows.has(id)) : lastSight.ended(id, status);
        if (end.state === "ended") owners.forget(id);
        statuses.set(id, end);
      }
      return statuses;
    },

    cancel: (nativeIds) =>
      remove([...new Set(nativeIds)].filter((id) => isId(id) && lastSight.endOf(id) === undefined)),

    list: async (namePrefix) => {
      const found = new Map<string, FoundJob>();
      const listed = (await answers.living()).filter(({ name }) => name.startsWith(namePrefix));
      for (const { id, name, owner, array } of listed.flatMap(rowsOf)) {
        owners.note(id, owner);
        lastSight.named(id, name);
        found.set(id, { name, nativeId: id, ...(array === undefined ? {} : { array }) });
      }
      return [...found.values()];
    },

    tryOut: async (job) => {
      const { nativeId, note } = await submitted(job, ["-h"]);
      await remove([nativeId]);
      return `Grid Engine took it as job ${nativeId}, held, and deleted it again${note === undefined ? "" : ` (${note})`}`;
    },
  };
};
