import type { SlotType } from "../config/launch-keys.ts";
import type { Sizing } from "./plan.ts";

/**
 * How slots become a request. Both tables of the launcher's design, row by row; where a row as it is written would be
 * refused by the manager, what it means is asked for and said in a note.
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

export interface SlurmSizing {
  readonly sizing: Sizing;
  /** `--name=value`, in the order of the table. */
  readonly options: readonly string[];
  readonly notes: readonly string[];
}

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

const rounded = (slots: number, perNode: number, notes: string[]): number => {
  const nodes = Math.ceil(slots / perNode);
  if (nodes * perNode !== slots) {
    notes.push(
      `${slots} slots are no multiple of ${perNode} per node: ${nodes * perNode} on ${nodes} nodes are asked for`,
    );
  }
  return nodes;
};

/** A job without slots of its own: one node, as little of it as the manager gives. */
const AUXILIARY: Sizing = { slotType: "cpu", slots: 0, slotsPerNode: 0, nodes: { min: 1, max: 1 } };

export const sizeForSlurm = (input: SizingInput): SlurmSizing => {
  const { slots, slotType, slotsPerNode, gpuType } = input;
  const notes: string[] = [];
  if (slots === 0) return { sizing: AUXILIARY, options: ["--nodes=1", "--ntasks=1"], notes };
  const typed = (amount: number): string => (gpuType === undefined ? String(amount) : `${gpuType}:${amount}`);
  if (gpuType !== undefined && (slotType === "cpu" || !input.gresSupported)) {
    notes.push(
      `gpu_type ${gpuType} is not asked for: ${slotType === "cpu" ? "slots are CPUs" : "gres_supported is false"}`,
    );
  }

  if (slotType !== "cpu" && input.tresSupported && input.gresSupported) {
    const total = slotsPerNode === undefined ? slots : rounded(slots, slotsPerNode, notes) * slotsPerNode;
    const most = slotsPerNode === undefined ? total : total / slotsPerNode;
    // a smaller minimum is refused by Slurm: it looks at the minimum alone whether so many GPUs can be had
    const least = Math.min(most, Math.max(1, Math.ceil(total / (input.gpusPerNode || total))));
    if (least > 1) notes.push(`${total} GPUs need at least ${least} nodes of ${input.gpusPerNode}`);
    return {
      sizing: {
        slotType,
        slots: total,
        ...(slotsPerNode === undefined ? {} : { slotsPerNode }),
        nodes: slotsPerNode === undefined ? { min: least, max: total } : { min: most, max: most },
      },
      options: [
        `--gpus=${typed(total)}`,
        `--nodes=${least}-${total}`,
        "--tasks-per-node=1",
        ...(slotsPerNode === undefined ? [] : [`--gpus-per-task=${typed(slotsPerNode)}`]),
      ],
      notes,
    };
  }

  const each = slotsPerNode ?? 1;
  const nodes = rounded(slots, each, notes);
  const options = [`--nodes=${nodes}`, `--ntasks=${nodes}`];
  if (slotType !== "cpu" && input.gresSupported) options.push(`--gres=gpu:${typed(each)}`);
  if (slotType === "cpu" && slotsPerNode !== undefined) options.push(`--cpus-per-task=${each}`);
  if (slotType !== "cpu" && !input.gresSupported) {
    notes.push(`gres_supported is false: that each node has ${each} GPUs is up to the resource pool or a constraint`);
  }
  return {
    sizing: { slotType, slots: nodes * each, slotsPerNode: each, nodes: { min: nodes, max: nodes } },
    options,
    notes,
  };
};

export const sizeForPbs = (input: SizingInput): PbsSizing => {
  const { slots, slotType } = input;
  const notes: string[] = [];
  if (slots === 0) return { sizing: AUXILIARY, chunks: 1, each: 0, perNode: false, notes };
  const each = input.slotsPerNode ?? 1;
  const chunks = rounded(slots, each, notes);
  const counted = slotType === "cpu" ? "ncpus" : input.gresSupported ? "ngpus" : undefined;
  if (counted === undefined) {
    notes.push(
      `gres_supported is false: that each node has ${each} GPUs, and CUDA_VISIBLE_DEVICES, are up to the resource pool and env`,
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
