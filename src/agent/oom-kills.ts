import { readOomKills } from "./spawner/task-cgroup.ts";

/**
 * What the kernel killed for memory in the agent's own group, which is its pilot's: who it was, the kernel does not say
 * there. A task that died of SIGKILL at that time may have been it; each kill explains one death.
 */
export interface OomKills {
  /** Whether a kill that explains nobody's death yet was counted a moment ago; it then explains this one. */
  take(): boolean;
  stop(): void;
}

const LOOK_MS = 1000;
/** The end of a task is told when its last process is gone and its TMPDIR removed, and on a busy node late. */
const FRESH_MS = 5000;

export interface OomKillsOptions {
  /** Undefined where nobody counts: then nothing is ever explained. */
  readonly file: string | undefined;
  readonly now?: () => number;
}

export const createOomKills = ({ file, now = () => performance.now() }: OomKillsOptions): OomKills => {
  if (file === undefined) return { take: () => false, stop: () => undefined };
  let counted = readOomKills(file);
  /** When each was first seen, the oldest first. */
  let fresh: number[] = [];
  const look = (): void => {
    const count = readOomKills(file);
    const at = now();
    fresh = fresh.filter((seen) => seen > at - FRESH_MS);
    for (; counted < count; counted += 1) fresh.push(at);
  };
  const timer = setInterval(look, LOOK_MS);
  timer.unref();
  return {
    take: () => {
      look();
      return fresh.shift() !== undefined;
    },
    stop: () => clearInterval(timer),
  };
};
