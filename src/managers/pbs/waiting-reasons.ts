import { ADMINISTRATOR, LESS, NOTHING, type WaitingRow } from "../waiting-reason.ts";

const NODES_OF_PBS = "Wait, or ask for less: `pbsnodes -l` lists nodes that are down.";

/** Comments of PBS's scheduler, and states that it gives no comment for. */
export const PBS_WAITING: readonly WaitingRow[] = [
  [
    /^Can Never Run: Insufficient amount of (queue|server) resource/,
    "it asks for more than the queue, or the whole cluster, ever gives a job",
    LESS,
  ],
  [
    /^Can Never Run: Insufficient amount of resource/,
    "it asks for more than any one node has, or all of them together",
    `${LESS} \`pbsnodes -a\` lists what there is.`,
  ],
  [/does not exist/, "it names a node that does not exist", "Correct `constraint` or `select-options` in the queue."],
  [/Not enough total nodes|largest placement set/, "it asks for more nodes than there are", LESS],
  [/^Can Never Run/, "it can never start as it was submitted", "Correct what the queue asks for, then cancel it."],
  [
    /Insufficient amount of (queue|server) resource/,
    "all that the queue, or the whole cluster, may hand out at once is in use",
    "Wait, or ask for less.",
  ],
  [/Insufficient amount of resource/, "what it asks for is in use", NODES_OF_PBS],
  [
    /Queue not started/,
    "the queue is not starting jobs",
    "Use another queue, or wait until it is started: `qstat -Q`.",
  ],
  [/not an execution queue/, "the queue only passes jobs on", "Use another queue: `qstat -Q`."],
  [
    /limit has been reached|running (job )?limit|run limit|limit reached|would exceed .* limit|small cpusets/,
    "its user, group, project, queue or node has reached a limit",
    LESS,
  ],
  [
    /dedicated time/i,
    "it would run into time that is set aside",
    "Shorten `walltime` in the queue, or wait until that time is over.",
  ],
  [
    /with (a confirmed )?reservation/,
    "it would run into a reservation",
    "Shorten `walltime` in the queue, or wait until the reservation is over: `pbs_rstat`.",
  ],
  [/top job|backfill job|strict sorted order|preempt enough/, "jobs ahead of it come first", "Wait, or ask for less."],
  [
    /primetime/,
    "it may run only at another time of day",
    "Wait, shorten `walltime` in the queue, or use another queue.",
  ],
  [
    /free nodes|right type of nodes|resources on nodes|too few free resources|node is in use|Nodes? (is (in|of) an ineligible|not available|ineligible|can't)/i,
    "the nodes it could use are busy or down",
    NODES_OF_PBS,
  ],
  [/zero shares/, "its group has no share of the cluster", ADMINISTRATOR],
  [/job_sort_formula/, "its priority is too low to start now", "Wait, or ask the cluster's administrators."],
  [/provision/i, "its nodes cannot be prepared as it asks", ADMINISTRATOR],
  [
    /too many failed attempts/,
    "it could not be started, and is held",
    "Check that the nodes see the home and the `log-directory`; then `qrls ID`, or ask the administrators.",
  ],
  [
    /PBS Error:/,
    "PBS tried to start it and could not",
    "It tries again by itself; if that keeps failing, ask the administrators.",
  ],
  [/Internal Scheduling Error|Invalid Job|no PBS license/, "the cluster itself has a problem", ADMINISTRATOR],
  [/^Job held by|^H$/, "it is held", "`qrls ID` releases it, if its owner held it."],
  [/^Job has been moved to|^M$/, "it was moved to another server", "`qstat ID@SERVER` shows it there."],
  [/^Q$/, "the scheduler has not looked at it yet", NOTHING],
  [/^W$/, "its start time has not come", NOTHING],
  [/^T$/, "it is on its way to another queue", NOTHING],
  [/^[SU]$/, "it was suspended, and keeps what it has", "It resumes when the job that took its place has ended."],
];
