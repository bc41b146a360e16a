import { type WaitingRow, NOTHING, ADMINISTRATOR, LESS } from "../waiting-reason.ts";

/** Slurm's reasons, and states that it gives no reason for. */
export const SLURM_WAITING: readonly WaitingRow[] = [
  [/^(None|PENDING)$/, "the scheduler has not looked at it yet", NOTHING],
  [/^CONFIGURING$/, "its nodes are being prepared", NOTHING],
  [
    /^(SUSPENDED|STOPPED)$/,
    "it was suspended, and keeps what it has",
    "It resumes when the job that took its place has ended, or when an administrator runs `scontrol resume ID`.",
  ],
  [/^REQUEUED$/, "it was put back into the queue", NOTHING],
  [/^Resources$/, "it is next in line and waits for nodes to become free", "Wait, or ask for less."],
  [
    /^Priority$/,
    "jobs with a higher priority are ahead of it",
    "Wait, or use a partition or QOS that is less in demand.",
  ],
  [/^JobHeldUser$/, "its owner holds it", "`scontrol release ID` releases it."],
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
    "`scontrol release ID` releases it.",
  ],
  [/^BeginTime$/, "its start time has not come, or it was put back a moment ago", NOTHING],
  [/^DependencyNeverSatisfied$/, "it depends on a job that did not end as required", "It will never start: cancel it."],
  [/^Dependency$/, "it waits for another job", NOTHING],
  [/^Licenses$/, "the licences it asks for are in use", "Wait, or ask for fewer licences."],
  [
    /^PartitionDown$/,
    "the partition is not starting jobs",
    "Use another partition, or wait until it is up: `sinfo -s`.",
  ],
  [/^PartitionInactive$/, "the partition is not accepting jobs", "Use another partition: `sinfo -s`."],
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
    "Name no nodes, shorten `walltime` if maintenance is coming up, or ask the administrators: `sinfo -R`.",
  ],
  [
    /^BadConstraints$/,
    "no node can ever provide what it asks for",
    "Correct `constraint`, `gpus`, `memory` or `cores` in the queue.",
  ],
  [
    /^(NodeDown|Nodes_required_for_job_are_DOWN)|DOWN, DRAINED/i,
    "nodes it needs are down or drained",
    "Wait for them: `sinfo -R` says why.",
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
    "its QOS has reached a limit",
    LESS,
  ],
  [
    /^Assoc(Max|Grp)?.*(Limit|RunMinutes|Wall\w*)$|^Association\w*Limit$/,
    "its account or user has reached a limit",
    LESS,
  ],
  [/^(Max(Cpu|Mem|Node|Gres|BB|TRES|Job|Wall|Submit)\w*|JobArrayTaskLimit)$/, "it has reached a limit", LESS],
  [/^Prolog$/, "the nodes are being prepared", NOTHING],
  [/^Cleaning$/, "it is being cleaned up after an earlier start", NOTHING],
  [
    /^(FrontEndDown|NotConnected|SystemFailure|FedJobLock|OriginCluster)$/,
    "the cluster itself has a problem",
    ADMINISTRATOR,
  ],
  [
    /^(BurstBuffer\w*|Burst buffer.*|PowerNotAvail|PowerReserved|NodesNotAvail)$/i,
    "something it needs is not available yet",
    "Wait, or ask the cluster's administrators.",
  ],
];
