import type { LiveRun } from "../../api/live.ts";
import type { OverviewView } from "../../api/overview.ts";
import { type Made, make } from "./frames.ts";

/** How things are, as it was last made for viewers: made again only where something has changed. */
export interface Pictures {
  /** Looks at everything that somebody sees; what has changed since the last look. */
  look(wanted: readonly number[]): Changed;
  /** As it is, or was a moment ago. */
  now(run: number | undefined): readonly Made[];
  /** From now on this run is looked at, too. Throws no-such-run. */
  meet(run: number): Promise<void>;
  knows(run: number): boolean;
  /** Nobody looks any more. */
  forget(): void;
}

export interface Changed {
  readonly overview: Made | undefined;
  readonly runs: ReadonlyMap<number, Made>;
}

export interface PicturesOptions {
  readonly overview: () => OverviewView;
  /** Throws no-such-run. */
  readonly run: (id: number) => Promise<LiveRun>;
  /** The same without waiting; undefined: it has left memory, and does not change. */
  readonly runNow: (id: number) => LiveRun | undefined;
  /** Equal texts: nothing of it has changed. */
  readonly runStamp: (id: number) => string;
}

/** A run that nobody wants for so many looks is not looked at any more: who polls comes back before that. */
const KEPT_LOOKS = 30;
const MOST_RUNS = 256;

interface Seen {
  made: Made;
  stamp: string;
  left: number;
}

/** What is expected moves all the time; what is true does not. */
const factsOf = ({ runs, ...view }: OverviewView): string =>
  JSON.stringify({ ...view, runs: runs.map((run) => ({ ...run, eta: null, etaRange: null })) });

export const createPictures = (options: PicturesOptions): Pictures => {
  const runs = new Map<number, Seen>();
  let overview: { readonly made: Made; readonly facts: string } | undefined;

  const lookAtOverview = (): Made | undefined => {
    const view = options.overview();
    const facts = factsOf(view);
    if (facts === overview?.facts) return undefined;
    const made = make("overview", view);
    overview = { made, facts };
    return made;
  };

  const lookAtRun = (id: number, seen: Seen): Made | undefined => {
    const stamp = options.runStamp(id);
    if (stamp === seen.stamp) return undefined;
    const view = options.runNow(id);
    if (view === undefined) return undefined;
    seen.stamp = stamp;
    seen.made = make("run", view);
    return seen.made;
  };

  return {
    look: (wanted) => {
      for (const id of wanted) {
        const seen = runs.get(id);
        if (seen !== undefined) seen.left = KEPT_LOOKS;
      }
      const changed = new Map<number, Made>();
      for (const [id, seen] of runs) {
        seen.left -= 1;
        if (seen.left < 0) runs.delete(id);
        const made = lookAtRun(id, seen);
        if (made !== undefined) changed.set(id, made);
      }
      return { overview: lookAtOverview(), runs: changed };
    },
    now: (run) => {
      if (overview === undefined) lookAtOverview();
      const seen = run === undefined ? undefined : runs.get(run);
      return [overview!.made, ...(seen === undefined ? [] : [seen.made])];
    },
    meet: async (id) => {
      const known = runs.get(id);
      if (known !== undefined) {
        known.left = KEPT_LOOKS;
        return;
      }
      const stamp = options.runStamp(id);
      const made = make("run", await options.run(id));
      if (runs.size >= MOST_RUNS) runs.delete(runs.keys().next().value!);
      runs.set(id, { made, stamp, left: KEPT_LOOKS });
    },
    knows: (run) => runs.has(run),
    forget: () => {
      overview = undefined;
      runs.clear();
    },
  };
};
