import { line } from "../../config/key-table.ts";

/** What only PBS understands. */
export const PBS_KEYS = { "select-options": line, place: line } as const;

export interface PbsQueue {
  readonly selectOptions?: string;
  readonly place?: string;
}
