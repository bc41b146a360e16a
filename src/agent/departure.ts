import type { Leaving } from "../protocol/messages.ts";

/**
 * The end of an agent. It drains when asked to, and closes when it has nothing left, or when it has waited for a server
 * in vain.
 *
 *     staying ──► draining ──► closing ──► ended
 *        └───────────────────────┘
 */
export interface Departure {
  /** It takes nothing new. */
  readonly draining: boolean;
  /** What it reports to servers: why it drains; the first reason counts. */
  readonly leaving: Leaving | undefined;
  /**
   * Take nothing new; end when empty. `now` interrupts what runs, at no cost to it; `pilotEnds`: the pilot's other
   * agents must drain too. May be called again.
   */
  drain(now: boolean, reason: string, pilotEnds?: boolean): void;
  /** From here on it drains, without reporting it. */
  begin(): void;
  /** Something has left the agent: closes if it drains and that was the last thing. */
  check(): void;
  close(reason: string): void;
  /** From here on it carries out the steps; those that were requested earlier, at once. */
  arm(steps: DepartureSteps): void;
  readonly ended: Promise<string>;
}

export interface DepartureSteps {
  /** Gives back tasks that have not begun; `now` interrupts those that run. */
  drain(now: boolean, reason: string): void;
  /** Whether nothing runs here and every result is on the server's disk. */
  isEmpty(): boolean;
  close(reason: string): Promise<void>;
}

export const createDeparture = (log: (text: string) => void): Departure => {
  let stage: "staying" | "draining" | "closing" = "staying";
  let leaving: Leaving | undefined;
  let steps: DepartureSteps | undefined;
  const asked: (readonly [now: boolean, reason: string])[] = [];
  let settle: (reason: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    settle = resolve;
  });

  const begin = (): void => {
    if (stage === "staying") stage = "draining";
  };

  const close = (why: string): void => {
    if (stage === "closing" || steps === undefined) return;
    stage = "closing";
    void steps.close(why).then(() => settle(why));
  };

  const check = (): void => {
    if (stage === "draining" && steps?.isEmpty() === true) close("drained");
  };

  const drain = (now: boolean, why: string, pilotEnds = false): void => {
    begin();
    if (pilotEnds) leaving = { t: "leaving", reason: why, pilotEnds };
    leaving ??= { t: "leaving", reason: why };
    log(`draining: ${why}`);
    if (steps === undefined) return void asked.push([now, why]);
    steps.drain(now, why);
    check();
  };

  return {
    get draining() {
      return stage !== "staying";
    },
    get leaving() {
      return leaving;
    },
    drain,
    begin,
    check,
    close,
    arm: (given) => {
      steps = given;
      for (const [now, why] of asked) given.drain(now, why);
      check();
    },
    ended,
  };
};
