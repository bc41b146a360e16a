import { drawRun } from "./draw-run.ts";
import { LIES } from "./lies.ts";
import type { Random } from "./random.ts";
import type { Paused, RunPlan, Step } from "./schedule.ts";

/** What the world can do besides the plain trouble. Each feature is drawn by itself and can be requested alone. */

/** How many of a hundred seeds have it when all are wanted. */
const WEIGHTS = {
  /** Runs wait for runs. */
  after: 45,
  /** Groups that begin when another failed, or when it ended in any way. */
  handlers: 35,
  /** Tasks in a row, which are handed ahead to agents. */
  chains: 50,
  /** `retry` of runs that have ended, while others continue. */
  retries: 35,
  /** The journal is compacted at any moment, even without a server. */
  compaction: 40,
  /** `limits.losses` changes between two starts. */
  limits: 18,
  /** Power loss that keeps what was synced. */
  power: 32,
  /** Repeated and simultaneous equal requests, and clients whose connections are cut. */
  repeat: 25,
  /** Messages that no agent sends, from one with a good token. */
  frames: 18,
  /** Tasks that kill their spawner or their agent. */
  killers: 12,
  /** Tasks that are jobs of their own. */
  jobs: 35,
} as const;

export type Feature = keyof typeof WEIGHTS;
export const FEATURES = Object.keys(WEIGHTS) as Feature[];

/** A schedule before it is complete. */
export interface Draft {
  readonly slots: number;
  runs: RunPlan[];
  byHand: number;
  losses: number;
  disk: number | undefined;
  apiProxy: boolean;
  replay: boolean;
  /** Steps that follow each other, to be mixed with the others. */
  readonly extra: Step[][];
  /** Steps after all others. */
  readonly last: Step[];
  /** No task is lost endlessly, so that a high limit does no harm. */
  patient: boolean;
}

const SMALL_RUN = 60;
/** Each of them starts an agent of its own. */
const FEW_JOBS = 12;
const smallRun = (random: Random, draft: Draft, at: number): RunPlan => {
  const run = drawRun(random, at, draft.slots);
  return { ...run, tasks: Math.min(run.tasks, SMALL_RUN) };
};

/** This many tasks that take their agent down, and others that share it with them. */
const killerRun = (random: Random, kills: "spawner" | "agent", tasks: number, times: number): RunPlan => ({
  at: random.int(0, 800),
  tasks,
  ms: random.int(20, 120),
  every: 1,
  times,
  retries: 0,
  behind: 0,
  lines: false,
  by: "sdk",
  kills,
});

const killServer = (random: Random): Step => ({
  kind: "kill-server",
  moment: random.chance(0.5) ? { when: "now" } : { when: "results", count: random.int(1, 40) },
  restart: 0,
  ups: 1,
});

const ADD: Record<Feature, (random: Random, draft: Draft) => void> = {
  after: (random, draft) => {
    if (draft.runs.length === 1) draft.runs.push(smallRun(random, draft, random.int(0, 500)));
    draft.runs = draft.runs.map((run, i) =>
      i === 0 || random.chance(0.3)
        ? run
        : {
            ...run,
            tasks: Math.min(run.tasks, SMALL_RUN),
            after: {
              nth: random.int(0, i - 1),
              on: random.weighed([
                [4, "ok"],
                [3, "any"],
                [2, "failed"],
              ] as const),
            },
          },
    );
  },
  handlers: (random, draft) => {
    draft.runs = draft.runs.map((run) =>
      random.chance(0.7) ? { ...run, alarm: random.int(1, 5), always: random.int(0, 5) } : run,
    );
  },
  chains: (random, draft) => {
    draft.runs = draft.runs.map((run) => (random.chance(0.8) ? { ...run, links: random.int(2, 60) } : run));
  },
  retries: (random, draft) => {
    draft.runs = draft.runs.map((run) =>
      run.retries > 0 && random.chance(0.3) ? { ...run, retryDelay: random.pick([0.1, 0.5]) } : run,
    );
    for (let i = random.int(1, 2); i > 0; i -= 1)
      draft.extra.push([{ kind: "retry", nth: random.int(0, 99), all: random.chance(0.4) }]);
  },
  compaction: (random, draft) => {
    draft.replay = true;
    for (let i = random.int(1, 3); i > 0; i -= 1)
      draft.extra.push(
        random.weighed<() => Step[]>([
          [3, () => [{ kind: "compact" }]],
          [4, () => [{ kind: "compact-meanwhile" }]],
          [2, () => [{ kind: "compact-alone" }]],
          [2, () => [{ kind: "compact" }, killServer(random)]],
        ])(),
      );
  },
  limits: (random, draft) => {
    draft.replay = true;
    draft.byHand = 0;
    const change = (losses: number, late: boolean): Step => ({
      kind: "limits",
      losses,
      late,
      by: random.pick(["kill", "down"] as const),
    });
    const kills = random.pick(["spawner", "agent"] as const);
    if (draft.patient && random.chance(0.5)) {
      draft.losses = 50;
      // more losses than the default limit allows take their time
      draft.runs.push(killerRun(random, kills, 1, random.chance(0.1) ? 6 : random.int(1, 2)));
      draft.extra.push([change(random.chance(0.5) ? 50 : random.int(0, 2), false)]);
      draft.last.push(change(random.int(0, 2), true));
    } else {
      draft.losses = Math.min(draft.losses, random.int(0, 1));
      if (draft.patient) draft.runs.push(killerRun(random, kills, 1, 99));
      draft.patient = false;
      draft.extra.push([change(random.int(0, 2), false)]);
      if (random.chance(0.5)) draft.last.push(change(random.int(0, 50), true));
    }
  },
  power: (random, draft) => {
    draft.byHand = 0;
    draft.disk = random.chance(0.5) ? 0 : random.int(2, 20);
    for (let i = random.chance(0.3) ? 2 : 1; i > 0; i -= 1)
      draft.extra.push([
        ...(random.chance(0.7) ? [killServer(random)] : []),
        {
          kind: "power",
          restart: random.chance(0.7) ? 0 : random.int(50, 500),
          bytes: random.weighed([
            [4, "none"],
            [3, "some"],
            [1, "all"],
          ] as const),
          names: random.chance(0.6) ? "synced" : "kept",
          starting: random.chance(0.3) ? random.int(50, 900) : undefined,
        },
      ]);
  },
  repeat: (random, draft) => {
    draft.apiProxy = true;
    draft.runs = draft.runs.map((run) =>
      run.by === "sdk" && random.chance(0.7)
        ? {
            ...run,
            lines: run.lines || random.chance(0.5),
            repeat: { times: random.int(2, 8), apart: random.int(0, 15), pace: random.int(0, 8) },
          }
        : run,
    );
    draft.extra.push([
      {
        kind: "cut-submit",
        lines: random.pick([500, 5000, 20_000]),
        cuts: Array.from({ length: random.int(1, 3) }, () => random.int(20, 400)),
      },
    ]);
  },
  frames: (random, draft) => {
    draft.replay = true;
    draft.extra.push([
      { kind: "lie", lies: Array.from({ length: random.int(1, 4) }, () => random.pick(LIES)), nth: random.int(0, 99) },
    ]);
  },
  jobs: (random, draft) => {
    draft.runs = draft.runs.map((run, i) =>
      i === 0 || random.chance(0.6)
        ? {
            ...run,
            jobs: true,
            tasks: Math.min(run.tasks, random.int(1, FEW_JOBS)),
            behind: Math.min(run.behind, 3),
            ...(run.alarm === undefined ? {} : { alarm: Math.min(run.alarm, 2) }),
            ...(run.always === undefined ? {} : { always: Math.min(run.always, 2) }),
          }
        : run,
    );
  },
  killers: (random, draft) => {
    draft.byHand = 0;
    const kills = random.chance(0.6) ? "spawner" : "agent";
    if (random.chance(0.5)) {
      // given up after few losses: each costs a pilot
      draft.patient = false;
      draft.losses = random.int(0, 1);
      draft.runs.push(killerRun(random, kills, 1, 99));
    } else draft.runs.push(killerRun(random, kills, 1, random.int(1, 2)));
  },
};

/** Features that others depend on come first. */
const ORDER: readonly Feature[] = ["killers", ...FEATURES.filter((feature) => feature !== "killers")];

/** A feature that is requested alone is always present. */
export const addFeatures = (random: Random, wanted: readonly Feature[], draft: Draft): Feature[] => {
  const all = wanted.length === FEATURES.length;
  return ORDER.filter((feature) => {
    const own = random.fork(feature);
    if (!wanted.includes(feature) || !(all ? own.chance(WEIGHTS[feature] / 100) : true)) return false;
    ADD[feature](own, draft);
    return true;
  });
};

/** A seed takes about as long whatever it contains: what is added replaces something else. */
export const mixIn = (random: Random, steps: readonly Paused[], { extra, last }: Draft): Paused[] => {
  const more = extra.flat().length + last.length;
  const groups: Paused[][] = steps.slice(0, Math.max(1, steps.length - more)).map((step) => [step]);
  const paused = (step: Step): Paused => ({ ...step, pause: random.int(20, 500) });
  for (const group of extra) groups.splice(random.int(0, groups.length), 0, group.map(paused));
  return [...groups.flat(), ...last.map(paused)];
};
