import { encodeEvent, packr } from "./codec.ts";
import { apply } from "./apply.ts";
import { readEvent } from "./check.ts";
import type { Event, RanksEnded } from "./events.ts";
import { type Gang, type RankOutput, gangKey } from "./gangs.ts";
import { PackedItems, evaluateItemResources } from "./items.ts";
import { countLinks } from "./item-links.ts";
import { setLaterShapes } from "./later-shapes.ts";
import type { Launch } from "./launch.ts";
import { outcomeOf } from "./outcomes.ts";
import { type LostPage, restoreLostPage } from "./output-lost.ts";
import type { PeakPage } from "./peak.ts";
import { type RankPlace, restorePlaces } from "./rank-places.ts";
import { USAGE_COLUMNS, type UsagePage } from "./usage.ts";
import { keepAttempts } from "./past-attempts.ts";
import { type RetrySet, setsInUse } from "./retry-set.ts";
import { rowShapesOf } from "./row-shapes.ts";
import { type Attempt, type GroupInput, type Run, createRun, groupOf, isFinishedRun, ownMap } from "./run.ts";
import type { Condition, RunSpec } from "./spec.ts";
import { type Agent, type Effects, NO_EFFECTS, type Pilot, type RunSummary, type State } from "./state.ts";
import { Task } from "./states.ts";
import { type TaskJob, addTaskJob, isForgotten, isForgottenAgent } from "./task-job.ts";
import { bytesOfPage, restorePage } from "./table.ts";
import type { Row, RunId } from "./ids.ts";

/**
 * The state as records: what a snapshot holds instead of the events that led there. A run's own records are also what
 * its archive file holds. Numbers up to 99 are events, from 100 on parts of a snapshot.
 */

export interface StateRecord {
  readonly type: number;
  readonly payload: Uint8Array;
}

const Part = {
  STATE: 100,
  AGENT: 101,
  PILOT: 102,
  SUMMARY: 103,
  LAUNCH: 104,
  GANG: 105,
  TASK_JOB: 106,
  SUCCESSES: 107,
  RUN: 110,
  ITEMS: 111,
  PAGE: 112,
  HISTORY: 113,
  RUN_END: 114,
  LOST: 165,
  PEAKS: 166,
  MEMORY: 167,
  LEARNED: 168,
  AGENTS: 169,
  SETS: 175,
  CONTENTS: 176,
  USAGE: 170,
  PLACES: 171,
} as const;

/** Page bytes pass through this, so that whoever writes them may compress. */
export interface PageCodec {
  pack(bytes: Uint8Array): Uint8Array;
  unpack(bytes: Uint8Array): Uint8Array;
}

const HISTORY_PER_RECORD = 5000;

const record = (type: number, body: unknown): StateRecord => ({ type, payload: packr.pack(body) });

const bytesOf = (column: Float64Array | Uint32Array): Uint8Array =>
  new Uint8Array(column.buffer, column.byteOffset, column.byteLength);

/** Copies, because the source is a slice at any alignment. */
const numbersOf = (bytes: Uint8Array): Float64Array => new Float64Array(new Uint8Array(bytes).buffer);
const wordsOf = (bytes: Uint8Array): Uint32Array => new Uint32Array(new Uint8Array(bytes).buffer);

/** For a snapshot that did not count them: the sum over all attempts that it holds. */
const sumOutput = ({ table, history, rankOutputs }: Run): number => {
  let sum = 0;
  for (const page of table.pages)
    for (let slot = 0; slot < (page?.outBytes.length ?? 0); slot += 1)
      sum += page!.outBytes[slot]! + page!.errBytes[slot]!;
  for (const each of [history, rankOutputs])
    for (const list of each.values()) for (const { outBytes, errBytes } of list) sum += outBytes + errBytes;
  return sum;
};

function* inParts<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < list.length; from += HISTORY_PER_RECORD) yield list.slice(from, from + HISTORY_PER_RECORD);
}

export function* encodeRun(run: Run, pages: PageCodec): Generator<StateRecord> {
  yield record(Part.RUN, {
    id: run.id,
    uuid: run.uuid,
    spec: run.spec,
    submitted: run.submitted,
    started: run.started,
    finished: run.finished,
    ...(run.idle === 0 ? {} : { idle: run.idle }),
    canceled: run.canceled,
    unneeded: run.unneeded,
    ...(run.skipped === 0 ? {} : { skipped: run.skipped }),
    retries: run.retries,
    losses: run.losses,
    counts: [...run.counts],
    reasons: run.reasons,
    ...(run.digest === "" ? {} : { digest: run.digest }),
    outputBytes: run.outputBytes,
    ...(run.groups.some(({ cpu }) => cpu.tasks > 0)
      ? { cpu: run.groups.map(({ cpu: { tasks, cpuMs, tookMs, mostCores } }) => [tasks, cpuMs, tookMs, mostCores]) }
      : {}),
    ...(run.rankOutputs.size === 0 ? {} : { rankOutputs: [...run.rankOutputs] }),
    // earlier versions read means of durations here: for them nothing is known
    meanMs: -1,
    groups: run.groups.map(({ base, waits, done, failed, canceled }) => [base, waits, done, failed, canceled, -1]),
  });
  for (const group of run.groups)
    if (group.items !== undefined)
      for (const block of group.items.serialise())
        yield record(Part.ITEMS, { group: group.index, json: group.items.json, block });
  for (const [index, page] of run.table.pages.entries())
    if (page !== undefined) yield record(Part.PAGE, { index, bytes: pages.pack(bytesOfPage(page)) });
  let entries: [number, Attempt[]][] = [];
  for (const entry of run.history) {
    entries.push(entry);
    if (entries.length < HISTORY_PER_RECORD) continue;
    yield record(Part.HISTORY, entries);
    entries = [];
  }
  if (entries.length > 0) yield record(Part.HISTORY, entries);
  for (const [index, { stdout, stderr, reason }] of run.lost.pages)
    yield record(Part.LOST, {
      index,
      stdout: pages.pack(bytesOf(stdout)),
      stderr: pages.pack(bytesOf(stderr)),
      reason: pages.pack(reason),
    });
  for (const [index, { pages: sizes, by }] of run.peaks)
    yield record(Part.PEAKS, { index, pages: pages.pack(bytesOf(sizes)), by: pages.pack(by) });
  for (const [index, page] of run.usage) {
    const columns = USAGE_COLUMNS.map((name) => (page[name] === undefined ? null : pages.pack(bytesOf(page[name]))));
    yield record(Part.USAGE, { index, columns });
  }
  if (run.places.sets.length > 0) {
    const columns = [...run.places.pages].map(([index, page]) => [index, pages.pack(bytesOf(page))]);
    yield record(Part.PLACES, { sets: run.places.sets, columns });
  }
  for (const group of run.groups)
    for (const part of inParts([...group.memory].map(([row, { kills, mem }]) => [row, kills, mem])))
      yield record(Part.MEMORY, part);
  for (const { index, learned } of run.groups)
    if (learned !== undefined)
      yield record(Part.LEARNED, {
        index,
        versions: learned.versions.map(({ mem, timeRequest }) => [mem ?? null, timeRequest ?? null]),
        rows: pages.pack(learned.rows),
      });
  for (const group of run.groups) {
    const used = setsInUse(group);
    if (used !== undefined)
      yield record(Part.SETS, {
        index: group.index,
        sets: used.sets.map((set) => set ?? null),
        rows: pages.pack(used.rows),
      });
  }
  for (const { index, contents } of run.groups)
    if (contents !== undefined) yield record(Part.CONTENTS, { index, contents: pages.pack(bytesOf(contents)) });
  for (const part of inParts([...run.agents.values()])) yield record(Part.AGENTS, part);
  yield record(Part.RUN_END, run.id);
}

interface RunHeader {
  readonly id: number;
  readonly uuid: string;
  readonly spec: RunSpec;
  readonly submitted: number;
  readonly started: number;
  readonly finished: number;
  readonly idle?: number;
  readonly canceled: string;
  readonly unneeded: number;
  readonly skipped?: number;
  readonly retries: number;
  readonly losses: number;
  readonly counts: readonly number[];
  readonly reasons: readonly string[];
  readonly digest?: string;
  /** Absent in snapshots of earlier versions. */
  readonly outputBytes?: number;
  /** By group; absent where nothing was measured. */
  readonly cpu?: readonly (readonly [number, number, number, number])[];
  readonly rankOutputs?: readonly (readonly [number, RankOutput[]])[];
  readonly groups: readonly (readonly [number, number, number, number, number, number])[];
}

/** A run as its beginning and its items say it: without its pages. */
const beginRun = (header: RunHeader, items: ReadonlyMap<number, PackedItems>): Run => {
  const { spec } = header;
  const inputs = new Map<number, GroupInput>();
  for (const [index, store] of items) {
    const group = spec.groups[index]!;
    const rowShapes =
      group.itemResources === undefined
        ? undefined
        : rowShapesOf(group, (i) => evaluateItemResources(group, store, i), store.length);
    inputs.set(index, { items: store, rowShapes });
  }
  const run = createRun(header.id, header.uuid, spec, header.submitted, inputs);
  run.counts.set(header.counts);
  run.started = header.started;
  run.finished = header.finished;
  run.idle = header.idle ?? 0;
  run.canceled = header.canceled;
  run.unneeded = header.unneeded;
  run.skipped = header.skipped ?? 0;
  run.retries = header.retries;
  run.losses = header.losses;
  run.digest = header.digest ?? "";
  for (const [row, parts] of header.rankOutputs ?? []) run.rankOutputs = ownMap(run.rankOutputs).set(row, parts);
  for (const [id, reason] of header.reasons.entries()) {
    if (id === 0) continue;
    run.reasons[id] = reason;
    run.reasonIds = ownMap(run.reasonIds).set(reason, id);
  }
  for (const [index, [base, waits, done, failed, canceled]] of header.groups.entries())
    Object.assign(run.groups[index]!, { base, waits, done, failed, canceled });
  for (const [index, [tasks, cpuMs, tookMs, mostCores]] of (header.cpu ?? []).entries())
    Object.assign(run.groups[index]!.cpu, { tasks, cpuMs, tookMs, mostCores });
  return run;
};

/** Puts runs together again from their records, in the order in which encodeRun produced them. */
export const createRunDecoder = (pages: PageCodec): ((part: StateRecord) => Run | undefined) => {
  let header: RunHeader | undefined;
  let items = new Map<number, PackedItems>();
  let run: Run | undefined;

  /** Called when the first page comes, or at the end: all items are known then. */
  const build = (): Run => {
    if (header === undefined) throw new RangeError("a part of a run without its beginning");
    return (run ??= beginRun(header, items));
  };

  return ({ type, payload }) => {
    switch (type) {
      case Part.RUN:
        header = packr.unpack(payload) as RunHeader;
        items = new Map();
        run = undefined;
        return undefined;
      case Part.ITEMS: {
        const { group, json, block } = packr.unpack(payload) as { group: number; json: boolean; block: Uint8Array };
        let store = items.get(group);
        if (store === undefined) items.set(group, (store = new PackedItems(json)));
        store.addBlock(block);
        return undefined;
      }
      case Part.PAGE: {
        const { index, bytes } = packr.unpack(payload) as { index: number; bytes: Uint8Array };
        restorePage(build().table, index, pages.unpack(bytes));
        return undefined;
      }
      case Part.HISTORY:
        for (const [row, attempts] of packr.unpack(payload) as [number, Attempt[]][])
          keepAttempts(build(), row, attempts);
        return undefined;
      case Part.LOST: {
        const packed = packr.unpack(payload) as Record<keyof LostPage, Uint8Array> & { index: number };
        restoreLostPage(build(), packed.index, {
          stdout: numbersOf(pages.unpack(packed.stdout)),
          stderr: numbersOf(pages.unpack(packed.stderr)),
          reason: new Uint8Array(pages.unpack(packed.reason)),
        });
        return undefined;
      }
      case Part.PEAKS: {
        const packed = packr.unpack(payload) as Record<keyof PeakPage, Uint8Array> & { index: number };
        const sizes = wordsOf(pages.unpack(packed.pages));
        build().peaks.set(packed.index, { pages: sizes, by: new Uint8Array(pages.unpack(packed.by)) });
        return undefined;
      }
      case Part.USAGE: {
        const { index, columns } = packr.unpack(payload) as { index: number; columns: readonly (Uint8Array | null)[] };
        const page: Partial<Record<(typeof USAGE_COLUMNS)[number], Uint32Array>> = {};
        for (const [i, name] of USAGE_COLUMNS.entries()) if (columns[i]) page[name] = wordsOf(pages.unpack(columns[i]));
        build().usage.set(index, page as UsagePage);
        return undefined;
      }
      case Part.PLACES: {
        const packed = packr.unpack(payload) as { sets: RankPlace[]; columns: [number, Uint8Array][] };
        const { places } = build();
        restorePlaces(places, packed.sets);
        for (const [index, bytes] of packed.columns) places.pages.set(index, wordsOf(pages.unpack(bytes)));
        return undefined;
      }
      case Part.MEMORY:
        for (const [row, kills, mem] of packr.unpack(payload) as [Row, number, number][]) {
          const group = groupOf(build().groups, row);
          group.memory = ownMap(group.memory).set(row, { kills, mem });
        }
        return undefined;
      case Part.LEARNED: {
        const packed = packr.unpack(payload) as { index: number; versions: (number | null)[][]; rows: Uint8Array };
        build().groups[packed.index]!.learned = {
          versions: packed.versions.map(([mem, timeRequest]) => ({
            mem: mem ?? undefined,
            timeRequest: timeRequest ?? undefined,
            shapes: new Map(),
          })),
          rows: new Uint8Array(pages.unpack(packed.rows)),
        };
        return undefined;
      }
      case Part.SETS: {
        const packed = packr.unpack(payload) as { index: number; sets: (RetrySet | null)[]; rows: Uint8Array };
        build().groups[packed.index]!.sets = {
          sets: packed.sets.map((set) => set ?? undefined),
          rows: new Uint8Array(pages.unpack(packed.rows)),
        };
        return undefined;
      }
      case Part.CONTENTS: {
        const packed = packr.unpack(payload) as { index: number; contents: Uint8Array };
        build().groups[packed.index]!.contents = numbersOf(pages.unpack(packed.contents));
        return undefined;
      }
      case Part.AGENTS:
        for (const agent of packr.unpack(payload) as Agent[])
          build().agents = ownMap(build().agents).set(agent.id, agent);
        return undefined;
      case Part.RUN_END: {
        const done = build();
        done.outputBytes = header!.outputBytes ?? sumOutput(done);
        setLaterShapes(done);
        countLinks(done);
        run = undefined;
        header = undefined;
        return done;
      }
      default:
        throw new RangeError(`a run has no part of type ${type}`);
    }
  };
};

/** Everything except the runs in `skip`: those are in the archive, and only their summaries are here. */
export function* encodeState(
  state: State,
  summaries: ReadonlyMap<number, RunSummary>,
  pages: PageCodec,
): Generator<StateRecord> {
  yield record(Part.STATE, {
    epoch: state.epoch,
    nextRun: state.nextRun,
    nextAgent: state.nextAgent,
    nextPilot: state.nextPilot,
    nextLaunch: state.nextLaunch,
    nextTaskJob: state.nextTaskJob,
    links: [...state.runDependents],
    ...(state.lastStart === null ? {} : { lastStart: state.lastStart }),
  });
  const gone = (run: RunId): boolean => summaries.has(run) || !state.runs.has(run);
  for (const agent of state.agents.values()) if (!isForgottenAgent(state, agent, gone)) yield record(Part.AGENT, agent);
  for (const pilot of state.pilots.values()) yield record(Part.PILOT, pilot);
  for (const part of state.successes.encode()) yield record(Part.SUCCESSES, part);
  for (const job of state.taskJobs.values()) if (!isForgotten(job, gone)) yield record(Part.TASK_JOB, job);
  for (const launch of state.launches.values()) yield record(Part.LAUNCH, launch);
  for (const summary of state.archived.values()) if (!state.runs.has(summary.id)) yield record(Part.SUMMARY, summary);
  for (const summary of summaries.values()) yield record(Part.SUMMARY, summary);
  for (const run of state.runs.values()) if (!summaries.has(run.id)) yield* encodeRun(run, pages);
  for (const gang of state.gangs.values()) yield record(Part.GANG, { ...gang, ended: [...gang.ended.values()] });
  for (const draft of state.drafts.values()) {
    yield encodeEvent(draft.opened);
    for (const [group, store] of draft.items) {
      const items = [...store];
      for (let i = 0; i < items.length; i += 10_000)
        yield encodeEvent({
          type: "run.items",
          run: draft.opened.run,
          group,
          json: store.json,
          items: items.slice(i, i + 10_000),
        });
    }
  }
}

/** Sees the past as it is read; it must not carry anything out. */
export interface ReplayFollower {
  event(event: Event): void;
  readonly effects: Effects;
}

export interface ReplayHooks {
  /** Reads a run whose details are on disk, because it is needed whole again. */
  restore(summary: RunSummary): Run;
  readonly follow?: ReplayFollower;
}

/** Thrown by a replay that judged undecided losses by another limit than was used then: start again with this one. */
export class JudgedBefore extends Error {
  readonly limit: number;
  constructor(limit: number) {
    super(`losses before this were judged by a limit of ${limit}`);
    this.limit = limit;
  }
}

export interface ReplayRecords {
  (type: number, payload: Uint8Array): void;
  /** Call this after the last record. */
  end(): void;
}

/** Applies a journal's records, snapshot or events, to a state. Unknown record types of newer versions are an error. */
export const createReplay = (state: State, pages: PageCodec, hooks: ReplayHooks): ReplayRecords => {
  const decodeRun = createRunDecoder(pages);
  /** A snapshot of format 1 does not say who waits for which run. The events after it need to know. */
  let unlinked = false;
  const end = (): void => {
    if (unlinked) linkRuns(state);
    unlinked = false;
  };
  const replay = (type: number, payload: Uint8Array): void => {
    if (type < 100) {
      const event = readEvent(type, payload);
      end();
      if (event.type === "losses.judged" && state.undecided > 0 && event.limit !== state.lossLimit)
        throw new JudgedBefore(event.limit);
      bringBackFor(state, event, hooks);
      hooks.follow?.event(event);
      apply(state, event, hooks.follow?.effects ?? NO_EFFECTS);
      return;
    }
    switch (type) {
      case Part.STATE: {
        const { links, ...numbers } = packr.unpack(payload) as { readonly links?: Links };
        Object.assign(state, numbers);
        unlinked = links === undefined;
        for (const [id, list] of links ?? []) state.runDependents.set(id, list);
        return;
      }
      case Part.AGENT: {
        const agent = packr.unpack(payload) as Agent;
        state.agents.set(agent.id, agent);
        state.agentByUuid.set(agent.uuid, agent.id);
        return;
      }
      case Part.PILOT: {
        const pilot = packr.unpack(payload) as Pilot;
        state.pilots.set(pilot.id, pilot);
        return;
      }
      case Part.SUCCESSES:
        return state.successes.addPart(packr.unpack(payload) as { turn: number; entries: Uint8Array });
      case Part.TASK_JOB:
        return addTaskJob(state, packr.unpack(payload) as TaskJob);
      case Part.LAUNCH: {
        const launch = packr.unpack(payload) as Launch;
        state.launches.set(launch.id, launch);
        state.launchByUuid.set(launch.uuid, launch.id);
        return;
      }
      case Part.GANG: {
        const gang = packr.unpack(payload) as Omit<Gang, "ended"> & { readonly ended: readonly RanksEnded[] };
        const ended = new Map(gang.ended.map((event) => [event.agent, event]));
        state.gangs.set(gangKey(gang.run, gang.row), { ...gang, ended });
        return;
      }
      case Part.SUMMARY: {
        const summary = packr.unpack(payload) as RunSummary;
        state.archived.set(summary.id, summary);
        state.byUuid.set(summary.uuid, summary.id);
        return;
      }
      default: {
        const run = decodeRun({ type, payload });
        if (run === undefined) return;
        state.runs.set(run.id, run);
        if (!isFinishedRun(run)) state.live.add(run);
        state.byUuid.set(run.uuid, run.id);
      }
    }
  };
  return Object.assign(replay, { end });
};

type Links = readonly (readonly [number, { run: RunId; group: number; on: Condition }[]])[];

/** An event that changes a run whose details are on disk needs it whole, both live and in a replay. */
export const bringBackFor = (state: State, event: Event, hooks: Pick<ReplayHooks, "restore">): void => {
  if (event.type === "run.retried") bringBack(state, event.run, hooks);
  if (event.type !== "ranks.ended") return;
  try {
    bringBack(state, event.run, hooks);
  } catch {
    // the output position of a late rank is not worth a failed start: reading the run will report its damage
  }
};

/** Takes a run out of the archive so that it can change again. */
export const bringBack = (state: State, id: number, hooks: Pick<ReplayHooks, "restore">): void => {
  const summary = state.archived.get(id);
  if (summary === undefined || state.runs.has(id)) return;
  state.runs.set(id, hooks.restore(summary));
  state.archived.delete(id);
};

/**
 * Who waits for the end of which run, as far as the runs themselves show. A run that satisfied a dependency and was
 * reopened since looks as if others still waited for it: so snapshots hold the links, and this is only for those of
 * format 1.
 */
const linkRuns = (state: State): void => {
  state.runDependents.clear();
  for (const run of state.runs.values()) {
    if (isFinishedRun(run)) continue;
    for (const group of run.groups) {
      if (group.base !== Task.NEW || group.waits <= 0) continue;
      for (const dependency of group.spec.after) {
        if (!("run" in dependency) || outcomeOf(state, dependency.run) !== undefined) continue;
        const list = state.runDependents.get(dependency.run) ?? [];
        list.push({ run: run.id, group: group.index, on: dependency.on });
        state.runDependents.set(dependency.run, list);
      }
    }
  }
};

export const summarise = (run: Run, file: string): RunSummary => ({
  id: run.id,
  uuid: run.uuid,
  name: run.spec.name,
  total: run.total,
  submitted: run.submitted,
  started: run.started,
  finished: run.finished,
  ...(run.idle === 0 ? {} : { idle: run.idle }),
  canceled: run.canceled,
  unneeded: run.unneeded,
  ...(run.skipped === 0 ? {} : { skipped: run.skipped }),
  ...(run.spec.resumes === undefined ? {} : { resumes: run.spec.resumes }),
  retries: run.retries,
  losses: run.losses,
  counts: [...run.counts],
  numbering: run.spec.numbering,
  ...(run.digest === "" ? {} : { digest: run.digest }),
  ...(run.lost.tasks === 0 ? {} : { outputLost: { tasks: run.lost.tasks, bytes: run.lost.bytes } }),
  file,
});
