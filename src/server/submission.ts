import { randomUUID } from "node:crypto";
import { buildRun } from "../config/build-run.ts";
import { type ClustersConfig, clusterNamed } from "../config/clusters-file.ts";
import { readRunBody } from "../config/run-file.ts";
import type { ItemsInput } from "../config/task-items.ts";
import { checkItem, storedJson } from "../core/items.ts";
import { type Resources, fromUnits, isByteResource } from "../core/resources.ts";
import type { Shape } from "../core/run.ts";
import type { GroupSpec, RunSpec } from "../core/spec.ts";
import { formatSize } from "../core/quantities.ts";
import { SlipwayError } from "../errors.ts";
import { concurrency, shortage } from "../scheduler/capacity.ts";
import type { Engine } from "./engine.ts";
import type { Journal } from "./journal/journal.ts";

/**
 * Taking a run in. Everything is checked before it is taken; items stream through to the journal; one commit record
 * makes all of it visible (rule 7). A submission that is cut short, or refused half way, leaves nothing.
 */

/** Items that share a record. */
const PER_RECORD = 5000;
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
const shown = (name: string, units: number): string =>
  name === "nodes" || name === "ranks"
    ? String(units)
    : isByteResource(name)
      ? formatSize(units)
      : String(fromUnits(name, units));

export const createSubmission = (
  options: SubmissionOptions,
): ((lines: AsyncIterable<unknown>) => Promise<{ run: number; total: number }>) => {
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
      amount: shown(worst.name, worst.asked),
      largest: shown(worst.name, worst.has),
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

  const take = async (lines: AsyncIterator<unknown>, first: unknown): Promise<{ run: number; total: number }> => {
    const document = readRunBody(first);
    const built = buildRun(document, { limit: options.clusters.limits.tasksPerRun });
    const uuid = built.uuid ?? randomUUID();
    const known = state.byUuid.get(uuid);
    if (known !== undefined) {
      // said before: it is the same run
      await engine.whenDurable();
      return { run: known, total: state.runs.get(known)?.total ?? state.archived.get(known)?.total ?? 0 };
    }
    options.mayTake();
    const inputs = new Map(built.items);
    const spec = listForms(built.spec, inputs);
    checkSpec(spec);
    const run = state.nextRun;
    const before = journal.pendingBytes;
    engine.commit({ type: "run.opened", at: engine.clock(), run, uuid, spec });
    const short = inputs.size === 0 && journal.pendingBytes - before <= SHORT_RUN;
    try {
      let total = spec.groups.reduce(
        (sum, { items }) => sum + (items.kind === "one" ? 1 : items.kind === "range" ? items.count : 0),
        0,
      );
      const counts = new Map<number, number>();
      const add = async (index: number, values: readonly string[], json: boolean): Promise<void> => {
        const group = spec.groups[index]!;
        const before = counts.get(index) ?? 0;
        for (const [i, value] of values.entries()) {
          const resources = checkItem(group, value, json, before + i);
          if (group.itemResources !== undefined) checkFits(group, resources, `${before + i} of '${group.name}'`);
        }
        counts.set(index, before + values.length);
        total += values.length;
        if (total > options.clusters.limits.tasksPerRun)
          throw new SlipwayError("too-many-tasks", {
            count: `more than ${options.clusters.limits.tasksPerRun}`,
            limit: options.clusters.limits.tasksPerRun,
          });
        const lsn = engine.commit({ type: "run.items", run, group: index, json, items: values });
        if (journal.pendingBytes > MOST_PENDING) await patiently(lsn);
      };
      await takeItems(lines, inputs, add);
      for (const [index, group] of spec.groups.entries())
        if (group.items.kind === "list" && (counts.get(index) ?? 0) === 0)
          throw new SlipwayError("bad-value", {
            where: `tasks.${group.name}`,
            key: "each",
            detail: "has no items",
            remedy: "Give at least one line or value.",
          });
      // what is large is on disk before its commit: until then "nothing was submitted" is true
      if (!short) await patiently(journal.appended);
      options.mayTake();
      const lsn = engine.commit({ type: "run.committed", at: engine.clock(), run });
      await patiently(lsn, run);
      return { run, total };
    } catch (error) {
      state.drafts.delete(run);
      if (error instanceof RangeError)
        throw new SlipwayError(
          "bad-value",
          { where: "items", key: "each", detail: error.message, remedy: "Correct that item." },
          error,
        );
      throw error;
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
    options.mayTake();
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
  add: (group: number, values: readonly string[], json: boolean) => Promise<void>,
): Promise<void> => {
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
        detail: "the request ended before its last line; nothing was submitted",
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
