import type { Sizing } from "../../launch/plan/plan.ts";
import { AUXILIARY, rounded, type SizingInput } from "../../launch/plan/sizing.ts";

export interface SlurmSizing {
  readonly sizing: Sizing;
  /** `--name=value`, in the order of the table. */
  readonly options: readonly string[];
  readonly notes: readonly string[];
}

export const sizeForSlurm = (input: SizingInput): SlurmSizing => {
  const { slots, slotType, slotsPerNode, gpuType } = input;
  const notes: string[] = [];
  if (slots === 0) return { sizing: AUXILIARY, options: ["--nodes=1", "--ntasks=1"], notes };
  const typed = (amount: number): string => (gpuType === undefined ? String(amount) : `${gpuType}:${amount}`);
  if (gpuType !== undefined && (slotType === "cpu" || !input.gresSupported)) {
    notes.push(`gpu_type ${gpuType} is ignored: ${slotType === "cpu" ? "slots are CPUs" : "gres_supported is false"}`);
  }

  if (slotType !== "cpu" && input.tresSupported && input.gresSupported) {
    const total = slotsPerNode === undefined ? slots : rounded(slots, slotsPerNode, notes) * slotsPerNode;
    const most = slotsPerNode === undefined ? total : total / slotsPerNode;
    // Slurm refuses a smaller minimum: it checks only whether that minimum can have this many GPUs
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
    notes.push(
      `gres_supported is false: the resource pool or a constraint must see to it that each node has ${each} GPUs`,
    );
  }
  return {
    sizing: { slotType, slots: nodes * each, slotsPerNode: each, nodes: { min: nodes, max: nodes } },
    options,
    notes,
  };
};
