import type { Lifetime } from "../core/lifetime.ts";
import { type LongTimer, startTimer } from "../long-timer.ts";

/**
 * The end of an agent's pilot, on the agent's own monotonic clock (rule 10). The walltime counts from the job's start,
 * which the pilot's script passes in SLIPWAY_PILOT_START; without it, from the agent's own.
 *
 *   drain ──► nothing new is taken ──► signal ──► what still runs may save its work ──► end ──► it is killed
 */
export interface PilotEnd {
  /** Milliseconds until the signal; undefined where nothing ends the pilot by force. */
  endsInMs(): number | undefined;
  /** What every task learns of it, as `NAME=VALUE`. */
  readonly environment: readonly string[];
  /** From here on it carries out the actions, each at its time; those whose time has passed, at once. */
  arm(actions: PilotEndActions): void;
  stop(): void;
}

export interface PilotEndActions {
  drain(reason: string): void;
  signal(name: string): void;
  end(reason: string): void;
}

/** Milliseconds that the pilot has already been running. A clock that makes no sense is ignored. */
export const elapsedMs = (startedAt: string | undefined, now: number): number => {
  const seconds = startedAt === undefined || !/^\d{1,12}$/.test(startedAt.trim()) ? NaN : Number(startedAt);
  return Number.isNaN(seconds) ? 0 : Math.max(0, now - seconds * 1000);
};

const NEVER: PilotEnd = {
  endsInMs: () => undefined,
  environment: [],
  arm: () => undefined,
  stop: () => undefined,
};

export const createPilotEnd = (lifetime: Lifetime | undefined, startedAt: string | undefined): PilotEnd => {
  if (lifetime === undefined) return NEVER;
  const { drainMs, signalMs, endMs, signal } = lifetime;
  const begun = performance.now() - elapsedMs(startedAt, Date.now());
  const timers: LongTimer[] = [];

  const at = (ms: number, action: () => void): void => {
    timers.push(startTimer(begun + ms - performance.now(), action));
  };

  const epochSeconds = (ms: number): number => Math.floor((Date.now() + begun + ms - performance.now()) / 1000);
  return {
    endsInMs: () => (signalMs === null ? undefined : Math.max(0, begun + signalMs - performance.now())),
    environment: [
      ...(endMs === null
        ? []
        : [
            `SLIPWAY_PILOT_END=${epochSeconds(endMs)}`,
            `SLIPWAY_SIGNAL_SECONDS=${Math.floor((endMs - signalMs!) / 1000)}`,
          ]),
      `SLIPWAY_PILOT_DRAIN=${epochSeconds(drainMs)}`,
    ],
    arm: (actions) => {
      at(drainMs, () => actions.drain("its pilot's lifetime is over"));
      if (signalMs !== null) at(signalMs, () => actions.signal(signal));
      if (endMs !== null) at(endMs, () => actions.end("its pilot's walltime is over"));
    },
    stop: () => {
      for (const timer of timers) timer.stop();
    },
  };
};
