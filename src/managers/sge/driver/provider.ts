import { userInfo } from "node:os";
import { join } from "node:path";
import { FRACTION } from "../../../core/resources.ts";
import { SlipwayError } from "../../../errors.ts";
import { CommandError, type CommandOptions, type CommandResult, reaching, type RunCommand } from "../../commands.ts";
import type { JobRequest, JobStatus, Provider, Submitted } from "../../provider.ts";
import {
  parseHosts,
  parseQacct,
  parseQstat,
  parseQueueLimits,
  parseReasons,
  parseSubmitted,
  partitionsOf,
  refusalOf,
  statusOfRecord,
  statusOfRow,
  type SgeRow,
} from "./parse.ts";

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

/** What may pass by itself. A lost answer to qsub is not: the job may have been taken. */
export const sgeIsTransient = (result: CommandResult): boolean => {
  if (result.code === 0) return false;
  const text = `${result.stderr}\n${result.stdout}`;
  if (/unable to (send message to|contact) qmaster|commlib error|got select error|can't resolve host/i.test(text))
    return true;
  return isLost(result) && !isSubmission(result.argv);
};

const isLost = ({ stderr, stdout }: CommandResult): boolean =>
  /failed receiving gdi request|communication error|got read error/i.test(`${stderr}\n${stdout}`);

const isSubmission = (argv: readonly string[]): boolean => argv.some((word) => /(^|\/)qsub$/.test(word));

/** Its record may come later than the job's end: so long a job that was seen alive is not given up. */
const RECORD_PATIENCE_MS = 30_000;
/** How far back the accounting is searched for jobs of which nothing is known. */
const HISTORY_DAYS = 31;
/** How often reasons are read, and how often where a job waits whose reason is not known yet. */
const REASONS_PERIOD_MS = 30_000;
const NEW_REASONS_PERIOD_MS = 4000;
const MOST_REASONS = 100;
const MOST_IDS = 500;
const MOST_ENDED = 10_000;
const DAY_MS = 86_400_000;

const isId = (id: string): boolean => /^\d+$/.test(id);

/** As `qacct -b` reads it, in local time. */
const accountingTime = (time: Date): string => {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${time.getFullYear()}${two(time.getMonth() + 1)}${two(time.getDate())}`;
  return `${day}${two(time.getHours())}${two(time.getMinutes())}`;
};

/**
 * What `qacct` is asked for the records of all these jobs at once: a pattern of their names. Where one is not known, all
 * that started lately; jobs that were lost with their node have no start there and are missed.
 */
const recordsOf = (names: readonly (string | undefined)[]): string[] => {
  const known = names.filter((name) => name !== undefined && name !== "" && !/[*?[\]\\]/.test(name)) as string[];
  if (known.length < names.length) return ["-b", accountingTime(new Date(Date.now() - HISTORY_DAYS * DAY_MS)), "-j"];
  let common = known[0]!;
  for (const name of known) while (!name.startsWith(common)) common = common.slice(0, -1);
  return ["-j", known.every((name) => name === common) ? common : `${common}*`];
};

interface Seen {
  readonly name: string;
  /** When it was first missed in the listing. */
  gone?: number;
  dying: boolean;
  wasActive: boolean;
  /** It stood in error, with this reason. */
  error?: string;
  reason?: string;
}

export const createSgeProvider = (options: SgeOptions): Provider => {
  const now = options.now ?? (() => performance.now());
  const me = options.user ?? userInfo().username;
  const env: Record<string, string> = {
    ...(options.root === undefined ? {} : { SGE_ROOT: options.root }),
    ...(options.cell === undefined ? {} : { SGE_CELL: options.cell }),
    ...(options.cluster === undefined ? {} : { SGE_CLUSTER_NAME: options.cluster }),
  };
  const program = (name: string): string => (options.bin === undefined ? name : join(options.bin, name));
  const seen = new Map<string, Seen>();
  const ended = new Map<string, JobStatus>();
  /** In whose name a job was submitted, when not in ours. */
  const owners = new Map<string, string>();
  let lastReasons = -Infinity;

  const refused = ({ stderr, stdout }: CommandResult): SlipwayError =>
    new SlipwayError("cluster-refused", { cluster: "Grid Engine", detail: refusalOf(stderr, stdout) });
  const unreachable = ({ stderr, stdout }: CommandResult): SlipwayError =>
    new SlipwayError("cluster-unreachable", { cluster: "Grid Engine", detail: refusalOf(stderr, stdout) });
  const reach = reaching(options.run, "Grid Engine");
  const call = (name: string, args: readonly string[], how: CommandOptions = {}): Promise<CommandResult> =>
    reach([program(name), ...args], { ...how, env });
  const ask = async (name: string, ...args: string[]): Promise<string> => {
    const result = await call(name, args);
    if (result.code !== 0) throw unreachable(result);
    return result.stdout;
  };

  const remember = (id: string, name: string): Seen => {
    const known = seen.get(id) ?? { name, dying: false, wasActive: false };
    seen.set(id, known);
    return known;
  };
  const finish = (id: string, status: JobStatus): JobStatus => {
    seen.delete(id);
    owners.delete(id);
    if (ended.size >= MOST_ENDED) ended.delete(ended.keys().next().value!);
    ended.set(id, status);
    return status;
  };

  /** Rows by id; finished ones too, as long as the master remembers them. */
  const listing = async (ids: readonly string[]): Promise<Map<string, SgeRow>> => {
    // whose jobs these are is not known after a restart
    const users = ids.every((id) => seen.has(id)) ? [...new Set([me, ...owners.values()])].join(",") : "*";
    const rows = parseQstat(await ask("qstat", "-xml", "-s", "prsz", "-u", users));
    const byId = new Map<string, SgeRow>();
    // a job listed twice is alive where it is not finished
    for (const row of rows) if (!byId.has(row.id) || !row.state.includes("z")) byId.set(row.id, row);
    return byId;
  };

  const readReasons = async (rows: readonly SgeRow[]): Promise<void> => {
    const states = rows.map((row) => ({ row, status: statusOfRow(row), known: remember(row.id, row.name) }));
    const inError = states.filter(({ row, known }) => row.state.includes("E") && known.error === undefined);
    const waiting = states.filter(({ status }) => status.state === "queued" || status.state === "held");
    const isNew = waiting.some(({ known }) => known.reason === undefined);
    const isTime = now() - lastReasons >= (isNew ? NEW_REASONS_PERIOD_MS : REASONS_PERIOD_MS);
    const wanted = (isTime ? waiting : inError).slice(0, MOST_REASONS);
    if (wanted.length === 0) return;
    if (isTime) lastReasons = now();
    // some may have gone meanwhile: that is no error here
    const { stdout } = await call("qstat", ["-j", wanted.map(({ row }) => row.id).join(",")]);
    const reasons = parseReasons(stdout);
    for (const { row, known } of wanted) {
      const reason = reasons.get(row.id);
      if (reason === undefined) continue;
      known.reason = reason;
      if (row.state.includes("E")) known.error = reason;
    }
  };

  const readHistory = async (ids: readonly string[]): Promise<Map<string, JobStatus>> => {
    const found = new Map<string, JobStatus>();
    if (ids.length === 0) return found;
    const ours = owners.size === 0 && ids.every((id) => seen.has(id)) ? ["-o", me] : [];
    // fails where there is no accounting at all, or none yet
    const { stdout } = await call("qacct", [...ours, ...recordsOf(ids.map((id) => seen.get(id)?.name))]);
    const records = parseQacct(stdout);
    for (const id of ids) {
      const record = records.get(id);
      if (record !== undefined) found.set(id, statusOfRecord(record, seen.get(id)?.dying ?? false));
    }
    return found;
  };

  /** A job that neither the listing nor the accounting knows. */
  const withoutRecord = (id: string, isFinished: boolean): JobStatus => {
    const known = seen.get(id);
    if (known?.error !== undefined)
      return finish(id, { state: "ended", raw: "gone", outcome: "start-failed", reason: known.error });
    // what was deleted before it ran never reaches the accounting
    if (isFinished && known?.wasActive !== true)
      if (known === undefined || known.dying || (known.gone !== undefined && now() - known.gone > RECORD_PATIENCE_MS))
        return finish(id, { state: "ended", raw: "z", outcome: "cancelled", reason: "deleted before it started" });
    if (known === undefined || (known.gone !== undefined && now() - known.gone > RECORD_PATIENCE_MS))
      return finish(id, { state: "ended", raw: "gone", outcome: known?.dying === true ? "cancelled" : "unknown" });
    known.gone ??= now();
    return { state: "unknown", raw: "gone", reason: "not listed any more; its record is awaited" };
  };

  const poll = async (nativeIds: readonly string[]): Promise<Map<string, JobStatus>> => {
    const answers = new Map<string, JobStatus>();
    const ids = [...new Set(nativeIds)].filter((id) => {
      const status = isId(id) ? ended.get(id) : ({ state: "ended", raw: "no such id", outcome: "unknown" } as const);
      if (status !== undefined) answers.set(id, status);
      return status === undefined;
    });
    if (ids.length === 0) return answers;
    const rows = await listing(ids);
    const living = ids.map((id) => rows.get(id)).filter((row) => row !== undefined && !row.state.includes("z"));
    const left = ids.filter((id) => rows.get(id)?.state.includes("z") ?? true);
    const history = await readHistory(left);
    // one listing and one further question at most
    if (left.length === 0) await readReasons(living as SgeRow[]);
    for (const row of living as SgeRow[]) {
      const status = statusOfRow(row);
      const known = remember(row.id, row.name);
      delete known.gone;
      if (row.owner !== me && row.owner !== "") owners.set(row.id, row.owner);
      if (status.state === "active" || status.state === "suspended") known.wasActive = true;
      if (row.state.includes("d")) known.dying = true;
      const reason = status.state === "queued" || status.state === "held" ? known.reason : undefined;
      const stuck = row.state.includes("E") && known.error !== undefined;
      answers.set(row.id, {
        ...status,
        ...(reason === undefined ? {} : { reason }),
        ...(stuck ? { stuck } : {}),
      });
    }
    for (const id of left) {
      const status = history.get(id);
      answers.set(id, status === undefined ? withoutRecord(id, rows.has(id)) : finish(id, status));
    }
    return answers;
  };

  const cancel = async (nativeIds: readonly string[]): Promise<void> => {
    const byOwner = new Map<string | undefined, string[]>();
    for (const id of new Set(nativeIds.filter((id) => isId(id) && !ended.has(id)))) {
      const owner = owners.get(id);
      byOwner.set(owner, [...(byOwner.get(owner) ?? []), id]);
    }
    for (const [user, ids] of byOwner)
      for (let at = 0; at < ids.length; at += MOST_IDS) {
        const some = ids.slice(at, at + MOST_IDS);
        const result = await call("qdel", [some.join(",")], user === undefined ? {} : { user });
        const lines = `${result.stdout}\n${result.stderr}`.split("\n").filter((line) => line.trim() !== "");
        const problems = lines.filter(
          (line) => !/has (deleted|registered)|does not exist|already in deletion/.test(line),
        );
        if (result.code !== 0 && problems.length > 0) {
          const words = { ...result, stdout: "", stderr: problems.join("\n") };
          throw sgeIsTransient(result) ? unreachable(words) : refused(words);
        }
        for (const id of some) {
          const known = seen.get(id);
          if (known !== undefined) known.dying = true;
        }
      }
  };

  const submit = async (job: JobRequest, extra: readonly string[] = []): Promise<Submitted> => {
    if (job.script === undefined) throw new SlipwayError("internal", { detail: "a job for Grid Engine has no script" });
    // what can never be satisfied is refused, not queued for ever
    const words = ["-terse", "-w", "e", "-N", job.name, ...extra, ...(job.options ?? []), job.script];
    const user = job.user === undefined || job.user === me ? {} : { user: job.user };
    const result = await call("qsub", words, { cwd: job.directory, once: true, ...user });
    const submitted = parseSubmitted(result.stdout);
    if (result.code !== 0 && sgeIsTransient(result)) throw unreachable(result);
    // the answer was lost: by its name it is looked for
    if (result.code !== 0 && isLost(result)) throw new CommandError(refusalOf(result.stderr, ""), result.argv, true);
    if (result.code !== 0 || submitted === undefined) throw refused(result);
    remember(submitted.nativeId, job.name);
    if (user.user !== undefined) owners.set(submitted.nativeId, user.user);
    return { nativeId: submitted.nativeId, ...(submitted.note === "" ? {} : { note: submitted.note }) };
  };

  return {
    describe: async () => {
      const version = (await call("qstat", ["-help"])).stdout.split("\n", 1)[0]!.trim();
      const hosts = parseHosts(await ask("qhost", "-F", "-q", "-xml"));
      const names = [...new Set(hosts.flatMap(({ queues }) => queues.map(({ name }) => name)))];
      const limits = names.length === 0 ? "" : await ask("qconf", "-sq", names.join(","));
      const partitions = partitionsOf(hosts, parseQueueLimits(limits));
      const most = (of: readonly number[]): number => Math.max(0, ...of);
      const cpus = most(partitions.map(({ cpusPerNode }) => cpusPerNode));
      const gpus = most(hosts.map((host) => host.gpus));
      return {
        version: version === "" ? "Grid Engine" : version,
        largest: {
          cpus: cpus * FRACTION,
          mem: most(hosts.map(({ memory }) => memory)),
          ...(gpus === 0 ? {} : { gpus: gpus * FRACTION }),
        },
        partitions,
      };
    },
    submit: (job) => submit(job),
    poll,
    cancel,
    list: async (namePrefix) => {
      const rows = parseQstat(await ask("qstat", "-xml", "-s", "prs", "-u", "*"));
      const found = new Map<string, string>();
      for (const row of rows) {
        if (!row.name.startsWith(namePrefix) || row.state.includes("z")) continue;
        if (row.owner !== me && row.owner !== "") owners.set(row.id, row.owner);
        remember(row.id, row.name);
        found.set(row.id, row.name);
      }
      return [...found].map(([nativeId, name]) => ({ name, nativeId }));
    },
    tryOut: async (job) => {
      const { nativeId, note } = await submit(job, ["-h"]);
      await cancel([nativeId]);
      return `Grid Engine took it as job ${nativeId}, held, and deleted it again${note === undefined ? "" : ` (${note})`}`;
    },
  };
};
