/**
 * The options of sbatch as `sbatch --help` and its own complaints tell them (22.05), and which of them the launcher
 * keeps for itself. A name that is not here belongs to another version: it is passed on, and looked at with suspicion.
 */

const names = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Take a value, as the next word or after `=`. */
export const WITH_VALUE: ReadonlySet<string> = new Set(
  names(`
    account acctg-freq array batch bb bbf begin chdir cluster cluster-constraint clusters comment constraint container
    context core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution
    error exclude export export-file extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket
    gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem
    mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output partition power prefer priority profile qos
    reservation signal sockets-per-node switches tasks-per-node thread-spec threads-per-core time time-min tmp uid
    wait-all-nodes wckey wrap`),
);

/** Take none, or one only after `=`. */
export const WITHOUT_VALUE: ReadonlySet<string> = new Set(
  names(`
    contiguous help hold ignore-pbs no-requeue overcommit oversubscribe parsable quiet reboot requeue spread-job
    test-only usage use-min-nodes verbose version wait exclusive get-user-env nice no-kill propagate`),
);

export const SHORT: Readonly<Record<string, string>> = {
  a: "array",
  A: "account",
  b: "begin",
  B: "extra-node-info",
  c: "cpus-per-task",
  C: "constraint",
  d: "dependency",
  D: "chdir",
  e: "error",
  F: "nodefile",
  G: "gpus",
  h: "help",
  H: "hold",
  i: "input",
  J: "job-name",
  k: "no-kill",
  L: "licenses",
  m: "distribution",
  M: "clusters",
  n: "ntasks",
  N: "nodes",
  o: "output",
  O: "overcommit",
  p: "partition",
  q: "qos",
  Q: "quiet",
  s: "oversubscribe",
  S: "core-spec",
  t: "time",
  v: "verbose",
  V: "version",
  w: "nodelist",
  W: "wait",
  x: "exclude",
};

/** What the launcher says itself, with where a user says it instead. Also what would make of the job something else. */
export const CONTROLLED: Readonly<Record<string, string>> = {
  nodes: "Nodes follow from slots and slots_per_node.",
  ntasks: "Slipway starts one container on each node.",
  "ntasks-per-node": "Slipway starts one container on each node.",
  "tasks-per-node": "Slipway starts one container on each node.",
  "ntasks-per-gpu": "Slipway starts one container on each node.",
  "ntasks-per-tres": "Slipway starts one container on each node.",
  gpus: "Use slots.",
  "gpus-per-node": "Use slots and slots_per_node.",
  "gpus-per-socket": "Use slots and slots_per_node.",
  "gpus-per-task": "Use slots and slots_per_node.",
  "tres-per-job": "Use slots.",
  "tres-per-node": "Use slots and slots_per_node.",
  "tres-per-socket": "Use slots and slots_per_node.",
  "tres-per-task": "Use slots and slots_per_node.",
  chdir: "Use cwd.",
  error: "`slipway jobs logs` shows what the job prints.",
  output: "`slipway jobs logs` shows what the job prints.",
  partition: "Use resource_pool.",
  "job-name": "Use name.",
  wckey: "Use project, workspace or labels, as job_project_source of the cluster says.",
  requeue: "A launch is one job, started once.",
  "no-requeue": "Slipway always sets it.",
  array: "A launch is one job; submit several.",
  clusters: "Use cluster.",
  cluster: "Use cluster.",
  uid: "Use user.",
  gid: "Use user.",
  wrap: "Use command.",
  parsable: "Slipway reads what sbatch prints.",
  "test-only": "Use slipway launch --dry-run.",
  wait: "Use slipway launch --wait.",
  help: "Remove it.",
  usage: "Remove it.",
  version: "Remove it.",
};
