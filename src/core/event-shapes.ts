import type { Event } from "./events.ts";
import {
  type Shape,
  anything,
  both,
  either,
  flag,
  listOf,
  number,
  object,
  oneOf,
  optional,
  tableOf,
  text,
  whole,
  wrong,
} from "./shapes.ts";

/**
 * What apply needs from each event so that it cannot fail. Only that: an event that an earlier version wrote must pass,
 * and odd numbers that were once let in must not keep a server from starting.
 */

/** Rows are kept in 32 bits. */
export const MOST_ROWS = 0xffff_ffff;

const id = whole();
const row = whole(MOST_ROWS);

const pairs: Shape = (value, path) =>
  (value as unknown[]).length % 2 === 0 ? undefined : `${path} has an odd number of entries, not pairs`;

const rowRanges = listOf(object({ run: id, ranges: both(listOf(row), pairs) }));

/** One number for all rows, or an array of the right kind with one for each row. */
const column =
  (View: abstract new () => ArrayBufferView & { readonly length: number }, n: number): Shape =>
  (value, path) =>
    typeof value === "number" || (value instanceof View && value.length === n)
      ? undefined
      : wrong(path, value, `a number or a column of ${n}`);

const detail: Shape = (value, path) =>
  Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "string"
    ? undefined
    : wrong(path, value, "a pair of index and text");

const results: Shape = (value, path) => {
  const about = object({ run: id, details: listOf(detail) })(value, path);
  if (about !== undefined) return about;
  const { rows } = value as { rows: unknown };
  if (!(rows instanceof Uint32Array)) return wrong(`${path}.rows`, rows, "a column of rows");
  const n = rows.length;
  return object({
    attempt: column(Uint16Array, n),
    ending: column(Uint8Array, n),
    code: column(Int16Array, n),
    started: column(Float64Array, n),
    finished: column(Float64Array, n),
    outAt: column(Float64Array, n),
    outBytes: column(Float64Array, n),
    errBytes: column(Float64Array, n),
    peak: optional(column(Uint32Array, n)),
    peakBy: optional(column(Uint8Array, n)),
    cpu: optional(column(Uint32Array, n)),
    system: optional(column(Uint32Array, n)),
    read: optional(column(Uint32Array, n)),
    written: optional(column(Uint32Array, n)),
  })(value, path);
};

const axis = object({
  name: text,
  ranges: optional(listOf(object({ from: number, step: number, count: row }))),
  values: optional(listOf(text)),
});

const items: Shape = (value, path) => {
  const kind = object({ kind: oneOf("one", "range", "list", "matrix") })(value, path);
  if (kind !== undefined || (value as { kind: string }).kind === "one") return kind;
  const isMatrix = (value as { kind: string }).kind === "matrix";
  return object({ count: row, ...(isMatrix ? { axes: listOf(axis) } : {}) })(value, path);
};

const condition = oneOf("ok", "any", "failed");
const match = either(oneOf("same"), object({ by: text }));
const resources = tableOf(number);

const group = object({
  name: text,
  command: either(text, listOf(text)),
  items,
  colsep: optional(text),
  after: listOf(
    either(object({ group: id, on: condition, items: optional(match) }), object({ run: id, on: condition })),
  ),
  resources,
  itemResources: optional(tableOf(text)),
  attemptResources: optional(tableOf(text)),
  auto: optional(object({ mem: optional(flag), timeRequest: optional(flag) })),
  env: optional(tableOf(text)),
  cwd: optional(text),
  stdout: optional(text),
  stderr: optional(text),
  outputs: optional(listOf(text)),
  inputs: optional(listOf(text)),
  skip: optional(text),
  timeLimit: optional(number),
  timeRequest: optional(number),
  priority: number,
  retries: number,
  memRetry: optional(number),
  retryDelay: number,
  cluster: optional(text),
  queue: optional(text),
  ranks: optional(object({ count: id, nodes: optional(id) })),
  redirect: optional(object({ from: optional(text), cause: optional(text), here: resources })),
});

interface Waits {
  readonly groups: readonly { readonly after: readonly { readonly group?: number }[] }[];
}

/** Groups wait only for groups that exist. */
const ordered: Shape = (value, path) => {
  const { groups } = value as Waits;
  const bad = groups.findIndex(({ after }) => after.some((one) => (one.group ?? 0) >= groups.length));
  return bad < 0 ? undefined : `${path}.groups[${bad}].after names a group that is not there`;
};

const spec = both(
  object({
    name: text,
    cwd: text,
    env: tableOf(text),
    groups: listOf(group),
    maxFails: optional(number),
    resumes: optional(id),
    force: optional(flag),
    numbering: object({ start: number, step: number }),
  }),
  ordered,
);

const ranksEnded = {
  run: id,
  row,
  attempt: number,
  agent: id,
  ending: number,
  code: number,
  detail: text,
  outAt: number,
  outBytes: number,
  errBytes: number,
  lost: optional(object({ stdout: number, stderr: number, reason: number })),
  peak: optional(object({ bytes: number, by: number })),
  cpu: optional(number),
  system: optional(number),
  read: optional(number),
  written: optional(number),
};

const givenUp = listOf(object({ run: id, rows: listOf(row) }));

const grown = listOf(object({ run: id, rows: listOf(row), mem: listOf(number) }));

const SHAPES: Readonly<Record<Event["type"], Shape>> = {
  "server.started": object({ at: number, epoch: id }),
  "run.opened": object({ at: number, run: id, uuid: text, spec }),
  "run.items": object({ run: id, group: id, json: flag, items: listOf(text) }),
  "run.committed": object({ at: number, run: id, skipped: optional(both(listOf(row), pairs)) }),
  "run.canceled": object({ at: number, run: id, rows: optional(listOf(row)), reason: text }),
  "run.retried": object({
    at: number,
    run: id,
    which: oneOf("failed", "all"),
    rows: optional(both(listOf(row), pairs)),
    set: optional(
      object({
        resources: optional(resources),
        timeLimit: optional(number),
        timeRequest: optional(number),
        retries: optional(id),
      }),
    ),
  }),
  "run.requests": object({ at: number, run: id, group: id, mem: optional(id), timeRequest: optional(number) }),
  "tasks.assigned": object({
    at: number,
    agent: id,
    parts: rowRanges,
    ahead: optional(rowRanges),
    gang: optional(object({ agents: listOf(id), ranks: listOf(id) })),
  }),
  "tasks.returned": object({ at: number, agent: id, parts: rowRanges }),
  "tasks.ended": object({
    at: number,
    agent: id,
    seq: id,
    parts: listOf(results),
    givenUp: optional(givenUp),
    grown: optional(grown),
  }),
  "ranks.ended": object({ at: number, ...ranksEnded }),
  "tasks.failed": object({ at: number, reason: text, parts: rowRanges }),
  "tasks.skipped": object({ at: number, parts: rowRanges }),
  "inputs.seen": object({ at: number, run: id, rows: listOf(row), contents: listOf(number) }),
  "agent.joined": object({
    at: number,
    agent: id,
    uuid: text,
    pilot: id,
    host: text,
    resources,
    output: text,
    taskJob: optional(object({ id, element: id })),
    seq: id,
  }),
  "agents.lost": object({
    at: number,
    agents: listOf(id),
    reason: text,
    givenUp: optional(givenUp),
    started: optional(
      listOf(object({ run: id, rows: listOf(row), at: listOf(number), outAt: optional(listOf(number)) })),
    ),
  }),
  "losses.judged": object({ at: number, limit: number }),
  "pilot.requested": object({ at: number, pilot: id, cluster: text, queue: text, jobName: text, why: optional(text) }),
  "pilot.changed": object({ at: number, pilot: id, state: text }),
  "task-job.requested": object({
    at: number,
    job: id,
    cluster: text,
    queue: text,
    jobName: text,
    run: id,
    rows: listOf(row),
  }),
  "task-job.changed": object({
    at: number,
    job: id,
    nativeId: optional(text),
    nativeIds: optional(listOf(text)),
    elements: optional(listOf(id)),
    state: optional(oneOf("requested", "queued", "spent", "ended")),
    reason: optional(text),
    takenBack: optional(flag),
  }),
  "launch.requested": object({
    at: number,
    launch: id,
    uuid: text,
    cluster: text,
    user: text,
    directory: text,
    files: object({}),
    about: object({}),
  }),
  "launch.changed": object({ at: number, launch: id, hosts: optional(listOf(text)) }),
  "launch.removed": object({ at: number, launch: id }),
};

/** Why an event can never be applied, naming the field; undefined when it can. */
export const shapeProblem = (event: Event): string | undefined => (SHAPES[event.type] ?? anything)(event, "");
