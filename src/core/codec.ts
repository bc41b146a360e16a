import { Packr } from "msgpackr";
import { type PackedColumns, packResults, unpackResults } from "./columns.ts";
import type { Event } from "./events.ts";

/** Events as journal records: a type number, which never changes its meaning, and msgpack. */

const TYPES: Readonly<Record<Event["type"], number>> = {
  "server.started": 1,
  "run.opened": 2,
  "run.items": 3,
  "run.committed": 4,
  "run.canceled": 5,
  "run.retried": 6,
  "run.requests": 7,
  "tasks.assigned": 10,
  "tasks.returned": 11,
  "tasks.ended": 12,
  "ranks.ended": 13,
  "tasks.failed": 14,
  "tasks.skipped": 15,
  "inputs.seen": 16,
  "agent.joined": 20,
  "agents.lost": 21,
  "pilot.requested": 30,
  "pilot.changed": 31,
  "task-job.requested": 32,
  "task-job.changed": 33,
  "launch.requested": 40,
  "launch.changed": 41,
  "launch.removed": 42,
  "losses.judged": 50,
};

const NAMES = new Map(Object.entries(TYPES).map(([name, code]) => [code, name as Event["type"]]));

export const eventName = (type: number): Event["type"] | undefined => NAMES.get(type);

export const packr = new Packr({ useRecords: false, encodeUndefinedAsNil: false });

export interface EncodedEvent {
  readonly type: number;
  readonly payload: Uint8Array;
}

/** `packed` are the columns as they came from the agent, so results are not packed twice. */
export const encodeEvent = (event: Event, packed?: readonly PackedColumns[]): EncodedEvent => {
  const { type, ...rest } = event;
  const body = event.type === "tasks.ended" ? { ...rest, parts: packed ?? event.parts.map(packResults) } : rest;
  return { type: TYPES[type], payload: packr.pack(body) };
};

/** Undefined for a record type that this version does not know. */
export const decodeEvent = (type: number, payload: Uint8Array): Event | undefined => {
  const name = NAMES.get(type);
  if (name === undefined) return undefined;
  const body = packr.unpack(payload) as Record<string, unknown>;
  if (name === "tasks.ended") body["parts"] = (body["parts"] as PackedColumns[]).map(unpackResults);
  return { type: name, ...body } as unknown as Event;
};
