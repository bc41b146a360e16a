import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { buildRun } from "../config/build-run.ts";
import { type ClustersConfig, clusterNamed } from "../config/clusters-file.ts";
import { type RunDocument, readRunBody } from "../config/run-file.ts";
import type { ItemsInput } from "../config/task-items.ts";
import { type PackedItems, checkItem, storedJson } from "../core/items.ts";
import type { Resources } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import { formatResource } from "../core/quantities.ts";
import { SlipwayError } from "../errors.ts";
import { concurrency, shortage } from "../scheduler/capacity.ts";
import { readArchive } from "./archive/archive.ts";
import type { Engine } from "./engine.ts";
import type { Journal } from "./journal/journal.ts";
import { compareItems, digestOf } from "./same-body.ts";

/**
 * Taking a run in. Everything is checked before it is taken; items stream through to the journal; one commit record
 * makes all of it visible (rule 7). A submission that is cut short, or refused half way, leaves nothing. Requests with
 * one uuid are one submission: what they give is compared, whoever is ahead adds to the draft, and the first at its end
 * commits for all.
 */

/** Items that share a record. */
const PER_RECORD = 5000;
/** Items that are checked and taken in without a pause. */
const PER_PIECE = 1000;
const TURN_MS = 10;
/** A client waits this long for room on the disk before it is told that there is none. */
const FULL_PATIENCE_MS = 5000;
/** Bytes that may wait for the disk before a stream of items is slowed down. */
const MOST_PENDING = 32 * 1024 * 1024;
const MOST_AT_ONCE = 64;
/** A run without lists that is no longer than this shares one commit with its last record: one wait for the disk, not two. */
const SHORT_RUN = 64 * 1024;

export interface SubmissionOptions {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly home: string;
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  readonly mayTake: () => void;
}

/** An amount as a person reads it. */
const amountOf = (name: string, units: number): string =>
  name === "nodes" || name === "ranks" ? String(units) : formatResource(name, units);

export interface Submitted {
  readonly run: number;
  readonly total: number;
}

/** A draft, and the requests that give to it: equal ones at once, or one that repeats what was cut. */
interface OpenSubmission {
  readonly run: number;
  readonly digest: string;
  readonly spec: RunSpec;
  readonly items: ReadonlyMap<number, PackedItems>;
  /** Groups whose items are lists. */
  readonly lists: readonly number[];
  readonly isShort: boolean;
  requests: number;
  total: number;
  /** A request has come to its end: nothing more is taken, and all get this answer. */
  ended: Promise<Submitted> | undefined;
}

export const createSubmission = (
  options: SubmissionOptions,
): ((lines: AsyncIterable<unknown>) => Promise<Submitted>) => {
  const { engine, journal } = options;
  const { state } = engine;
  let atOnce = 0;

  const targetsOf = (group: GroupSpec): [string, Resources][] => {
    const cluster = clusterNamed(options.clusters, group.cluster);
    const largest = options.largest.get(cluster.name);
    if (largest === undefined)
      throw new SlipwayError("bad-value", {
        where: `tasks.${group.name}`,
        key: "cluster",
        detail: `'${cluster.name}' is of type ${cluster.type}, which this version cannot submit to yet`,
        remedy: "Use another cluster.",
      });
    return [[cluster.name, largest]];
  };

  /** Ranks stay within one pilot: its nodes must hold them all. */
  const tooFewNodes = (
    { ranks, queue }: GroupSpec,
    shape: Pick<Shape, "resources">,
    cluster: string,
    largest: Resources,
  ): { name: string; asked: number; has: number } | undefined => {
    if (ranks === undefined) return undefined;
    const queues = [...options.clusters.clusters.get(cluster)!.queues.values()];
    const nodes = Math.max(...queues.filter(({ name }) => (queue ?? name) === name).map((each) => each.nodes));
    if (ranks.nodes !== undefined && ranks.nodes > nodes) return { name: "nodes", asked: ranks.nodes, has: nodes };
    const room = concurrency(largest, shape);
    const most = ranks.nodes === undefined ? room * nodes : room * ranks.nodes;
    return ranks.count > most ? { name: "ranks", asked: ranks.count, has: most } : undefined;
  };

  /** Refuses what can never run anywhere, naming the resource, the amount and the largest there is. */
  const checkFits = (group: GroupSpec, resources: Resources, task: string): void => {
    const shape = { resources };
    let worst: { name: string; asked: number; has: number } | undefined;
    for (const [cluster, largest] of targetsOf(group)) {
      const lacks = shortage(largest, shape) ?? tooFewNodes(group, shape, cluster, largest);
      if (lacks === undefined) return;
      if (worst === undefined || (lacks.name === worst.name && lacks.has > worst.has)) worst = lacks;
    }
    if (worst === undefined) return;
    throw new SlipwayError("cannot-fit", {
      task,
      resource: worst.name,
      amount: amountOf(worst.name, worst.asked),
      largest: amountOf(worst.name, worst.has),
    });
  };

  const checkSpec = (spec: RunSpec): void => {
    for (const group of spec.groups) {
      for (const dependency of group.after)
        if ("run" in dependency && !state.runs.has(dependency.run) && !state.archived.has(dependency.run))
          throw new SlipwayError("no-such-run", { run: dependency.run });
      if (group.queue !== undefined) {
        const cluster = clusterNamed(options.clusters, group.cluster);
        if (!cluster.queues.has(group.queue))
          throw new SlipwayError("bad-value", {
            where: `tasks.${group.name}`,
            key: "queue",
            detail: `cluster '${cluster.name}' has no queue '${group.queue}'`,
            remedy: `Its queues: ${[...cluster.queues.keys()].join(", ")}.`,
          });
      }
      if (group.itemResources === undefined) checkFits(group, group.resources, `'${group.name}'`);
      else targetsOf(group);
    }
  };

  /** Arrays whose resources depend on the item become lists: each task has a shape of its own. */
  const listForms = (spec: RunSpec, inputs: Map<number, ItemsInput>): RunSpec => ({
    ...spec,
    groups: spec.groups.map((group, index): GroupSpec => {
      const { items } = group;
      if (items.kind !== "range" || group.itemResources === undefined) return group;
      const { from, step, count } = items;
      const values = {
        *[Symbol.iterator]() {
          for (let i = 0; i < count; i += 1) yield String(from + i * step);
        },
      };
      inputs.set(index, { kind: "values", json: false, count, values });
      return { ...group, items: { kind: "list", count } };
    }),
  });

  /** Submissions that are not committed, by uuid: all requests with that uuid give their items to the same one. */
  const open = new Map<string, OpenSubmission>();

  const differs = (uuid: string, run: number): never => {
    throw new SlipwayError("uuid-taken", { uuid, run });
  };

  /** A request for a run that is committed: the same one, unless it says something else. */
  const repeated = async (
    uuid: string,
    run: number,
    { value }: RunDocument,
    digest: string,
    lines: AsyncIterator<unknown>,
  ): Promise<Submitted> => {
    const live = state.runs.get(run);
    const summary = state.archived.get(run);
    const known = live?.digest ?? summary?.digest ?? "";
    // runs of an earlier version are known by their uuid alone
    if (known !== "") {
      if (known !== digest) differs(uuid, run);
      const streams = new Map<number, ItemsInput>();
      for (const [index, { each }] of value.tasks.entries())
        if (each?.stream !== undefined) streams.set(index, { kind: "stream", json: each.stream === "json" });
      if (streams.size > 0) {
        const { groups } = live ?? (await readArchive(options.home, summary!.file));
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
    return { run, total: live?.total ?? summary?.total ?? 0 };
  };

  const begin = (uuid: string, digest: string, spec: RunSpec, lists: readonly number[]): OpenSubmission => {
    options.mayTake();
    checkSpec(spec);
    const run = state.nextRun;
    const before = journal.pendingBytes;
    engine.commit({ type: "run.opened", at: engine.clock(), run, uuid, spec, digest });
    const made: OpenSubmission = {
      run,
      digest,
      spec,
      items: state.drafts.get(run)!.items,
      lists,
      isShort: lists.length === 0 && journal.pendingBytes - before <= SHORT_RUN,
      requests: 0,
      total: spec.groups.reduce(
        (sum, { items }) => sum + (items.kind === "one" ? 1 : items.kind === "range" ? items.count : 0),
        0,
      ),
      ended: undefined,
    };
    open.set(uuid, made);
    return made;
  };

  const drop = (uuid: string, draft: OpenSubmission): void => {
    if (open.get(uuid) === draft) open.delete(uuid);
    state.drafts.delete(draft.run);
  };

  /** Items that nobody has given yet. */
  const add = async (
    draft: OpenSubmission,
    index: number,
    values: readonly string[],
    json: boolean,
    from: number,
  ): Promise<void> => {
    const group = draft.spec.groups[index]!;
    for (const [i, value] of values.entries()) {
      const resources = checkItem(group, value, json, from + i);
      if (group.itemResources !== undefined) checkFits(group, resources, `${from + i} of '${group.name}'`);
    }
    if (draft.total + values.length > options.clusters.limits.tasksPerRun)
      throw new SlipwayError("too-many-tasks", {
        count: `more than ${options.clusters.limits.tasksPerRun}`,
        limit: options.clusters.limits.tasksPerRun,
      });
    draft.total += values.length;
    const lsn = engine.commit({ type: "run.items", run: draft.run, group: index, json, items: values });
    if (journal.pendingBytes > MOST_PENDING) await patiently(lsn);
  };

  /** The first request at its end commits for all of them. */
  const commit = async (uuid: string, draft: OpenSubmission): Promise<Submitted> => {
    const { run, spec, total } = draft;
    try {
      for (const [index, group] of spec.groups.entries())
        if (group.items.kind === "list" && (draft.items.get(index)?.length ?? 0) === 0)
          throw new SlipwayError("bad-value", {
            where: `tasks.${group.name}`,
            key: "each",
            detail: "has no items",
            remedy: "Give at least one line or value.",
          });
      // what is large is on disk before its commit: until then "nothing was submitted" is true
      if (!draft.isShort) await patiently(journal.appended);
      options.mayTake();
      const lsn = engine.commit({ type: "run.committed", at: engine.clock(), run });
      open.delete(uuid);
      await patiently(lsn, run);
      return { run, total };
    } finally {
      drop(uuid, draft);
    }
  };

  const take = async (lines: AsyncIterator<unknown>, first: unknown): Promise<Submitted> => {
    const document = readRunBody(first);
    const uuid = document.value.uuid ?? randomUUID();
    const digest = digestOf(first as object);
    const known = state.byUuid.get(uuid);
    if (known !== undefined) return repeated(uuid, known, document, digest, lines);
    const built = buildRun(document, { limit: options.clusters.limits.tasksPerRun });
    const inputs = new Map(built.items);
    const spec = listForms(built.spec, inputs);
    const draft = open.get(uuid) ?? begin(uuid, digest, spec, [...inputs.keys()]);
    if (draft.digest !== digest) differs(uuid, draft.run);
    const comparison = compareItems(
      (index) => draft.items.get(index),
      () => differs(uuid, draft.run),
    );
    draft.requests += 1;
    try {
      await takeItems(lines, inputs, async (index, values, json) => {
        const { from, fresh } = comparison.next(index, values);
        if (fresh.length === 0) return;
        if (draft.ended === undefined) return add(draft, index, fresh, json, from);
        await draft.ended;
        differs(uuid, draft.run);
      });
      comparison.end(draft.lists);
      return await (draft.ended ??= commit(uuid, draft));
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
      if (draft.requests === 0 && draft.ended === undefined) drop(uuid, draft);
    }
  };

  /** Waits for the disk, but not for ever when it is full; a `committed` run is then taken in when there is room. */
  const patiently = async (lsn: number, committed?: number): Promise<void> => {
    let timer: NodeJS.Timeout | undefined;
    const refusal = (): SlipwayError =>
      committed === undefined
        ? new SlipwayError("journal-full", { detail: "no room left", home: options.home })
        : new SlipwayError("journal-waits", { run: committed, home: options.home });
    const refuse = new Promise<never>((_, reject) => {
      timer = setInterval(() => {
        if (journal.state === "full") reject(refusal());
      }, FULL_PATIENCE_MS);
    });
    try {
      await Promise.race([engine.whenDurable(lsn), refuse]);
    } finally {
      clearInterval(timer);
    }
  };

  return async (lines) => {
    if (atOnce >= MOST_AT_ONCE)
      throw new SlipwayError("bad-request", { detail: `more than ${MOST_AT_ONCE} submissions at once` });
    atOnce += 1;
    const iterator = lines[Symbol.asyncIterator]();
    try {
      const first = await iterator.next();
      if (first.done === true) throw new SlipwayError("bad-request", { detail: "the request is empty" });
      return await take(iterator, first.value);
    } finally {
      atOnce -= 1;
    }
  };
};

/** Items given with the document, then those of the stream, up to its end. */
const takeItems = async (
  lines: AsyncIterator<unknown>,
  inputs: ReadonlyMap<number, ItemsInput>,
  take: (group: number, values: readonly string[], json: boolean) => Promise<void>,
): Promise<void> => {
  let since = performance.now();
  /** In pieces, with turns of the loop between them: others are not kept waiting for a long list. */
  const add = async (group: number, values: readonly string[], json: boolean): Promise<void> => {
    for (let from = 0; from < values.length; from += PER_PIECE) {
      if (performance.now() - since > TURN_MS) {
        await nextTurn();
        since = performance.now();
      }
      await take(group, values.slice(from, from + PER_PIECE), json);
    }
  };
  for (const [index, input] of inputs) {
    if (input.kind !== "values") continue;
    let batch: string[] = [];
    for (const value of input.values) {
      batch.push(value);
      if (batch.length < PER_RECORD) continue;
      await add(index, batch, input.json);
      batch = [];
    }
    if (batch.length > 0) await add(index, batch, input.json);
  }
  for (;;) {
    const line = await lines.next();
    if (line.done === true)
      throw new SlipwayError("bad-request", {
        detail: "the request ended before its last line and submitted nothing",
      });
    const value = line.value as { end?: unknown; group?: unknown; items?: unknown };
    if (value?.end === true) return;
    const { group, items } = value ?? {};
    const input = typeof group === "number" ? inputs.get(group) : undefined;
    if (input?.kind !== "stream" || !Array.isArray(items) || items.length > 100_000)
      throw new SlipwayError("bad-request", {
        detail: "a line of items must be {group, items: […]} of a group with each: {stream}",
      });
    const texts = items.map((item: unknown) => {
      if (input.json) return storedJson(item);
      if (typeof item !== "string")
        throw new SlipwayError("bad-request", { detail: "items of a text stream must be strings" });
      return item;
    });
    await add(group as number, texts, input.json);
  }
};
