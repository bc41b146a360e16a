import { type WaitingRow, NOTHING, ADMINISTRATOR } from "../waiting-reason.ts";

/** OAR's messages about a job, and states that it gives none for. Some of them end with the job's name. */
export const OAR_WAITING: readonly WaitingRow[] = [
  [/^Hold$/, "it is held", "`oarresume ID` releases it."],
  [/^(Waiting|toAckReservation)$/, "the scheduler has not looked at it yet", NOTHING],
  [/^(toLaunch|Launching)$/, "its nodes are being prepared", NOTHING],
  [/^(Suspended|Resuming)$/, "it was suspended, and keeps what it has", "`oarresume ID` resumes it."],
  [/^R=\d+,W=[\d:]+,J=R\b/, "its reservation has not begun", NOTHING],
  [/^R=\d+,W=.*\((Karma|FIFO)/, "it has a place in the schedule and waits for its turn", NOTHING],
  [/^R=\d+,W=/, "the scheduler has not looked at it yet", NOTHING],
  [/cannot find enough resources/i, "what it asks for is in use, or too few nodes are alive", "Wait, or ask for less."],
  [/container|inner job/i, "it waits for the job whose resources it will use", NOTHING],
  [/token value/i, "a licence that it needs cannot be counted now", ADMINISTRATOR],
  [/Karma|FIFO scheduling OK/, "it has a place in the schedule and waits for its turn", NOTHING],
];
