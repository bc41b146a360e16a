/**
 * When a cluster that nobody uses ends. Asked each second: work or clients forget the time of the last activity, the
 * first second without either sets it.
 */
export interface KeepAlive {
  /** Milliseconds of a monotonic clock; undefined while something runs or somebody is connected. */
  readonly idleSince?: number;
}

export interface Activity {
  /** Tasks that are processing, queued, waiting or without a worker. */
  readonly work: number;
  readonly clients: number;
}

export interface Verdict {
  readonly state: KeepAlive;
  readonly isOver: boolean;
}

/** `timeoutS` 0: never over. */
export const keepAlive = (state: KeepAlive, activity: Activity, nowMs: number, timeoutS: number): Verdict => {
  if (activity.work > 0 || activity.clients > 0) return { state: {}, isOver: false };
  const idleSince = state.idleSince ?? nowMs;
  return { state: { idleSince }, isOver: timeoutS > 0 && nowMs - idleSince > timeoutS * 1000 };
};
