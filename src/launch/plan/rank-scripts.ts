import type { ContainerScript } from "../../containers/runtime.ts";
import { BY_TRAP, commandWords, LITERAL, WAIT_FOR_CHILD } from "./environment-script.ts";

/**
 * What runs on each node. `rank.sh` (bash, on the node itself) makes the rank's own directories, starts the container and
 * ends it when told to. `enter.sh` (POSIX sh, inside the container) sets the environment and becomes the command.
 *
 * A rank's directory is `ranks/N`: `tmp` is the container's /tmp, `work` its work directory with links to the staged
 * files, `launch.sh` what the rank knows of the job.
 */

/** A user's variable that concerns the container's runtime must be set outside of the container too. */
export const HOST_PREFIXES = [
  "APPTAINER_",
  "APPTAINERENV_",
  "SINGULARITY_",
  "SINGULARITYENV_",
  "ENROOT_",
  "CH_",
  "PODMAN_",
  "CONTAINERS_",
  "STORAGE_",
  "NVIDIA_",
] as const;

/** What a rank does differently under a manager, as lines of shell. */
export interface RankDialect {
  /** Sets `rank`. */
  readonly number: string;
  /** Before anything else: its part of the job's environment, if that does not come by itself. */
  readonly environment: readonly string[];
  /** Variables, functions and steps just before the command, for a rank that must check for itself whether to end. */
  readonly variables: readonly string[];
  readonly functions: readonly string[];
  readonly start: readonly string[];
  /** Run when it ends, and after the command has ended. */
  readonly leave: readonly string[];
  readonly ended: readonly string[];
}

export interface RankInput {
  readonly dialect: RankDialect;
  readonly jobName: string;
  readonly directory: string;
  readonly container: ContainerScript;
  readonly hasContainer: boolean;
  readonly streamer: readonly string[];
  /** Whether there are host variables, or variables of the streamer, in files of these names. */
  readonly hasHostEnv: boolean;
  readonly hasStreamEnv: boolean;
}

export const rankScript = (input: RankInput): string => {
  const { dialect, container } = input;
  const leave = [...container.remove, ...dialect.leave];
  const lines = [
    "#!/bin/bash",
    "# one rank of a launch: starts the container of this node and waits for it",
    "set -u",
    "umask 0022",
    `job=${commandWords([input.directory])}`,
    dialect.number,
    "own=$job/ranks/$rank",
    "",
    "fail() {",
    '  printf \'slipway: rank %s: %s\\n\' "$rank" "$2" >&2',
    '  exit "$1"',
    "}",
    "",
    ...(dialect.environment.length === 0 ? [] : [...dialect.environment, ""]),
    ...(input.hasHostEnv ? ["# shellcheck source=/dev/null", '. "$job/host-environment.sh"', ""] : []),
    'mkdir -p "$own/tmp" "$own/work" || fail 125 "cannot make $own"',
    'for entry in "$job"/files/* "$job"/files/.[!.]*; do',
    '  [ -e "$entry" ] || continue',
    '  ln -sfn "../../../files/${entry##*/}" "$own/work/${entry##*/}"',
    "done",
    "",
    'mapfile -t hosts <"$job/hosts"',
    'mapfile -t slots <"$job/slots"',
    "",
    ...container.lines,
    "",
    "{",
    "  printf 'export %s\\n' \\",
    '    "SLIPWAY_RANK=$rank" "SLIPWAY_NODES=${#hosts[@]}" "SLIPWAY_SLOTS=${slots[rank]:-0}" \\',
    '    "SLIPWAY_HOST=${hosts[rank]}" "SLIPWAY_HOSTS=$(IFS=,; echo "${hosts[*]}")" \\',
    "    \"SLIPWAY_HOSTFILE='$seen/hostfile'\" \"SLIPWAY_JOB_DIRECTORY='$seen'\" \\",
    `    "SLIPWAY_JOB_NAME=${input.jobName}" \\`,
    '    "MASTER_ADDR=${hosts[0]}"',
    '  cat "$job/shared.sh"',
    input.hasContainer ? "  echo 'export TMPDIR=/tmp'" : '  printf "export TMPDIR=\'%s\'\\\\n" "$own/tmp"',
    '} >"$own/launch.sh"',
    "",
    ...(input.streamer.length === 0
      ? []
      : [
          `streamer=(${commandWords(input.streamer)})`,
          'if command -v "${streamer[0]}" >/dev/null 2>&1; then',
          ...(input.hasStreamEnv ? ["  # shellcheck source=/dev/null", '  . "$job/stream.sh"'] : []),
          '  export SLIPWAY_STREAM_RANK="$rank"',
          '  run=("${streamer[@]}" "${run[@]}")',
          "fi",
          "",
        ]),
    "child=",
    "ending=",
    ...dialect.variables,
    BY_TRAP,
    "end() {",
    "  trap '' TERM INT",
    "  ending=143",
    '  [ -n "$child" ] || exit 143',
    ...container.stop.map((line) => `  ${line}`),
    '  kill -TERM -- "-$child" 2>/dev/null',
    "  local waited=0",
    '  while kill -0 -- "-$child" 2>/dev/null && [ "$waited" -lt 100 ]; do',
    "    sleep 0.1",
    "    waited=$((waited + 1))",
    "  done",
    '  kill -KILL -- "-$child" 2>/dev/null',
    "}",
    ...dialect.functions,
    ...(leave.length === 0 ? [] : [BY_TRAP, "leave() {", ...leave.map((line) => `  ${line}`), "}", "trap leave EXIT"]),
    "trap end TERM INT",
    ...dialect.start,
    "",
    "# a group of its own, in the same session: the whole of it can be ended, and the manager still finds it",
    "set -m",
    '"${run[@]}" /bin/sh "$seen/enter.sh" "$seen" "$rank" </dev/null &',
    "child=$!",
    "set +m",
    ...WAIT_FOR_CHILD,
    ...dialect.ended,
    'exit "${ending:-$status}"',
    "",
  ];
  return lines.join("\n");
};

export interface EnterInput {
  readonly command: readonly string[];
  readonly cwd?: string | undefined;
  readonly hasHook: boolean;
  /** Variables that a shell cannot set. */
  readonly special: Readonly<Record<string, string>>;
  /** Variables of the streamer, which do not concern the command. */
  readonly hidden: readonly string[];
}

const envWords = (special: Readonly<Record<string, string>>): string[] => {
  const pairs = Object.entries(special).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? [] : ["/usr/bin/env", ...pairs];
};

export const enterScript = ({ command, cwd, hasHook, hidden, special }: EnterInput): string =>
  [
    "#!/bin/sh",
    "# inside the container: the environment, the start-up hook, the command",
    LITERAL,
    "slipway_job=$1",
    "slipway_rank=$2",
    ...(hidden.length === 0 ? [] : [`unset ${hidden.join(" ")}`]),
    "# shellcheck source=/dev/null",
    '. "$slipway_job/ranks/$slipway_rank/launch.sh"',
    "# shellcheck source=/dev/null",
    '. "$slipway_job/environment.sh"',
    cwd === undefined
      ? 'cd "$slipway_job/ranks/$slipway_rank/work" || exit 125'
      : `cd ${commandWords([cwd])} || exit 125`,
    ...(hasHook
      ? [
          "# shellcheck source=/dev/null",
          'if ! . "$slipway_job/startup-hook.sh"; then',
          '  echo "slipway: the start-up hook failed" >&2',
          "  exit 125",
          "fi",
        ]
      : []),
    "unset slipway_job slipway_rank",
    `exec ${commandWords([...envWords(special), ...command])}`,
    "",
  ].join("\n");
