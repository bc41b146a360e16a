import { resolve } from "node:path";
import type { BuiltRun } from "../config/build-run.ts";
import { type ClusterConfig, type ClustersConfig, clusterNamed } from "../config/clusters-file.ts";
import { createProblems, type Problems } from "../config/problems.ts";
import { createTaskJobs } from "../config/resolve-jobs.ts";
import type { RunDocument } from "../config/run-file.ts";
import { itemOf } from "../core/item.ts";
import { itemIn, itemsOf } from "../core/item-source.ts";
import { checkItem, resourcesByAttempt } from "../core/items.ts";
import { fromUnits, type Resources } from "../core/resources.ts";
import { type GroupSpec, itemCount } from "../core/spec.ts";
import { compileTask, expandTask } from "../core/task-template.ts";
import { SlipwayError } from "../errors.ts";
import type { SkipPlan } from "../skips/plan.ts";
import { createFitCheck } from "../submission/fits.ts";

/**
 * A run before it is submitted: how many tasks, what they ask for, where they would go, and how the first of them look.
 * Pure: by a clusters.yaml and what is known of its nodes, with or without a server.
 */

export interface PreviewContext {
  readonly clusters: ClustersConfig;
  /** What the largest node of each usable cluster offers. */
  readonly largest: ReadonlyMap<string, Resources>;
  readonly shared: Parameters<typeof createFitCheck>[0]["shared"];
  /** What a cluster's manager last said about its nodes; nothing, where nobody has asked it. */
  readonly described?: Parameters<typeof createFitCheck>[0]["described"];
  /** Whether an earlier run is there; all are, where nobody knows. */
  readonly hasRun?: (id: number) => boolean;
}

/** What has been read of a group's items. */
export interface SeenItems {
  count: number;
  readonly first: string[];
}

export interface TaskPreview {
  /** Its number in the run. */
  readonly task: number;
  readonly item: string | null;
  readonly command: readonly string[];
  readonly cwd: string;
}

export interface GroupPreview {
  readonly name: string;
  /** Null: its items are not known yet. */
  readonly tasks: number | null;
  readonly after: readonly string[];
  readonly cluster: string;
  readonly type: string;
  /** The queues it may go to. */
  readonly queues: readonly string[];
  readonly via: "pilot" | "job";
  /** For each task, of a task with ranks for each rank; amounts that depend on the item are those of its first. */
  readonly resources: Readonly<Record<string, number>>;
  /** Amounts that depend on the item or the attempt, as they were written. */
  readonly formulas: Readonly<Record<string, string>>;
  readonly ranks: number | null;
  readonly timeLimit: number | null;
  /** The first three tasks, placeholders filled in; {run} is known when it is submitted. */
  readonly first: readonly TaskPreview[];
  /** Of a group with outputs, where somebody has looked: which tasks would be skipped, and why the others run. */
  readonly skips?: SkipPlan;
}

export interface Preview {
  readonly name: string;
  readonly tasks: number | null;
  readonly groups: readonly GroupPreview[];
  /** What would be ignored. */
  readonly notices: readonly string[];
}

export const MOST_SHOWN = 3;

/** Stands for the id that the run has not got yet: no run ever has this one. */
const SOME_RUN = Number.MAX_SAFE_INTEGER;

/** A problem of an entry, at the key it concerns. */
const relocated = (document: RunDocument, index: number, error: SlipwayError): SlipwayError => {
  const { key, resource, where } = error.facts as { key?: string; resource?: string; where?: string };
  if (where !== undefined && !where.startsWith("tasks.")) return error;
  const known = error.code === "no-such-cluster" ? "cluster" : (key ?? resource ?? "run");
  const own = document.value.tasks[index] as Readonly<Record<string, unknown>>;
  const defaults = (document.value.defaults ?? {}) as Readonly<Record<string, unknown>>;
  const path =
    own[known] === undefined && defaults[known] !== undefined ? ["defaults", known] : ["tasks", index, known];
  const { where: place, at } = document.source.locate(path);
  return new SlipwayError(
    error.code,
    { ...error.facts, ...(where === undefined ? {} : { where: place }), ...(at === undefined ? {} : { at }) },
    error,
  );
};

/** The first tasks of a group, as far as their items are known. */
const firstTasks = (built: BuiltRun, group: GroupSpec, row: number, seen: SeenItems | undefined): TaskPreview[] => {
  const { items } = group;
  const many = items.kind === "list" ? (seen?.first.length ?? 0) : itemCount(items);
  const compiled = compileTask(group);
  const { numbering, cwd } = built.spec;
  const json = isJson(built, group);
  return Array.from({ length: Math.min(MOST_SHOWN, many) }, (_, i): TaskPreview => {
    const stored = seen?.first[i];
    const item = stored === undefined ? itemIn(itemsOf(group, undefined), i) : itemOf(stored, json, group.colsep);
    const task = numbering.start + (row + i) * numbering.step;
    const facts = { run: SOME_RUN, task, attempt: 1, item, cwd };
    const { argv, cwd: own } = expandTask(compiled, facts, resolve);
    const shown = (text: string): string => text.replaceAll(String(SOME_RUN), "{run}");
    return { task, item: item?.text ?? null, command: argv.map(shown), cwd: shown(own) };
  });
};

const isJson = ({ spec, items }: BuiltRun, group: GroupSpec): boolean => {
  const input = items.get(spec.groups.indexOf(group));
  return input !== undefined && ("json" in input ? input.json : input.kind === "json");
};

const amountsOf = (resources: Resources): Record<string, number> =>
  Object.fromEntries(Object.entries(resources).map(([name, units]) => [name, fromUnits(name, units)]));

export interface Previewer {
  /** Items of a list, in order; each is checked, and what it asks for too. */
  add(group: number, stored: readonly string[]): void;
  /** Throws all problems; else what would happen. */
  end(): Preview;
}

/** `built` is a document whose own problems are known. */
export const createPreviewer = (
  document: RunDocument,
  built: BuiltRun,
  { clusters, largest, shared, described = () => undefined, hasRun = () => true }: PreviewContext,
  problems: Problems = createProblems(),
): Previewer => {
  const known = { has: hasRun } as unknown as ReadonlyMap<number, never>;
  const none = { has: () => false } as unknown as ReadonlyMap<number, never>;
  const fits = createFitCheck({
    state: { runs: known, archived: none } as never,
    clusters,
    largest,
    shared,
    described,
  });
  const seen = new Map<number, SeenItems>();
  const resolveJobs = createTaskJobs(clusters);
  const notices: string[] = [];
  const attempt = <T>(index: number, read: () => T): T | undefined =>
    problems.take(() => {
      try {
        return read();
      } catch (error) {
        throw error instanceof SlipwayError ? relocated(document, index, error) : error;
      }
    });

  /** As it would be taken in, and its cluster. */
  const groups = built.spec.groups.map((written, index) =>
    attempt(index, () => {
      const sent = written.redirect === undefined ? written : { ...written, cluster: "local" };
      const cluster = clusterNamed(clusters, sent.cluster);
      const backend = built.backends.get(index);
      const backends = new Map(backend === undefined ? [] : [[0, backend]]);
      const resolved = resolveJobs({ ...built.spec, groups: [sent] }, backends);
      notices.push(...resolved.notices);
      const [group] = resolved.spec.groups;
      // what is redirected runs alone where it does not fit
      if (written.redirect === undefined) fits.checkSpec({ ...built.spec, groups: [group!] });
      return { group: group!, cluster };
    }),
  );

  const add = (index: number, stored: readonly string[]): void => {
    const written = built.spec.groups[index]!;
    const items = seen.get(index) ?? { count: 0, first: [] };
    seen.set(index, items);
    const group = groups[index]?.group ?? written;
    const json = isJson(built, written);
    for (const each of stored) {
      if (items.first.length < MOST_SHOWN) items.first.push(each);
      const attempts = checkItem(group, each, json, items.count);
      const task = `${items.count} of '${group.name}'`;
      items.count += 1;
      if (group.itemResources !== undefined && written.redirect === undefined)
        attempt(index, () => fits.checkAttempts(group, attempts, task));
    }
  };

  const groupView = (index: number, row: number, group: GroupSpec, cluster: ClusterConfig): GroupPreview => {
    const items = seen.get(index);
    const [item] = items?.first ?? [];
    const first =
      item === undefined || group.itemResources === undefined
        ? resourcesByAttempt(group, group.resources, undefined, false)[0]!
        : checkItem(group, item, isJson(built, built.spec.groups[index]!), 0)[0]!;
    return {
      name: group.name,
      tasks: group.items.kind === "list" ? (items?.count ?? null) : itemCount(group.items),
      after: group.after.map((each) => ("group" in each ? built.spec.groups[each.group]!.name : `run:${each.run}`)),
      cluster: cluster.name,
      type: cluster.type,
      queues: group.queue === undefined ? [...cluster.queues.keys()] : [group.queue],
      via: group.job === undefined ? "pilot" : "job",
      resources: amountsOf(first),
      formulas: { ...group.itemResources, ...group.attemptResources },
      ranks: group.ranks?.count ?? null,
      timeLimit: group.timeLimit ?? null,
      first: firstTasks(built, built.spec.groups[index]!, row, items),
    };
  };

  return {
    add,
    end: () => {
      problems.end();
      let row = 0;
      const views = groups.map((each, index) => {
        const view = groupView(index, row, each!.group, each!.cluster);
        row += view.tasks ?? 0;
        return view;
      });
      const counts = views.map(({ tasks }) => tasks);
      const tasks = counts.includes(null) ? null : counts.reduce<number>((sum, each) => sum + (each ?? 0), 0);
      return { name: built.spec.name, tasks, groups: views, notices };
    },
  };
};
