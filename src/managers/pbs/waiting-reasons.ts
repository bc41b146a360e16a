import { ADMINISTRATOR, LESS, NOTHING, type WaitingRow } from "../waiting-reason.ts";

const NODES_OF_PBS = "Wait, or ask for less: `pbsnodes -l` lists nodes that are down.";

/** Comments of PBS's scheduler, and states that it gives no comment for. */
export const PBS_WAITING: readonly WaitingRow[] = [
  [
    /^Can Never Run: Insufficient amount of (queue|server) resource/,
    "it asks for more than the queue, or the cluster as a whole, ever gives to a job",
    LESS,
  ],
  [
    /^Can Never Run: Insufficient amount of resource/,
    "it asks for more than any node, or all of them together, have",
    `${LESS} \`pbsnodes -a\` tells what there is.`,
  ],
  [/does not exist/, "it names a node that does not exist", "Correct `constraint` or `select-options` in the queue."],
  [/Not enough total nodes|largest placement set/, "it asks for more nodes than there are", LESS],
  [/^Can Never Run/, "it can never start as it is", "Correct what the queue asks for, then cancel it."],
  [
    /Insufficient amount of (queue|server) resource/,
    "what the queue, or the cluster as a whole, may give at a time is in use",
    "Wait, or ask for less.",
  ],
  [/Insufficient amount of resource/, "what it asks for is in use", NODES_OF_PBS],
  [
    /Queue not started/,
    "the queue does not start jobs now",
    "Use another queue, or wait until it is started: `qstat -Q`.",
  ],
  [/not an execution queue/, "the queue only passes jobs on", "Use another queue: `qstat -Q`."],
  [
    /limit has been reached|running (job )?limit|run limit|limit reached|would exceed .* limit|small cpusets/,
    "a limit of its user, group, project, queue or node is reached",
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
  [
    /top job|backfill job|strict sorted order|preempt enough/,
    "jobs that stand before it come first",
    "Wait, or ask for less.",
  ],
  [
    /primetime/,
    "it may run only at another time of day",
    "Wait, shorten `walltime` in the queue, or use another queue.",
  ],
  [
    /free nodes|right type of nodes|resources on nodes|too few free resources|node is in use|Nodes? (is (in|of) an ineligible|not available|ineligible|can't)/i,
    "nodes that it could use are in use or down",
    NODES_OF_PBS,
  ],
  [/zero shares/, "its group has no share of the cluster", ADMINISTRATOR],
  [/job_sort_formula/, "its priority is too low to start now", "Wait, or ask the cluster's administrators."],
  [/provision/i, "its nodes cannot be prepared as it asks", ADMINISTRATOR],
  [
    /too many failed attempts/,
    "it could not be started, and is held",
    "Look whether the nodes see the home and the `log-directory`; then `qrls ID`, or ask the administrators.",
  ],
  [
    /PBS Error:/,
    "PBS tried to start it and could not",
    "It tries again by itself; if that goes on, ask the administrators.",
  ],
  [/Internal Scheduling Error|Invalid Job|no PBS license/, "the cluster has trouble of its own", ADMINISTRATOR],
  [/^Job held by|^H$/, "it is held", "`qrls ID` lets it go, if it was held by its owner."],
  [/^Job has been moved to|^M$/, "it was moved to another server", "`qstat ID@SERVER` shows it there."],
  [/^Q$/, "the scheduler has not looked at it yet", NOTHING],
  [/^W$/, "its time to begin has not come", NOTHING],
  [/^T$/, "it is on its way to another queue", NOTHING],
  [
    /^[SU]$/,
    "it was stopped where it runs, and keeps what it has",
    "It goes on when the job that took its place has ended.",
  ],
];
