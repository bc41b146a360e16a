import { checkAll } from "../checks.ts";
import type { Driven } from "../drive.ts";
import { untilFinished } from "../finish.ts";
import { DEFAULT_LOSSES, type RunPlan, clustersOf } from "../schedule.ts";
import type { Tools } from "../tools.ts";
import { type Submitted, createSubmitted, submitSurely } from "../workload.ts";
import { type World, type WorldOptions, createWorld } from "../world.ts";

/** A fault that is aimed, not drawn: one named case each. */
export interface Scenario {
  readonly name: string;
  /** Why it cannot run here; undefined if it can. */
  readonly absent?: (tools: Tools) => string | undefined;
  /** It mostly waits (for leases, heartbeats), so it may run beside others. */
  readonly waits?: boolean;
  /** Throws when a promise is broken. */
  run(stage: Stage): Promise<void>;
}

export interface Stage {
  readonly tools: Tools;
  /** Opens a home of its own; in the end none of them may leave anything behind. */
  open(options?: Partial<WorldOptions>): Promise<Play>;
}

/** A world and the work submitted to it. */
export interface Play {
  readonly world: World;
  readonly driven: Driven;
  /** Submits, and returns once it is acknowledged. */
  submit(plan?: Partial<RunPlan>): Promise<Submitted>;
  /** Waits for all runs to end and checks each of their tasks. */
  settle(): Promise<void>;
  /** Checks what is there now. */
  check(): Promise<void>;
}

export const expect = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what);
};

const PLAN: RunPlan = {
  at: 0,
  tasks: 50,
  ms: 5,
  every: 0,
  times: 0,
  retries: 0,
  behind: 0,
  lines: false,
  by: "sdk",
};

/** One fleet on this machine. */
export const fleetOf = (pilots: number, cpus = 2): string => clustersOf({ pilots, cpus, losses: DEFAULT_LOSSES });

export const openPlay = async (options: WorldOptions): Promise<Play> => {
  const world = await createWorld({ clusters: fleetOf(1), ...options });
  const driven: Driven = { submitted: [], bulks: [], limits: [DEFAULT_LOSSES] };
  const check = async (): Promise<void> => {
    const problems = await checkAll(world, driven);
    if (problems.length > 0) throw new Error(problems.slice(0, 20).join("\n"));
  };
  return {
    world,
    driven,
    check,
    submit: async (plan = {}) => {
      const one = createSubmitted({ ...PLAN, ...plan }, driven.submitted.length + 1);
      driven.submitted.push(one);
      await submitSurely(world, one);
      return one;
    },
    settle: async () => {
      await untilFinished(world);
      await check();
    },
  };
};
