import { type WaitingRow, NOTHING, ADMINISTRATOR, LESS } from "../waiting-reason.ts";

/** What Grid Engine's `qstat -j` says under error reason and scheduling info. */
export const SGE_WAITING: readonly WaitingRow[] = [
  [
    /can't (open (output|error|input)|chdir|stat)|can't read .*job script|mkdir/i,
    "its node could not start it, and it is held in error",
    "Check that the nodes see the home and the `log-directory`.",
  ],
  [
    /can't get password entry|can't set (u|g)id/i,
    "its node does not know its user, and it is held in error",
    ADMINISTRATOR,
  ],
  [/^Job is in error state/, "it could not be started and is held in error", "`qstat -j ID` says why."],
  [/^Job is in hold state/, "it is held", "`qrls ID` releases it, if its owner held it."],
  [/because of job dependencies/, "it waits for another job", NOTHING],
  [/execution time not reached/, "its start time has not come", NOTHING],
  [/because of user limitations|exceeds limit/, "its user or project has reached a limit", LESS],
  [
    /no access to PE|suitable access permissions|no permission|correct project/,
    "it may not use these queues",
    ADMINISTRATOR,
  ],
  [
    /PE "[^"]*" is not in PE list|allocation rule is not suitable|not of parallel type/,
    "its queue does not offer the parallel environment, or not that many slots on a node",
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
  [/is disabled|is suspended/, "the queue is not accepting jobs", "Use another queue, or wait: `qstat -f` shows them."],
  [
    /temporarily not available|unknown state/,
    "nodes it could use do not answer",
    "Wait for them: `qstat -f -explain a`.",
  ],
  [/overloaded/, "nodes it could use are too busy", "Wait: `qstat -f -explain a` says which."],
  [/no messages available/i, "the scheduler has not looked at it yet", NOTHING],
  [/got ignored in the last scheduling run/, "many jobs that ask for the same are ahead of it", "Wait."],
];
