import type { Leaving } from "../protocol/messages.ts";

/**
 * The end of an agent. It drains when asked to, and closes when it has nothing left, or when it has waited for a server
 * in vain. An agent for one task finishes: it takes nothing more, and closes when that task's result was delivered.
 *
 *     staying ──► finishing ──► draining ──► closing ──► ended
 *        ├────────────┼────────────┘            ▲
 *        └────────────┴─────────────────────────┘
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
  /** Take nothing new; end when all that was taken is on the server's disk. */
  finish(): void;
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
  /** Whether nothing runs here and every result is on the server's disk, or there is no server to take it. */
  isEmpty(): boolean;
  /** The same, and every result is on the server's disk, even if there is no server for now. */
  isDelivered(): boolean;
  close(reason: string): Promise<void>;
}

export const createDeparture = (log: (text: string) => void): Departure => {
  let stage: "staying" | "finishing" | "draining" | "closing" = "staying";
  let leaving: Leaving | undefined;
  let steps: DepartureSteps | undefined;
  const asked: (readonly [now: boolean, reason: string])[] = [];
  let settle: (reason: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    settle = resolve;
  });

  const begin = (): void => {
    if (stage === "staying" || stage === "finishing") stage = "draining";
  };

  const close = (why: string): void => {
    if (stage === "closing" || steps === undefined) return;
    stage = "closing";
    void steps.close(why).then(() => settle(why));
  };

  const check = (): void => {
    if (stage === "draining" && steps?.isEmpty() === true) close("drained");
    else if (stage === "finishing" && steps?.isDelivered() === true) close("its task is over");
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
    finish: () => {
      if (stage === "staying") stage = "finishing";
    },
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
