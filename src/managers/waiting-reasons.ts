/** What a manager's own word for "not yet" means to a person, and what would help. Each manager adds its rows. */
export interface WaitingReason {
  readonly meaning: string;
  readonly remedy: string;
}

type Row = readonly [words: RegExp, meaning: string, remedy: string];

const NOTHING = "Nothing to do: it starts by itself.";
const ADMINISTRATOR = "Ask the cluster's administrators.";
const LESS = "Ask for less (nodes, cores, memory, gpus, walltime) in the queue, or for fewer pilots at once.";

/** Of Slurm's reasons, and of states that it gives no reason for; the first row that fits counts, so the narrow ones come first. */
const SLURM: readonly Row[] = [
  [/^(None|PENDING)$/, "the scheduler has not looked at it yet", NOTHING],
  [/^CONFIGURING$/, "its nodes are being prepared", NOTHING],
  [
    /^(SUSPENDED|STOPPED)$/,
    "it was stopped where it runs, and keeps what it has",
    "It goes on when the job that took its place has ended, or when an administrator says `scontrol resume ID`.",
  ],
  [/^REQUEUED$/, "it was put back into the queue", NOTHING],
  [/^Resources$/, "it is next in line and waits for nodes to become free", "Wait, or ask for less."],
  [
    /^Priority$/,
    "jobs with a higher priority stand before it",
    "Wait, or use a partition or QOS that is less asked for.",
  ],
  [/^JobHeldUser$/, "it was held by its owner", "`scontrol release ID` lets it go."],
  [/^JobHeldAdmin$/, "an administrator holds it", "Only they can release it; ask them why."],
  [
    /^JobHoldMaxRequeue$/,
    "it was started again too often and is now held",
    "See why it failed to start, then `scontrol release ID`.",
  ],
  [
    /launch failed requeued held|launch_failed_requeued_held/i,
    "its node could not start it, and it is held",
    "Look for a full disk, a missing home or a failing prolog on that node; then `scontrol release ID`.",
  ],
  [
    /requeued in held state|special.exit|^REQUEUE_HOLD$/i,
    "it was put back into the queue and is held",
    "`scontrol release ID` lets it go.",
  ],
  [/^BeginTime$/, "its time to begin has not come, or it was put back a moment ago", NOTHING],
  [/^DependencyNeverSatisfied$/, "it waits for a job that did not end as it must", "It will never start: cancel it."],
  [/^Dependency$/, "it waits for another job", NOTHING],
  [/^Licenses$/, "the licences it asks for are in use", "Wait, or ask for fewer licences."],
  [
    /^PartitionDown$/,
    "the partition does not start jobs now",
    "Use another partition, or wait until it is up: `sinfo -s`.",
  ],
  [/^PartitionInactive$/, "the partition takes no jobs now", "Use another partition: `sinfo -s`."],
  [
    /^PartitionNodeLimit$/,
    "it asks for more or fewer nodes than the partition allows",
    "Change `nodes` in the queue: `scontrol show partition`.",
  ],
  [
    /^PartitionTimeLimit$/,
    "its walltime is longer than the partition allows",
    "Shorten `walltime` in the queue, or use another partition.",
  ],
  [
    /^PartitionConfig$/,
    "the partition's own rules refuse what it asks for",
    "Compare the queue with `scontrol show partition`.",
  ],
  [
    /^AccountNotAllowed$/,
    "its account may not use this partition or QOS",
    "Set `account` in the queue to one that may.",
  ],
  [
    /^ReqNodeNotAvail/,
    "nodes it needs are down, drained or reserved",
    "Name no nodes, shorten `walltime` if a maintenance is near, or ask the administrators: `sinfo -R`.",
  ],
  [
    /^BadConstraints$/,
    "no node can ever give what it asks for",
    "Correct `constraint`, `gpus`, `memory` or `cores` in the queue.",
  ],
  [
    /^(NodeDown|Nodes_required_for_job_are_DOWN)|DOWN, DRAINED/i,
    "nodes it needs are down or drained",
    "Wait for them: `sinfo -R` tells why.",
  ],
  [
    /^(Reservation|ReservationDeleted|ReqResvDeleted)$/,
    "its reservation has not begun, or no longer exists",
    "Compare `reservation` in the queue with `scontrol show reservation`.",
  ],
  [
    /^InvalidAccount$/,
    "its account is not valid",
    "Correct `account` in the queue: `sacctmgr show associations user=$USER`.",
  ],
  [/^InvalidQOS$|^QOSNotAllowed$/, "its QOS is not valid here", "Correct `qos` in the queue."],
  [
    /^QOS(Max|Grp|Min)?.*Limit$|^QOS(UsageThreshold|ResourceLimit|TimeLimit|JobLimit)$/,
    "a limit of its QOS is reached",
    LESS,
  ],
  [
    /^Assoc(Max|Grp)?.*(Limit|RunMinutes|Wall\w*)$|^Association\w*Limit$/,
    "a limit of its account or user is reached",
    LESS,
  ],
  [/^(Max(Cpu|Mem|Node|Gres|BB|TRES|Job|Wall|Submit)\w*|JobArrayTaskLimit)$/, "a limit is reached", LESS],
  [/^Prolog$/, "the nodes are being prepared", NOTHING],
  [/^Cleaning$/, "it is being cleared away after an earlier start", NOTHING],
  [
    /^(FrontEndDown|NotConnected|SystemFailure|FedJobLock|OriginCluster)$/,
    "the cluster has trouble of its own",
    ADMINISTRATOR,
  ],
  [
    /^(BurstBuffer\w*|Burst buffer.*|PowerNotAvail|PowerReserved|NodesNotAvail)$/i,
    "something it needs is not available yet",
    "Wait, or ask the cluster's administrators.",
  ],
];

/** Of Grid Engine's: what `qstat -j` says under error reason and scheduling info. */
const SGE: readonly Row[] = [
  [
    /can't (open (output|error|input)|chdir|stat)|can't read .*job script|mkdir/i,
    "its node could not start it, and it is held in error",
    "Look whether the nodes see the home and the `log-directory`.",
  ],
  [
    /can't get password entry|can't set (u|g)id/i,
    "its node does not know its user, and it is held in error",
    ADMINISTRATOR,
  ],
  [/^Job is in error state/, "it could not be started and is held in error", "`qstat -j ID` tells why."],
  [/^Job is in hold state/, "it is held", "`qrls ID` lets it go, if it was held by its owner."],
  [/because of job dependencies/, "it waits for another job", NOTHING],
  [/execution time not reached/, "its time to begin has not come", NOTHING],
  [/because of user limitations|exceeds limit/, "a limit of its user or project is reached", LESS],
  [
    /no access to PE|suitable access permissions|no permission|correct project/,
    "it may not use these queues",
    ADMINISTRATOR,
  ],
  [
    /PE "[^"]*" is not in PE list|allocation rule is not suitable|not of parallel type/,
    "its queue does not offer the parallel environment, or not so many slots of a node",
    "Compare `parallel-environment` with `qconf -spl` and the queue's pe_list: `qconf -sq QUEUE`.",
  ],
  [
    /runtime of .* is too long|offers only q\w:h_rt/,
    "its walltime is longer than the queue allows",
    "Shorten `walltime`.",
  ],
  [/only offers \d+ slots|job slots|it is full|overload or full/, "all slots are in use", "Wait, or ask for less."],
  [
    /cannot run (at host|in queue|globally) .*offers only|because it offers only/,
    "what it asks for is in use, or more than there is",
    LESS,
  ],
  [/is disabled|is suspended/, "the queue takes no jobs now", "Use another queue, or wait: `qstat -f` shows them."],
  [
    /temporarily not available|unknown state/,
    "nodes it could use do not answer",
    "Wait for them: `qstat -f -explain a`.",
  ],
  [/overloaded/, "nodes it could use are too busy", "Wait: `qstat -f -explain a` tells which."],
  [/no messages available/i, "the scheduler has not looked at it yet", NOTHING],
  [/got ignored in the last scheduling run/, "many jobs that ask for the same stand before it", "Wait."],
];

const NODES_OF_PBS = "Wait, or ask for less: `pbsnodes -l` lists nodes that are down.";

/** Of the comments of PBS's scheduler, and of states that it gives no comment for. */
const PBS: readonly Row[] = [
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

/** Of OAR's messages about a job, and of states that it gives none for. The job's name stands in some of them, last. */
const OAR: readonly Row[] = [
  [/^Hold$/, "it is held", "`oarresume ID` lets it go."],
  [/^(Waiting|toAckReservation)$/, "the scheduler has not looked at it yet", NOTHING],
  [/^(toLaunch|Launching)$/, "its nodes are being prepared", NOTHING],
  [/^(Suspended|Resuming)$/, "it was stopped where it runs, and keeps what it has", "`oarresume ID` lets it go on."],
  [/^R=\d+,W=[\d:]+,J=R\b/, "its reservation has not begun", NOTHING],
  [/^R=\d+,W=.*\((Karma|FIFO)/, "it has a place in the schedule and waits for its turn", NOTHING],
  [/^R=\d+,W=/, "the scheduler has not looked at it yet", NOTHING],
  [/cannot find enough resources/i, "what it asks for is in use, or too few nodes are alive", "Wait, or ask for less."],
  [/container|inner job/i, "it waits for the job whose resources it shall use", NOTHING],
  [/token value/i, "a licence that it needs cannot be counted now", ADMINISTRATOR],
  [/Karma|FIFO scheduling OK/, "it has a place in the schedule and waits for its turn", NOTHING],
];

const TABLES: Readonly<Record<string, readonly Row[]>> = { sge: SGE, oar: OAR, pbs: PBS, slurm: SLURM };

/** Undefined for words that are not known: then the manager's own word must do. */
export const waitingReason = (manager: string, reason: string): WaitingReason | undefined => {
  const rows = Object.hasOwn(TABLES, manager) ? TABLES[manager]! : [];
  const row = rows.find(([words]) => words.test(reason.trim()));
  return row === undefined ? undefined : { meaning: row[1], remedy: row[2] };
};
