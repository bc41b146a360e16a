import type { SlotType } from "../../config/launch-keys.ts";
import type { Sizing } from "./plan.ts";

/**
 * How slots become a request. Both tables of the launcher's design, row by row; where the manager would refuse a row as
 * written, the request asks for what the row means, and a note says so.
 */
export interface SizingInput {
  readonly slots: number;
  readonly slotType: SlotType;
  readonly slotsPerNode?: number | undefined;
  readonly gpuType?: string | undefined;
  readonly tresSupported: boolean;
  readonly gresSupported: boolean;
  /** GPUs of the partition's largest node; 0 when unknown. */
  readonly gpusPerNode: number;
}

/** Nodes for this many slots; a note says what had to be rounded. */
export const rounded = (slots: number, perNode: number, notes: string[]): number => {
  const nodes = Math.ceil(slots / perNode);
  if (nodes * perNode !== slots) {
    notes.push(
      `${slots} slots are not a multiple of ${perNode} per node: the job asks for ${nodes * perNode} on ${nodes} nodes`,
    );
  }
  return nodes;
};

/** A job without slots of its own: one node, as little of it as the manager gives. */
export const AUXILIARY: Sizing = { slotType: "cpu", slots: 0, slotsPerNode: 0, nodes: { min: 1, max: 1 } };
