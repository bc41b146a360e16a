import { commandWords } from "./environment-script.ts";

/**
 * What the batch scripts of all managers share: what runs on the first node. It writes down the job's id, finds the
 * hosts and their slots, starts one rank on each node, and writes the exit status as its last act.
 */
export interface JobScriptInput {
  readonly directives: readonly string[];
  readonly jobName: string;
  readonly directory: string;
  /** Of the pool or the cluster: variables and shell lines that come before everything else. */
  readonly environment: Readonly<Record<string, string>>;
  readonly prologue: readonly string[];
  /** Shell lines that help find the manager's own programs. */
  readonly searchPath: readonly string[];
}

/** Everything up to the prologue; `id` is shell text that gives the job's id. */
export const beginScript = (input: JobScriptInput, manager: string, id: string): string[] => [
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

/**
 * Files that every rank reads; `slots` has a line for each line of `hosts`. To the manager a rank is one task; MPI,
 * which counts processes by that, learns the slots from the variables of `mpi`.
 */
export const sharedFiles = (id: string, mpi: string): string[] => [
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
  `  ${mpi} \\`,
  '  "MASTER_PORT=$((20000 + ${number:-0} % 12000))" >"$job/shared.sh"',
];
