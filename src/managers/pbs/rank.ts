import type { RankDialect } from "../../launch/plan/rank-scripts.ts";

/** In PBS nothing of the batch script's environment reaches a rank: it is read from a file, except what is the node's. */
const ENVIRONMENT = [
  "# of the batch script's environment, but for what belongs to this node",
  "node_env=$(export -p | grep -E '^declare -x (HOSTNAME|PBS_NODENUM|PBS_TASKNUM|PBS_MOMPORT|TMPDIR|PWD|OLDPWD|SHLVL)=')",
  "# shellcheck source=/dev/null",
  '. "$job/job-environment.sh"',
  'eval "$node_env"',
];

/**
 * After qdel PBS signals only the first node's processes, and kills those of the others some 20 s later without
 * warning: the batch script writes into `ending`, and each rank looks there. It opens the file, which is there from the
 * start, because what NFS remembers of a name may be a minute old.
 */
const WATCH = [
  "is_ending() {",
  '  read -r _ 2>/dev/null <"$job/ending"',
  "}",
  "watch() {",
  '  while sleep 2 && kill -0 "$$" 2>/dev/null; do',
  "    if is_ending; then",
  '      kill -TERM "$$"',
  "      return",
  "    fi",
  "  done",
  "}",
];

const START = [
  'printf \'%s\\n\' "$$" >"$own/pid"',
  '! is_ending || fail 143 "the job is ending"',
  "set -m",
  "watch &",
  "watcher=$!",
  'disown "$watcher"',
  "set +m",
];

const LEAVE = ['[ -z "$watcher" ] || kill -KILL -- "-$watcher" 2>/dev/null', 'rm -f "$own/pid"'];

export const PBS_RANK: RankDialect = {
  number: "rank=$1",
  environment: ENVIRONMENT,
  variables: ["watcher="],
  functions: WATCH,
  start: START,
  leave: LEAVE,
  ended: [],
};
