import { randomUUID } from "node:crypto";
import { buildRun } from "../config/build-run.ts";
import type { ClustersConfig } from "../config/clusters-file.ts";
import { type RunDocument, readRunBody } from "../config/run-file.ts";
import type { ItemsInput } from "../config/task-items.ts";
import type { Resources } from "../core/resources.ts";
import { type Run, isFinishedRun } from "../core/run.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import type { State } from "../core/state.ts";
import { SlipwayError } from "../errors.ts";
import { readArchive } from "../archive/archive.ts";
import type { Engine } from "../server/engine.ts";
import type { Journal } from "../journal/journal.ts";
import { type OpenSubmission, type Submitted, createDrafts } from "./drafts.ts";
import { type FitOptions, createFitCheck } from "./fits.ts";
import { createPatience } from "./patience.ts";
import { skippedBy } from "./resume.ts";
import { type Redirected, type Redirects, redirectedOf } from "./redirects.ts";
import { compareItems, digestOf } from "./same-body.ts";
import { listForms, takeItems } from "./take-items.ts";
import { createTaskJobs } from "../config/resolve-jobs.ts";
import type { AccountRule } from "../scheduler/scheduler.ts";
import type { RunId } from "../core/ids.ts";

/**
 * Taking in a run. Everything is checked before it is taken; items stream through to the journal; one commit record
 * makes all of it visible (rule 7). A submission that is interrupted, or refused half way, leaves nothing. Requests
 * with the same uuid are one submission: their items are compared, the one that is ahead adds to the draft, and the
 * first to reach its end commits for all.
 */

const MOST_AT_ONCE = 64;

export interface SubmissionOptions {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly home: string;
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  /** What several agents share. */
  readonly shared: readonly AccountRule[];
  /** What a cluster's manager last said about its nodes. */
  readonly described: FitOptions["described"];
  /** Refuses groups that no queue could ever run: before anything is sent elsewhere, and again in the manager's words. */
  readonly places: { readonly check: (spec: RunSpec) => void };
  readonly redirects: Redirects;
  readonly mayTake: () => void;
  /** Bytes for the first tasks of a group with `mem: auto`. */
  readonly firstMemory: (group: GroupSpec) => number;
}

/** Amounts that will be learned begin with a share of a node. */
const withFirstAmounts = (spec: RunSpec, firstMemory: SubmissionOptions["firstMemory"]): RunSpec => ({
  ...spec,
  groups: spec.groups.map((group) =>
    group.auto?.mem === true ? { ...group, resources: { ...group.resources, mem: firstMemory(group) } } : group,
  ),
});

/** `redirected`: tasks that run here because their cluster cannot be used; `notices`: what was ignored, for people. */
export type Answer = Submitted & {
  readonly redirected?: readonly Redirected[];
  readonly notices?: readonly string[];
};

export type Submit = (lines: AsyncIterable<unknown>) => Promise<Answer>;

const differs = (uuid: string, run: RunId | undefined): never => {
  throw new SlipwayError("uuid-taken", { uuid, run: run ?? "that is being submitted" });
};

/** Groups of a document whose items follow it as a stream. */
const streamsOf = ({ value }: RunDocument): Map<number, ItemsInput> => {
  const streams = new Map<number, ItemsInput>();
  for (const [index, { each }] of value.tasks.entries())
    if (each?.stream !== undefined) streams.set(index, { kind: "stream", json: each.stream === "json" });
  return streams;
};

/** Clusters that its tasks may go to; undefined: the default one. */
const clustersOf = ({ value: { tasks, defaults } }: RunDocument): (string | undefined)[] =>
  tasks.map(({ cluster }) => cluster ?? defaults?.cluster);

/** Only what has ended can be resumed. */
const checkResumed = (state: State, id: RunId): void => {
  const live = state.runs.get(id);
  if (live === undefined && !state.archived.has(id)) throw new SlipwayError("no-such-run", { run: id });
  if (live !== undefined && !isFinishedRun(live))
    throw new SlipwayError("run-active", { run: id, detail: "only a run that has ended can be resumed" });
};

/** The run that another one resumes, whole. */
const resumedRun = async (state: State, home: string, id: RunId): Promise<Run> => {
  checkResumed(state, id);
  return state.runs.get(id) ?? readArchive(home, state.archived.get(id)!.file);
};

/** Rows of a draft that the run it resumes has done; undefined: it resumes none. */
const skippedIn = async (
  state: State,
  home: string,
  { run, spec, items }: OpenSubmission,
): Promise<readonly number[] | undefined> => {
  if (spec.resumes === undefined) return undefined;
  const old = await resumedRun(state, home, spec.resumes);
  const counted = spec.groups.map((group, index) =>
    group.items.kind === "list" ? { ...group, items: { ...group.items, count: items.get(index)?.length ?? 0 } } : group,
  );
  const { pairings } = state.drafts.get(run ?? 0) ?? {};
  return skippedBy({ spec: { ...spec, groups: counted }, items, ...(pairings && { pairings }) }, old);
};

export const createSubmission = (options: SubmissionOptions): Submit => {
  const { engine, journal, home, clusters, largest, shared, described, mayTake } = options;
  const { state } = engine;
  const { tasksPerRun } = clusters.limits;
  const patiently = createPatience(engine, journal, home);
  const fits = createFitCheck({ state, clusters, largest, shared, described });
  const resolveJobs = createTaskJobs(clusters);
  const skipped = (draft: OpenSubmission) => skippedIn(state, home, draft);
  const drafts = createDrafts({ engine, journal, tasksPerRun, mayTake, fits, patiently, skipped });
  let atOnce = 0;

  /** A request for a committed run: a repetition, unless it says something else. */
  const repeat = async (
    uuid: string,
    run: RunId,
    document: RunDocument,
    digest: string,
    lines: AsyncIterator<unknown>,
  ): Promise<Submitted> => {
    const live = state.runs.get(run);
    const summary = state.archived.get(run);
    const known = live?.digest ?? summary?.digest ?? "";
    // runs of an earlier version are identified by their uuid alone
    if (known !== "") {
      if (known !== digest) differs(uuid, run);
      const streams = streamsOf(document);
      if (streams.size > 0) {
        const { groups } = live ?? (await readArchive(home, summary!.file));
        const comparison = compareItems(
          (index) => groups[index]?.items,
          () => differs(uuid, run),
        );
        await takeItems(lines, streams, async (index, values) => {
          if (comparison.next(index, values).fresh.length > 0) differs(uuid, run);
        });
        comparison.end(streams.keys());
      }
    }
    await patiently(journal.appended, run);
    const done = document.value.resume === undefined ? {} : { skipped: live?.skipped ?? summary?.skipped ?? 0 };
    return { run, total: live?.total ?? summary?.total ?? 0, ...done };
  };

  /** Adds what a request has to a draft, and commits the draft at the request's end. */
  const give = async (
    draft: OpenSubmission,
    inputs: ReadonlyMap<number, ItemsInput>,
    lines: AsyncIterator<unknown>,
  ): Promise<Submitted> => {
    const { uuid } = draft;
    const comparison = compareItems(
      (index) => draft.items.get(index),
      () => differs(uuid, draft.run),
    );
    draft.requests += 1;
    try {
      await takeItems(lines, inputs, async (index, values, json) => {
        const { from, fresh } = comparison.next(index, values);
        if (fresh.length === 0) return;
        if (draft.ended === undefined) return drafts.add(draft, index, fresh, json, from);
        await draft.ended;
        differs(uuid, draft.run);
      });
      comparison.end(draft.lists);
      return await (draft.ended ??= drafts.commit(draft));
    } catch (error) {
      if (error instanceof RangeError)
        throw new SlipwayError(
          "bad-value",
          { where: "items", key: "each", detail: error.message, remedy: "Correct that item." },
          error,
        );
      throw error;
    } finally {
      draft.requests -= 1;
      if (draft.requests === 0 && draft.ended === undefined) drafts.drop(draft);
    }
  };

  const take = async (lines: AsyncIterator<unknown>, first: unknown): Promise<Answer> => {
    const document = readRunBody(first);
    const uuid = document.value.uuid ?? randomUUID();
    const digest = digestOf(first as object);
    // nothing may wait between here and the draft: requests with one uuid are one submission
    const redirect = await options.redirects.now(clustersOf(document));
    const known = state.byUuid.get(uuid);
    if (known !== undefined) return repeat(uuid, known, document, digest, lines);
    const built = buildRun(document, { limit: tasksPerRun });
    const inputs = new Map(built.items);
    options.places.check(built.spec);
    const { spec: resolved, notices } = resolveJobs(redirect(listForms(built.spec, inputs)), built.backends);
    options.places.check(resolved);
    const spec = withFirstAmounts(resolved, options.firstMemory);
    // refused before anything is taken
    if (spec.resumes !== undefined) checkResumed(state, spec.resumes);
    const draft = drafts.get(uuid) ?? drafts.begin(uuid, digest, spec, [...inputs.keys()]);
    if (draft.digest !== digest) differs(uuid, draft.run);
    const submitted = await give(draft, inputs, lines);
    return notices.length === 0 ? submitted : { ...submitted, notices };
  };

  return async (lines) => {
    if (atOnce >= MOST_AT_ONCE)
      throw new SlipwayError("bad-request", { detail: `more than ${MOST_AT_ONCE} submissions at once` });
    atOnce += 1;
    const iterator = lines[Symbol.asyncIterator]();
    try {
      const first = await iterator.next();
      if (first.done === true) throw new SlipwayError("bad-request", { detail: "the request is empty" });
      const submitted = await take(iterator, first.value);
      const redirected = redirectedOf(state.runs.get(submitted.run)?.groups ?? []);
      return redirected.length === 0 ? submitted : { ...submitted, redirected };
    } finally {
      atOnce -= 1;
    }
  };
};
