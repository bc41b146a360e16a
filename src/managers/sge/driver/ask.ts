import type { Calls } from "../../calls.ts";
import type { JobOwners } from "../../job-owners.ts";
import type { JobStatus } from "../../provider.ts";
import type { LastSight } from "./last-sight.ts";
import {
  parseQacct,
  parseQstat,
  parseReasons,
  rowsOf,
  type SgeListing,
  type SgeRow,
  statusOfRecord,
  statusOfRow,
} from "./parse.ts";

/** What Grid Engine is asked: listings of its jobs, why they wait, and the accounting of those that ended. */
export interface SgeAnswers {
  /** Rows by id, of these and perhaps others; finished ones too, as long as the master remembers them. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, SgeRow>>;
  /** Of everybody; `rowsOf` tells elements of an array apart. */
  living(): Promise<readonly SgeListing[]>;
  /** Notes with these jobs why they wait or are in error; it does not ask each time. */
  readReasons(rows: readonly SgeRow[]): Promise<void>;
  /** How these ended, as far as there are records. */
  history(ids: readonly string[]): Promise<ReadonlyMap<string, JobStatus>>;
}

export interface SgeAskOptions {
  readonly calls: Calls;
  readonly owners: JobOwners;
  readonly lastSight: LastSight;
  readonly now: () => number;
}

/** How far back the accounting is searched for unknown jobs. */
const HISTORY_DAYS = 31;
/** How often reasons are read, and how often where a job waits whose reason is not known yet. */
const REASONS_PERIOD_MS = 30_000;
const NEW_REASONS_PERIOD_MS = 4000;
const MOST_REASONS = 100;
const DAY_MS = 86_400_000;

/** The job or array that it belongs to. */
const wholeOf = (id: string): string => id.split(".")[0]!;

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

export const createSgeAnswers = ({ calls, owners, lastSight, now }: SgeAskOptions): SgeAnswers => {
  let lastReasons = -Infinity;
  const areKnown = (ids: readonly string[]): boolean => ids.every((id) => lastSight.of(id) !== undefined);

  return {
    find: async (ids) => {
      // whose jobs these are is not known after a restart
      const users = areKnown(ids) ? [owners.me, ...owners.others].join(",") : "*";
      const rows = parseQstat(await calls.ask("qstat", ["-xml", "-s", "prsz", "-u", users]));
      const byId = new Map<string, SgeRow>();
      // a job listed twice is alive where it is not finished
      const wanted = new Set(ids.map(wholeOf));
      for (const listing of rows) {
        if (!wanted.has(listing.id)) continue;
        for (const row of rowsOf(listing)) if (!byId.has(row.id) || !row.state.includes("z")) byId.set(row.id, row);
      }
      return byId;
    },

    living: async () =>
      parseQstat(await calls.ask("qstat", ["-xml", "-s", "prs", "-u", "*"])).filter(
        ({ state }) => !state.includes("z"),
      ),

    readReasons: async (rows) => {
      const states = rows.map((row) => ({ row, status: statusOfRow(row), sight: lastSight.named(row.id, row.name) }));
      const inError = states.filter(({ row, sight }) => row.state.includes("E") && sight.error === undefined);
      const waiting = states.filter(({ status }) => status.state === "queued" || status.state === "held");
      const isNew = waiting.some(({ sight }) => sight.reason === undefined);
      const isTime = now() - lastReasons >= (isNew ? NEW_REASONS_PERIOD_MS : REASONS_PERIOD_MS);
      const asked = isTime ? waiting : inError;
      // all elements of an array have one answer
      const jobs = [...new Set(asked.map(({ row }) => wholeOf(row.id)))].slice(0, MOST_REASONS);
      const wanted = asked.filter(({ row }) => jobs.includes(wholeOf(row.id)));
      if (wanted.length === 0) return;
      if (isTime) lastReasons = now();
      // some may be gone by now: that is not an error here
      const { stdout } = await calls.call("qstat", ["-j", jobs.join(",")]);
      const reasons = parseReasons(stdout);
      for (const { row, sight } of wanted) {
        const reason = reasons.get(wholeOf(row.id));
        if (reason === undefined) continue;
        sight.reason = reason;
        if (row.state.includes("E")) sight.error = reason;
      }
    },

    history: async (ids) => {
      const found = new Map<string, JobStatus>();
      if (ids.length === 0) return found;
      const ours = owners.others.length === 0 && areKnown(ids) ? ["-o", owners.me] : [];
      // fails where there is no accounting at all, or none yet
      const { stdout } = await calls.call("qacct", [...ours, ...recordsOf(ids.map((id) => lastSight.of(id)?.name))]);
      const records = parseQacct(stdout);
      for (const id of ids) {
        const record = records.get(id);
        if (record !== undefined) found.set(id, statusOfRecord(record, lastSight.of(id)?.dying ?? false));
      }
      return found;
    },
  };
};
