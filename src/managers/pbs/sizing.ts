import type { Sizing } from "../../launch/plan/plan.ts";
import { AUXILIARY, rounded, type SizingInput } from "../../launch/plan/sizing.ts";

export interface PbsSizing {
  readonly sizing: Sizing;
  readonly chunks: number;
  /** Slots of a chunk. */
  readonly each: number;
  /** They were asked for as slots of a node. */
  readonly perNode: boolean;
  /** The resource that a chunk has `each` of. */
  readonly counted?: "ngpus" | "ncpus";
  readonly notes: readonly string[];
}

export const sizeForPbs = (input: SizingInput): PbsSizing => {
  const { slots, slotType } = input;
  const notes: string[] = [];
  if (slots === 0) return { sizing: AUXILIARY, chunks: 1, each: 0, perNode: false, notes };
  const each = input.slotsPerNode ?? 1;
  const chunks = rounded(slots, each, notes);
  const counted = slotType === "cpu" ? "ncpus" : input.gresSupported ? "ngpus" : undefined;
  if (counted === undefined) {
    notes.push(
      `gres_supported is false: the resource pool must see to it that each node has ${each} GPUs, and env must set CUDA_VISIBLE_DEVICES`,
    );
  }
  return {
    // chunks may share a node, unless they are scattered
    sizing: { slotType, slots: chunks * each, nodes: { min: 1, max: chunks } },
    chunks,
    each,
    perNode: input.slotsPerNode !== undefined,
    ...(counted === undefined ? {} : { counted }),
    notes,
  };
};
