import type { StarterConfig } from "../config/starter-keys.ts";
import { EXTRA_AUTHORITIES, SET_ASIDE } from "../extra-authorities.ts";
import { quoteFor } from "../core/shell-quoting.ts";
import { hostsOf, type JobFacts, shellWords } from "../starters/starter.ts";
import { startWith } from "../starters/starters.ts";
import { cpusHere, type HostCpus } from "./host-cpus.ts";

/**
 * The two scripts of a pilot's job, as text: what the manager runs once, and what its starter runs on each node. A task's
 * job is the same with one agent. The same plan always gives the same text. The job's exit status is the worst of its agents'; TERM, INT, USR1 and USR2 are
 * passed on to the agents, and the script stays until they have ended.
 */
export interface PilotScriptPlan {
  /** One line for readers: which pilot this is. */
  readonly title: string;
  readonly shebang: string;
  /** Full lines: `#SBATCH --nodes=2`. */
  readonly directives: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly prologue: readonly string[];
  readonly epilogue: readonly string[];
  readonly starter: StarterConfig;
  /** Where the manager's own programs are, when the cluster says. */
  readonly bin?: string | undefined;
  readonly job: JobFacts;
  readonly nodes: number;
  readonly parts: number;
  /** This job's own, on storage that the nodes share. */
  readonly directory: string;
  /** Node.js on the nodes: a path, which may begin with a variable. */
  readonly node: string;
  /** Words after Node.js: the bundle and its options. */
  readonly agent: readonly string[];
  /** How the agents learn what the manager gave the job on their nodes; undefined: they do not. */
  readonly hostCpus?: HostCpus | undefined;
  /** For the job of a task. */
  readonly task?: TaskScriptPlan;
}

export interface TaskScriptPlan {
  /** Of an array: the variable with the element's number, and the number of the first one. */
  readonly array?: { readonly variable: string; readonly first: number } | undefined;
  /** Leaves the job's nodes, and what it has on each where that is known, in files for its ranks. */
  readonly ranks: boolean;
}

export interface PilotScripts {
  /** Given to the manager. */
  readonly script: string;
  /** Is in `directory` under this name; the starter runs it on each node. */
  readonly agentScript: string;
}

export const AGENT_SCRIPT = "agent.sh";
/** The environment as the manager gave it: the agents pass on to tasks what has changed since. */
export const BEFORE_FILE = "environment.before";
/** The nodes of a task's job, one per line. */
export const HOSTS_FILE = "hosts";

const word = (text: string): string => quoteFor(text, "word");

/** `$HOME/bin/node` as a word: the variable is the node's, the rest is data. */
const pathWord = (path: string): string => {
  const [, name, rest] = /^\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?(.*)$/s.exec(path) ?? [];
  return name === undefined ? word(path) : `"\${${name}}"${rest === "" ? "" : word(rest!)}`;
};

/** A text that stays one comment. */
const comment = (text: string): string => `# ${text.replaceAll(/[\n\r]+/g, " ")}`;

const START = `slipway_start() {
  "$@" &
  slipway_pids="$slipway_pids $!"
}`;

/** A signal interrupts \`wait\`: it is repeated until the process itself has ended. */
const WAIT = `slipway_status=0
for slipway_pid in $slipway_pids; do
  while :; do
    slipway_caught=
    slipway_code=0
    wait "$slipway_pid" || slipway_code=$?
    [ -n "$slipway_caught" ] || break
  done
  [ "$slipway_code" -le "$slipway_status" ] || slipway_status=$slipway_code
done`;

/** Begins the line that a failed prologue leaves in what the job printed. */
export const PROLOGUE_FAILED = "slipway: the prologue failed";

/**
 * A command of the prologue that fails ends the job, with a line that names it. Commands inside of what it sources or
 * calls are its own affair, and so is what a condition or `||` looks at. Where the shell is not bash, the last one counts.
 */
const prologueLines = (lines: readonly string[]): string[] =>
  lines.length === 0
    ? []
    : [
        "# prologue",
        `slipway_failed() {`,
        `  echo "${PROLOGUE_FAILED} with exit status $1\${2:+ at: $2}" >&2`,
        `  exit "$1"`,
        `}`,
        // some managers run scripts with a shell of their own, whatever the first line says
        `# shellcheck disable=SC3047,SC3028,SC3054 # only in bash`,
        `[ -z "\${BASH_VERSION-}" ] || trap 'slipway_code=$?; [ "\${#BASH_SOURCE[@]}" -gt 1 ] || slipway_failed "$slipway_code" "$BASH_COMMAND"' ERR`,
        ...lines,
        `slipway_code=$?`,
        `# shellcheck disable=SC3047 # only in bash`,
        `if [ -n "\${BASH_VERSION-}" ]; then trap - ERR; elif [ "$slipway_code" -ne 0 ]; then slipway_failed "$slipway_code" ""; fi`,
      ];

const CALLED = "# shellcheck disable=SC2317 # called by the traps";

const forward = (directory: string, remoteKill: string | undefined): string => {
  const local = `  for slipway_pid in $slipway_pids; do
    kill -s "$1" "$slipway_pid" 2>/dev/null || :
  done`;
  const remote = `  for slipway_file in ${word(directory)}/pid.*; do
    [ -f "$slipway_file" ] || continue
    slipway_kill "$1" "\${slipway_file##*/pid.}" "$(cat "$slipway_file")" || :
  done`;
  const lines = [CALLED, `slipway_forward() {`, `  slipway_caught=yes`, remoteKill === undefined ? local : remote, `}`];
  return [...(remoteKill === undefined ? [] : [CALLED, `slipway_kill() {`, `  ${remoteKill}`, `}`]), ...lines].join(
    "\n",
  );
};

/** Which element of an array this is, counted from 0; each has a directory of its own. */
const elementLines = ({ task }: PilotScriptPlan): string[] =>
  task?.array === undefined
    ? []
    : [
        `SLIPWAY_ELEMENT=$((\${${task.array.variable}:?} - ${task.array.first}))`,
        `export SLIPWAY_ELEMENT`,
        `mkdir -m 700 -p "$SLIPWAY_ELEMENT" && cd "$SLIPWAY_ELEMENT" || exit 1`,
      ];

const hostLines = ({ task, hostCpus, job, bin }: PilotScriptPlan): readonly string[] => {
  if (task === undefined) return hostCpus?.script ?? [];
  return task.ranks ? [`${hostsOf({ job, bin })} >${HOSTS_FILE} || :`, ...(hostCpus?.script ?? [])] : [];
};

/** The agent starts faster without them; it puts them back for what it starts. */
const WITHOUT_AUTHORITIES = [
  `if [ -n "\${${EXTRA_AUTHORITIES}-}" ]; then`,
  `  ${SET_ASIDE}=$${EXTRA_AUTHORITIES}`,
  `  export ${SET_ASIDE}`,
  `  unset ${EXTRA_AUTHORITIES}`,
  `fi`,
];

/** Whether anything here can change the environment that the manager gave the job. */
const changesEnvironment = ({ task, environment, prologue }: PilotScriptPlan): boolean =>
  task === undefined || prologue.length > 0 || Object.keys(environment).length > 0;

export const pilotScripts = (plan: PilotScriptPlan): PilotScripts => {
  const directory = word(plan.directory);
  const started = startWith({
    command: ["/bin/sh", `${plan.directory}/${AGENT_SCRIPT}`],
    nodes: plan.nodes,
    parts: plan.parts,
    job: plan.job,
    config: plan.starter,
    bin: plan.bin,
    directory: plan.directory,
  });
  const { bare = false, remoteKill } = started;
  const exports = Object.entries(plan.environment).map(([name, value]) => `export ${name}=${word(value)}`);
  const script = [
    plan.shebang,
    ...plan.directives,
    comment(plan.title),
    `SLIPWAY_PILOT_START=$(date +%s)`,
    `export SLIPWAY_PILOT_START`,
    `cd ${directory} || exit 1`,
    ...elementLines(plan),
    ...(changesEnvironment(plan) ? [`(umask 077 && env -0 >${BEFORE_FILE}) || :`] : []),
    ...hostLines(plan),
    ...exports,
    `slipway_pids=`,
    `slipway_caught=`,
    START,
    forward(plan.directory, remoteKill),
    // what is passed on to an agent ends it in an orderly way; srun would take TERM and INT for itself
    `trap 'slipway_forward USR2' TERM INT USR2`,
    `trap 'slipway_forward USR1' USR1`,
    ...prologueLines(plan.prologue),
    plan.task === undefined ? "# one agent on each node" : "# the task, by an agent of its own",
    ...(bare ? [`(umask 077 && /bin/sh -c 'export -p' >${directory}/environment)`] : []),
    ...started.start,
    WAIT,
    ...(plan.epilogue.length === 0 ? [] : ["# epilogue", ...plan.epilogue]),
    `exit "$slipway_status"`,
    "",
  ].join("\n");

  // a task's agent offers what its task asked for
  const cpus = cpusHere(plan.task === undefined ? plan.hostCpus : undefined, plan.directory);
  const element = plan.task?.array === undefined ? "" : ' --element "$SLIPWAY_ELEMENT"';
  const agentScript = [
    "#!/bin/sh",
    plan.task === undefined ? "# What each node of this pilot runs." : "# What the first node of this job runs.",
    ...cpus.find,
    ...(bare ? [`. ${directory}/environment`] : []),
    ...(remoteKill === undefined ? [] : [`echo "$$" >${directory}/pid."\${1:-$(hostname)}"`]),
    ...(plan.starter.workingDirectory === undefined ? [] : [`cd ${word(plan.starter.workingDirectory)} || exit 1`]),
    ...WITHOUT_AUTHORITIES,
    `slipway_node=${pathWord(plan.node)}`,
    `if [ ! -x "$slipway_node" ]; then`,
    `  slipway_missing=$slipway_node`,
    `  slipway_node=$(command -v node) || {`,
    `    echo "slipway: $(hostname) has no Node.js at $slipway_missing and none on its PATH;" \\`,
    `      "set node: in clusters.yaml" >&2`,
    `    exit 127`,
    `  }`,
    `fi`,
    `exec ${plan.starter.prefix.length === 0 ? "" : `${shellWords(plan.starter.prefix)} `}"$slipway_node" ${shellWords(plan.agent)}${element}${cpus.option}`,
    "",
  ].join("\n");
  return { script, agentScript };
};
