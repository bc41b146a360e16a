import { BY_TRAP, WAIT_FOR_CHILD } from "../../launch/plan/environment-script.ts";
import { beginScript, type JobScriptInput, sharedFiles } from "../../launch/plan/job-scripts.ts";

/** The batch script of a launch; without a number of slots a node has as many as it was given GPUs. */
export const slurmScript = (input: JobScriptInput, slotsPerNode: number | undefined): string => {
  const each =
    slotsPerNode === undefined
      ? [
          "# how many GPUs each node was given, only the nodes know",
          'if [ "$nodes" -eq 1 ]; then',
          '  printf \'%s\\n\' "${SLURM_GPUS_ON_NODE:-0}" >"$job/slots"',
          "else",
          "  # shellcheck disable=SC2016",
          '  "${step[@]}" --label /bin/bash -c \'echo "${SLURM_GPUS_ON_NODE:-0}"\' | sort -n | sed \'s/^[^:]*: *//\' >"$job/slots"',
          "fi",
        ]
      : [`sed 's/.*/${slotsPerNode}/' "$job/hosts" >"$job/slots"`];
  return [
    ...beginScript(input, "Slurm", "$SLURM_JOB_ID"),
    "",
    "nodes=$SLURM_JOB_NUM_NODES",
    'scontrol show hostnames "$SLURM_JOB_NODELIST" >"$job/hosts" || finish 125',
    "# one task on each node",
    'step=(srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --export=ALL --kill-on-bad-exit=1)',
    '[ -z "${SLURM_CPUS_PER_TASK:-}" ] || step+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")',
    ...each,
    ...sharedFiles("$SLURM_JOB_ID", '"SLURM_TASKS_PER_NODE=$counts"'),
    "# what a rank starts itself, with srun or by mpirun, shares what the rank has instead of waiting for its end",
    "{",
    "  echo 'export SLURM_OVERLAP=1 SLURM_MEM_PER_NODE=0'",
    "  echo 'unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU'",
    '  if [ -n "${SLURM_GPUS:-}" ]; then',
    "    echo 'unset SLURM_GPUS SLURM_GPUS_PER_TASK'",
    "    printf 'export SLURM_GPUS_PER_NODE=%s\\n' \"$least\"",
    "  fi",
    '} >>"$job/shared.sh"',
    "",
    "child=",
    "ending=",
    BY_TRAP,
    "end() {",
    "  ending=143",
    '  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null',
    "}",
    "trap end TERM",
    '"${step[@]}" /bin/bash "$job/rank.sh" &',
    "child=$!",
    ...WAIT_FOR_CHILD,
    'if [ -z "$ending" ] && [ -s "$job/failed" ]; then status=$(cat "$job/failed"); fi',
    'finish "${ending:-$status}"',
    "",
  ].join("\n");
};
