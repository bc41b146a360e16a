import { type PackedItems, checkItem } from "../core/items.ts";
import { type RunSpec, itemCount } from "../core/spec.ts";
import { SlipwayError } from "../errors.ts";
import type { Engine } from "../server/engine.ts";
import type { Journal } from "../journal/journal.ts";
import type { FitCheck } from "./fits.ts";
import { matchItems } from "./match-items.ts";
import type { Patience } from "./patience.ts";
import type { RunId } from "../core/ids.ts";

export interface Submitted {
  readonly run: RunId;
  readonly total: number;
  /** Tasks that the run it resumes has done; absent where it resumes none. */
  readonly skipped?: number;
}

/** A draft, and the requests that add to it: equal ones at the same time, or one that repeats an interrupted one. */
export interface OpenSubmission {
  readonly uuid: string;
  /** Given with the first item, or at the commit: what is refused before that uses up no id. */
  run: RunId | undefined;
  readonly digest: string;
  readonly spec: RunSpec;
  items: ReadonlyMap<number, PackedItems>;
  /** Groups whose items are lists. */
  readonly lists: readonly number[];
  isShort: boolean;
  requests: number;
  total: number;
  /** A request has reached its end: nothing more is taken, and all requests get this answer. */
  ended: Promise<Submitted> | undefined;
}

/**
 * Submissions that are not committed, by uuid: all requests with that uuid add their items to the same one.
 *
 *   begin ──► items are added ──► commit, by the first request at its end
 *                   └── the last request left before that: dropped
 */
export interface Drafts {
  get(uuid: string): OpenSubmission | undefined;
  begin(uuid: string, digest: string, spec: RunSpec, lists: readonly number[]): OpenSubmission;
  /** Adds items that no request has added yet, the first of them at `from`. */
  add(draft: OpenSubmission, group: number, values: readonly string[], json: boolean, from: number): Promise<void>;
  commit(draft: OpenSubmission): Promise<Submitted>;
  drop(draft: OpenSubmission): void;
}

export interface DraftsOptions {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly tasksPerRun: number;
  readonly mayTake: () => void;
  readonly fits: FitCheck;
  readonly patiently: Patience;
  /** Rows that the run it resumes has done, as ranges; undefined: it resumes none. */
  readonly skipped: (draft: OpenSubmission) => Promise<readonly number[] | undefined>;
}

/** Bytes that may wait for the disk before a stream of items is slowed down. */
const MOST_PENDING = 32 * 1024 * 1024;
/** A run without lists, no larger than this, shares one commit with its last record: one wait for the disk, not two. */
const SHORT_RUN = 64 * 1024;

/** Tasks that the document itself names; those of lists arrive with their items. */
const countNamed = ({ groups }: RunSpec): number =>
  groups.reduce((sum, { items }) => sum + (items.kind === "list" ? 0 : itemCount(items)), 0);

const NO_ITEMS: ReadonlyMap<number, PackedItems> = new Map();

const checkLists = ({ spec, items }: OpenSubmission): void => {
  for (const [index, group] of spec.groups.entries())
    if (group.items.kind === "list" && (items.get(index)?.length ?? 0) === 0)
      throw new SlipwayError("bad-value", {
        where: `tasks.${group.name}`,
        key: "each",
        detail: "has no items",
        remedy: "Give at least one line or value.",
      });
};

export const createDrafts = (options: DraftsOptions): Drafts => {
  const { engine, journal, fits, patiently, tasksPerRun } = options;
  const { state } = engine;
  const open = new Map<string, OpenSubmission>();

  const drop = (draft: OpenSubmission): void => {
    if (open.get(draft.uuid) === draft) open.delete(draft.uuid);
    if (draft.run !== undefined) state.drafts.delete(draft.run);
  };

  /** The run of a draft, from its first item on. */
  const opened = (draft: OpenSubmission): RunId => {
    if (draft.run !== undefined) return draft.run;
    const { uuid, spec, digest } = draft;
    const run = state.nextRun;
    const before = journal.pendingBytes;
    engine.commit({ type: "run.opened", at: engine.clock(), run, uuid, spec, digest });
    draft.run = run;
    draft.items = state.drafts.get(run)!.items;
    draft.isShort = draft.lists.length === 0 && journal.pendingBytes - before <= SHORT_RUN;
    return run;
  };

  return {
    get: (uuid) => open.get(uuid),
    begin: (uuid, digest, spec, lists) => {
      options.mayTake();
      fits.checkSpec(spec);
      const draft: OpenSubmission = {
        uuid,
        run: undefined,
        digest,
        spec,
        items: NO_ITEMS,
        lists,
        isShort: false,
        requests: 0,
        total: countNamed(spec),
        ended: undefined,
      };
      open.set(uuid, draft);
      return draft;
    },
    add: async (draft, index, values, json, from) => {
      const group = draft.spec.groups[index]!;
      for (const [i, value] of values.entries()) {
        const attempts = checkItem(group, value, json, from + i);
        if (group.itemResources !== undefined) fits.checkAttempts(group, attempts, `${from + i} of '${group.name}'`);
      }
      if (draft.total + values.length > tasksPerRun)
        throw new SlipwayError("too-many-tasks", { count: `more than ${tasksPerRun}`, limit: tasksPerRun });
      draft.total += values.length;
      const lsn = engine.commit({ type: "run.items", run: opened(draft), group: index, json, items: values });
      if (journal.pendingBytes > MOST_PENDING) await patiently(lsn);
    },
    commit: async (draft) => {
      const { uuid, total } = draft;
      try {
        checkLists(draft);
        options.mayTake();
        const run = opened(draft);
        await matchItems(state.drafts.get(run)!);
        // a large submission is on disk before its commit: until then "nothing was submitted" is true
        if (!draft.isShort) await patiently(journal.appended);
        const skipped = await options.skipped(draft);
        options.mayTake();
        const lsn = engine.commit({
          type: "run.committed",
          at: engine.clock(),
          run,
          ...(skipped === undefined || skipped.length === 0 ? {} : { skipped }),
        });
        open.delete(uuid);
        await patiently(lsn, run);
        const count = skipped?.reduce((sum, each, i) => (i % 2 === 1 ? sum + each : sum), 0);
        return { run, total, ...(count === undefined ? {} : { skipped: count }) };
      } finally {
        drop(draft);
      }
    },
    drop,
  };
};
