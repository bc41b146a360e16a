import { chmod, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FRACTION } from "../../../core/resources.ts";
import { SlipwayError } from "../../../errors.ts";
import { type CommandOptions, type CommandResult, reaching, type RunCommand } from "../../commands.ts";
import type { JobRequest, JobStatus, Provider, Submitted } from "../../provider.ts";
import { isOarAnswer, parseNodes, parseOarstat, parseSubmitted, refusalOf, statusOfJob, type OarJob } from "./parse.ts";

/**
 * OAR. Its database keeps every job: one question answers a poll, for living and ended ones alike, and for those that
 * OAR started in the place of others. Queues cannot be listed by a user, so none are described.
 */
export interface OarOptions {
  readonly run: RunCommand;
  /** The directory of oarsub and its sisters; without it they are searched in PATH. */
  readonly bin?: string;
  /** In whose name `run` executes, when not in that of this process. */
  readonly user?: string;
  /** The property that tells a core's memory in MB, for `describe`. */
  readonly memoryPerCoreProperty?: string;
}

/** What may pass by itself. A job that could not be handed to the server was killed by oarsub, so it may be given again. */
export const oarIsTransient = (result: CommandResult): boolean =>
  result.code !== 0 &&
  /DB connection error|could not connect to server|connection to server|Cannot connect to executor|Could not connect to the socket|Connection refused/i.test(
    result.stderr,
  );

const LIVING = ["Waiting", "Hold", "toLaunch", "toError", "toAckReservation", "Launching", "Running"].concat([
  "Suspended",
  "Resuming",
  "Finishing",
]);

/** As many as a command line takes. */
const MOST_IDS = 5000;
const MOST_LOOKS = 60;
const LOOK_MS = 500;
const isId = (id: string): boolean => /^\d{1,9}$/.test(id);

export const createOarProvider = (options: OarOptions): Provider => {
  const me = options.user ?? userInfo().username;
  const program = (name: string): string => (options.bin === undefined ? name : join(options.bin, name));
  /** In whose name a job was submitted, when not in ours. */
  const owners = new Map<string, string>();

  const refused = ({ stderr, stdout }: CommandResult): SlipwayError =>
    new SlipwayError("cluster-refused", { cluster: "OAR", detail: refusalOf(stderr, stdout) });
  const unreachable = ({ stderr, stdout }: CommandResult): SlipwayError =>
    new SlipwayError("cluster-unreachable", { cluster: "OAR", detail: refusalOf(stderr, stdout) });
  const reach = reaching(options.run, "OAR");
  const call = (name: string, args: readonly string[], how: CommandOptions = {}): Promise<CommandResult> =>
    reach([program(name), ...args], how);

  const jobsWhere = async (condition: string): Promise<OarJob[]> => {
    const result = await call("oarstat", ["-J", "-f", "--sql", condition]);
    // no jobs is no error, but an error must not pass for no jobs
    if (
      result.code !== 0 ||
      !isOarAnswer(result.stdout) ||
      (result.stdout.trim() === "" && result.stderr.trim() !== "")
    )
      throw unreachable(result);
    return parseOarstat(result.stdout);
  };

  const poll = async (nativeIds: readonly string[]): Promise<Map<string, JobStatus>> => {
    const answers = new Map<string, JobStatus>();
    const ids = [...new Set(nativeIds)].filter(isId);
    const jobs: OarJob[] = [];
    for (let at = 0; at < ids.length; at += MOST_IDS) {
      const some = ids.slice(at, at + MOST_IDS).join(",");
      jobs.push(...(await jobsWhere(`job_id IN (${some}) OR resubmit_job_id IN (${some})`)));
    }
    const successors = new Map(jobs.flatMap(({ id, repeats }) => (repeats === undefined ? [] : [[repeats, id]])));
    const byId = new Map(jobs.map((job) => [job.id, job]));
    for (const id of nativeIds) {
      const job = byId.get(id);
      if (job !== undefined && job.owner !== me && job.owner !== "") owners.set(id, job.owner);
      answers.set(
        id,
        job === undefined
          ? { state: "ended", raw: "no such job", outcome: "unknown" }
          : statusOfJob(job, successors.get(id)),
      );
    }
    return answers;
  };

  const cancel = async (nativeIds: readonly string[]): Promise<void> => {
    const byOwner = new Map<string | undefined, string[]>();
    for (const id of new Set(nativeIds.filter(isId)))
      byOwner.set(owners.get(id), [...(byOwner.get(owners.get(id)) ?? []), id]);
    const denied: string[] = [];
    for (const [user, ids] of byOwner) {
      const result = await call("oardel", ids, user === undefined ? {} : { user });
      if (result.code === 0) continue;
      // it says the same of jobs that never were, and of those of others
      const others = [...result.stderr.matchAll(/Cannot frag (\d+)/g)].map(([, id]) => id!);
      if (others.length === 0 && !/REGISTERED/.test(result.stdout)) throw unreachable(result);
      denied.push(...others);
    }
    if (denied.length === 0) return;
    const alive = [...(await poll(denied))].filter(([, { state }]) => state !== "ended");
    if (alive.length > 0)
      throw new SlipwayError("cluster-refused", {
        cluster: "OAR",
        detail: `job ${alive.map(([id]) => id).join(", ")} may not be deleted by this user`,
      });
  };

  const submit = async (job: JobRequest, extra: readonly string[] = []): Promise<Submitted> => {
    const { script, directory } = job;
    if (script === undefined) throw new SlipwayError("internal", { detail: "a job for OAR has no script" });
    // OAR gives the path to a shell, at two places
    if (!/^[\w./@%+,:=-]+$/.test(script))
      throw new SlipwayError("cluster-refused", {
        cluster: "OAR",
        detail: `the path of the job's script has characters that OAR cannot take: ${script}`,
      });
    const { mode } = await stat(script);
    // executable for whoever may read it: else the job ends with 126
    if ((mode & 0o111) !== (mode & 0o444) >> 2) await chmod(script, (mode & 0o7777) | ((mode & 0o444) >> 2));
    const words = ["-S", ...extra, ...(job.options ?? []), script];
    const user = job.user === undefined || job.user === me ? {} : { user: job.user };
    // where the job runs is read from PWD, not from the directory itself
    const result = await call("oarsub", words, { cwd: directory, env: { PWD: directory }, once: true, ...user });
    const nativeId = parseSubmitted(result.stdout);
    if (oarIsTransient(result)) throw unreachable(result);
    if (result.code !== 0 || nativeId === undefined) throw refused(result);
    if (user.user !== undefined) owners.set(nativeId, user.user);
    return { nativeId, ...(result.stderr.trim() === "" ? {} : { note: refusalOf(result.stderr, "") }) };
  };

  return {
    describe: async () => {
      const [version, nodes] = await Promise.all([call("oarstat", ["-V"]), call("oarnodes", ["-J"])]);
      if (nodes.code !== 0) throw unreachable(nodes);
      const all = parseNodes(nodes.stdout, options.memoryPerCoreProperty);
      const most = (of: readonly number[]): number => Math.max(0, ...of);
      const gpus = most(all.map((node) => node.gpus));
      const memory = most(all.map((node) => node.memory));
      return {
        version: `OAR ${/:\s*(\S+)/.exec(version.stdout)?.[1] ?? ""}`.trim(),
        largest: {
          cpus: most(all.map(({ cores }) => cores)) * FRACTION,
          ...(memory === 0 ? {} : { mem: memory }),
          ...(gpus === 0 ? {} : { gpus: gpus * FRACTION }),
        },
      };
    },
    submit: (job) => submit(job),
    poll,
    cancel,
    list: async (namePrefix) => {
      const living = `state IN (${LIVING.map((state) => `'${state}'`).join(",")})`;
      // other characters have a meaning of their own to the database
      const named = /^[\w.-]+$/.test(namePrefix) ? ` AND job_name LIKE '${namePrefix.replaceAll("_", "\\_")}%'` : "";
      const jobs = await jobsWhere(living + named);
      const found = jobs.filter(({ name }) => name.startsWith(namePrefix));
      for (const { id, owner } of found) if (owner !== me && owner !== "") owners.set(id, owner);
      return found.map(({ id, name }) => ({ name, nativeId: id }));
    },
    tryOut: async (job) => {
      const { nativeId, note } = await submit(job, ["--hold"]);
      await cancel([nativeId]);
      // its deletion takes OAR a moment
      for (let tried = 0; tried < MOST_LOOKS; tried += 1) {
        if ((await poll([nativeId])).get(nativeId)?.state === "ended") break;
        await sleep(LOOK_MS);
      }
      return `OAR took it as job ${nativeId}, held, and deleted it again${note === undefined ? "" : ` (${note})`}`;
    },
  };
};
