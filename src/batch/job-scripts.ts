import { BY_TRAP, commandWords } from "./environment-script.ts";

/**
 * The batch script: what the manager runs on the first node. It tells the job's id, finds the hosts and their slots,
 * starts one rank on each node, and writes the exit status as its last act.
 */
export interface JobScriptInput {
  readonly directives: readonly string[];
  readonly jobName: string;
  readonly directory: string;
  /** Of the pool, or of the cluster: variables and shell lines before everything else. */
  readonly environment: Readonly<Record<string, string>>;
  readonly prologue: readonly string[];
  /** Shell lines with which the manager's own programs are found. */
  readonly searchPath: readonly string[];
  /** Slots of each node (Slurm) or chunk (PBS); absent: as many GPUs as the node was given. */
  readonly each?: number | undefined;
  /** PBS: lines of the node file for each chunk. */
  readonly linesPerChunk: number;
}

const begin = (input: JobScriptInput, manager: string, id: string): string[] => [
  "#!/bin/bash",
  ...input.directives,
  "",
  "set -u",
  "umask 0022",
  `job=${commandWords([input.directory])}`,
  "",
  "finish() {",
  '  printf \'%s\\n\' "$1" >"$job/exit-code.part" && mv -f "$job/exit-code.part" "$job/exit-code"',
  '  exit "$1"',
  "}",
  "",
  `printf '%s\\n' "${id}" >"$job/native-id"`,
  `printf 'slipway: %s is job %s of ${manager}\\n' ${commandWords([input.jobName])} "${id}"`,
  "",
  ...Object.entries(input.environment).map(([name, value]) => `export ${name}=${commandWords([value])}`),
  ...input.searchPath,
  // what a prologue calls, such as conda, may use variables that are not set
  ...(input.prologue.length === 0 ? [] : ["set +u", ...input.prologue, "set -u"]),
];

/** Files that every rank reads; `slots` has a line for each line of `hosts`. */
const shared = (manager: "slurm" | "pbs", id: string): string[] => [
  'mapfile -t hosts <"$job/hosts"',
  'mapfile -t slots <"$job/slots"',
  "[ ${#hosts[@]} -gt 0 ] || { echo 'slipway: the job has no hosts' >&2; finish 125; }",
  "total=0",
  "least=${slots[0]}",
  "pairs=",
  "counts=",
  ': >"$job/hostfile"',
  'for at in "${!hosts[@]}"; do',
  "  total=$((total + slots[at]))",
  '  [ "${slots[at]}" -ge "$least" ] || least=${slots[at]}',
  "  pairs=$pairs${pairs:+,}${hosts[at]}:${slots[at]}",
  "  counts=$counts${counts:+,}$((slots[at] > 0 ? slots[at] : 1))",
  '  printf \'%s slots=%s\\n\' "${hosts[at]}" "$((slots[at] > 0 ? slots[at] : 1))" >>"$job/hostfile"',
  "done",
  `number=${id}`,
  "number=${number%%[!0-9]*}",
  "printf 'export %s\\n' \\",
  `  "SLIPWAY_JOB_ID='${id}'" "SLIPWAY_TOTAL_SLOTS=$total" "SLIPWAY_HOST_SLOTS=$pairs" \\`,
  // to its manager a rank is one task: MPI, which counts processes by that, is told the slots instead
  manager === "slurm"
    ? '  "SLURM_TASKS_PER_NODE=$counts" \\'
    : "  \"OMPI_MCA_ras='^tm'\" \"OMPI_MCA_orte_default_hostfile='$job/hostfile'\" \\",
  '  "MASTER_PORT=$((20000 + ${number:-0} % 12000))" >"$job/shared.sh"',
];

export const slurmScript = (input: JobScriptInput): string => {
  const each =
    input.each === undefined
      ? [
          "# how many GPUs each node was given, only the nodes know",
          'if [ "$nodes" -eq 1 ]; then',
          '  printf \'%s\\n\' "${SLURM_GPUS_ON_NODE:-0}" >"$job/slots"',
          "else",
          "  # shellcheck disable=SC2016",
          '  "${step[@]}" --label /bin/bash -c \'echo "${SLURM_GPUS_ON_NODE:-0}"\' | sort -n | sed \'s/^[^:]*: *//\' >"$job/slots"',
          "fi",
        ]
      : [`sed 's/.*/${input.each}/' "$job/hosts" >"$job/slots"`];
  return [
    ...begin(input, "Slurm", "$SLURM_JOB_ID"),
    "",
    "nodes=$SLURM_JOB_NUM_NODES",
    'scontrol show hostnames "$SLURM_JOB_NODELIST" >"$job/hosts" || finish 125',
    "# one task on each node",
    'step=(srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --export=ALL --kill-on-bad-exit=1)',
    '[ -z "${SLURM_CPUS_PER_TASK:-}" ] || step+=(--cpus-per-task="$SLURM_CPUS_PER_TASK")',
    ...each,
    ...shared("slurm", "$SLURM_JOB_ID"),
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
    'wait "$child"',
    "status=$?",
    'while kill -0 "$child" 2>/dev/null; do',
    '  wait "$child"',
    "  status=$?",
    "done",
    'if [ -z "$ending" ] && [ -s "$job/failed" ]; then status=$(cat "$job/failed"); fi',
    'finish "${ending:-$status}"',
    "",
  ].join("\n");
};

export const pbsScript = (input: JobScriptInput): string =>
  [
    ...begin(input, "PBS", "$PBS_JOBID"),
    "",
    "command -v pbs_tmrsh >/dev/null 2>&1 || PATH=$PATH:${PBS_EXEC:-/opt/pbs}/bin",
    "# a host has a line for each of its chunks",
    'awk \'!seen[$1]++ { print $1 }\' "$PBS_NODEFILE" >"$job/hosts"',
    `awk '{ if (!($1 in lines)) order[n++] = $1; lines[$1]++ } END { for (i = 0; i < n; i++) print int(lines[order[i]] / ${input.linesPerChunk} * ${input.each ?? 1}) }' "$PBS_NODEFILE" >"$job/slots"`,
    ...shared("pbs", "$PBS_JOBID"),
    "",
    "# nothing that is exported here reaches a rank: it reads this file",
    '(umask 077 && export -p >"$job/job-environment.sh")',
    "",
    "# ranks look into this file: what is written there tells them to end",
    ': >"$job/ending"',
    "ending=",
    "trap 'ending=143' TERM",
    "# after qdel pbs_tmrsh ends before its rank, whose file then tells that it still runs",
    "ranks_left() {",
    '  if [ -n "$ending" ]; then',
    '    compgen -G "$job/ranks/*/pid" >/dev/null',
    "  else",
    '    kill -0 "${pids[@]}" 2>/dev/null',
    "  fi",
    "}",
    "",
    "# killing pbs_tmrsh does not kill what it started, and after qdel it starts nothing more",
    "pids=()",
    'for at in "${!hosts[@]}"; do',
    '  pbs_tmrsh "${hosts[at]}" /bin/bash "$job/rank.sh" "$at" </dev/null &',
    "  pids+=($!)",
    "done",
    "left=${#pids[@]}",
    "status=0",
    'while [ "$left" -gt 0 ] && [ -z "$ending" ] && [ "$status" -eq 0 ]; do',
    "  wait -n",
    "  status=$?",
    '  if [ -n "$ending" ]; then break; fi',
    "  left=$((left - 1))",
    "done",
    'if [ -n "$ending" ] || [ "$status" -ne 0 ]; then',
    '  printf \'%s\\n\' "${ending:-$status}" >"$job/ending"',
    "  # this script's end would be theirs: they have the time to end by themselves",
    "  waited=0",
    '  while ranks_left && [ "$waited" -lt 200 ]; do',
    "    sleep 0.1",
    "    waited=$((waited + 1))",
    "  done",
    '  kill "${pids[@]}" 2>/dev/null',
    "fi",
    'finish "${ending:-$status}"',
    "",
  ].join("\n");
