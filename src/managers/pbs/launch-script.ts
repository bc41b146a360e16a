import { beginScript, type JobScriptInput, sharedFiles } from "../../launch/plan/job-scripts.ts";

export interface PbsChunks {
  readonly slotsEach: number;
  /** Lines of the node file for each chunk. */
  readonly linesEach: number;
}

/** The batch script of a launch. */
export const pbsScript = (input: JobScriptInput, chunks: PbsChunks): string =>
  [
    ...beginScript(input, "PBS", "$PBS_JOBID"),
    "",
    "command -v pbs_tmrsh >/dev/null 2>&1 || PATH=$PATH:${PBS_EXEC:-/opt/pbs}/bin",
    "# a host has a line for each of its chunks",
    'awk \'!seen[$1]++ { print $1 }\' "$PBS_NODEFILE" >"$job/hosts"',
    `awk '{ if (!($1 in lines)) order[n++] = $1; lines[$1]++ } END { for (i = 0; i < n; i++) print int(lines[order[i]] / ${chunks.linesEach} * ${chunks.slotsEach}) }' "$PBS_NODEFILE" >"$job/slots"`,
    ...sharedFiles("$PBS_JOBID", `"OMPI_MCA_ras='^tm'" "OMPI_MCA_orte_default_hostfile='$job/hostfile'"`),
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
