import { type PostOutput, Refused, type StreamName } from "./post-output.ts";
import { createUnsent, type UnsentLimits } from "./unsent.ts";

/**
 * Sends what one rank writes to the server while it runs. The job's own output files hold everything: what cannot be
 * sent is late, or left out and marked as such, and memory stays bounded whatever the server does.
 *
 *     idle ──push──► sending ──nothing left──► idle, or over after finish
 *                     │   ▲
 *      no byte taken  ▼   │ the pause is over, or finish
 *                    pausing
 *
 * Refused in any of them, or out of time after finish: over.
 */
export interface Sender {
  push(stream: StreamName, chunk: Buffer): void;
  /** Resolves when everything is sent or cannot be, or when the time is over. */
  finish(withinMs: number): Promise<void>;
}

const LIMITS: UnsentLimits = { held: 4 * 1024 * 1024, atOnce: 256 * 1024 };
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;

/** Resolves after a while, or when `cut` is called. */
export interface Pause {
  readonly over: Promise<void>;
  cut(): void;
}

export interface SenderOptions {
  readonly limits?: UnsentLimits;
  readonly pause?: (ms: number) => Pause;
}

const pauseFor = (ms: number): Pause => {
  let cut = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    cut = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  return { over, cut };
};

export const createSender = ({ post, close }: PostOutput, options: SenderOptions = {}): Sender => {
  const { limits = LIMITS, pause = pauseFor } = options;
  const streams = (["stdout", "stderr"] as const).map((name) => ({ name, unsent: createUnsent(limits) }));
  /** Nothing more is taken: the command has ended, or the server has refused. */
  let ended = false;
  let outOfTime = false;
  let wake: () => void = () => undefined;
  let waiting: Pause | undefined;
  let pauseMs = FIRST_PAUSE_MS;

  /** Something to send, or no more to come. */
  const news = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
    });

  /** The next stream that has something to send; after that the other one has its turn first. */
  const nextStream = (): (typeof streams)[number] | undefined => {
    const at = streams.findIndex(({ unsent }) => !unsent.isEmpty);
    if (at < 0) return undefined;
    const [found] = streams.splice(at, 1);
    streams.push(found!);
    return found;
  };

  const rest = async (): Promise<void> => {
    waiting = pause(pauseMs / 2 + Math.random() * pauseMs);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    await waiting.over;
    waiting = undefined;
  };

  /** Whether the server took something. */
  const sendOne = async ({ name, unsent }: (typeof streams)[number]): Promise<boolean> => {
    const piece = unsent.next();
    try {
      return unsent.answered(piece, await post(name, piece));
    } catch (error) {
      if (!(error instanceof Refused)) return false;
      ended = true;
      for (const each of streams) each.unsent.clear();
      return true;
    }
  };

  const work = async (): Promise<void> => {
    while (!outOfTime) {
      const stream = nextStream();
      if (stream === undefined) {
        if (ended) return;
        await news();
      } else if (await sendOne(stream)) pauseMs = FIRST_PAUSE_MS;
      else if (!outOfTime) await rest();
    }
  };
  const working = work();

  return {
    push: (name, chunk) => {
      if (ended) return;
      streams.find((each) => each.name === name)!.unsent.push(chunk);
      wake();
    },
    finish: async (withinMs) => {
      ended = true;
      wake();
      // whatever waits for a better moment is tried now: this is the last chance
      pauseMs = FIRST_PAUSE_MS;
      waiting?.cut();
      const late = pauseFor(withinMs);
      await Promise.race([working, late.over]);
      outOfTime = true;
      late.cut();
      waiting?.cut();
      close();
    },
  };
};
