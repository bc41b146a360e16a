import { constants } from "node:os";
import { z } from "zod";
import { reader } from "./layer-reader.ts";
import { badValue, type Path, type Source } from "./source.ts";

/** The keys of a queue's `fleet`: how many pilots it keeps, when they go, and what happens when they do not start. */

export const STRATEGIES = ["auto", "adaptive", "simple", "none"] as const;
export const ERROR_HANDLERS = ["pause", "simple", "windowed"] as const;
export const WHEN_GONE = ["wait", "fail"] as const;

export interface FleetConfig {
  /**
   * `auto` follows the work both ways, `adaptive` follows its expected duration, `simple` only gives back all pilots at
   * once when idle, `none` starts `init`.
   */
  readonly strategy: (typeof STRATEGIES)[number];
  readonly init: number;
  readonly min: number;
  readonly max: number;
  /** The share of waiting work that pilots are started for: 1 all at once, 0 one pilot for any amount. */
  readonly parallelism: number;
  /** Seconds without work after which a pilot above `min` ends. */
  readonly idle: number;
  /** Seconds between two looks at the manager. */
  readonly period: number;
  /** What follows when pilots do not start: only a pause, or the waiting tasks fail as well. */
  readonly errorHandler: (typeof ERROR_HANDLERS)[number];
  /** How many failed starts in a row `windowed` waits for. */
  readonly window: number;
  /** What tasks do when all pilots of `none` have ended. */
  readonly whenGone: (typeof WHEN_GONE)[number];
  /** For `adaptive`, in seconds: assumed for a task that nothing is known about; in which all work should be done. */
  readonly unknownTaskDuration: number;
  readonly targetDuration: number;
  /** For `adaptive`: a pilot goes after it was superfluous for this many periods in a row. */
  readonly waitCount: number;
  /** Seconds after which a pilot takes no new tasks; undefined: worked out from its walltime. */
  readonly lifetime?: number;
  /** Each pilot lives longer by its own share of these seconds; undefined: worked out from its walltime. */
  readonly stagger?: number;
}

const DURATION = { error: "must be a duration such as 90, 10m or 04:00:00" };
const duration = z.union([z.number(), z.string()], DURATION);
const whole = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const number = z.number({ error: "must be a number" });
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: `must be one of ${values.join(", ")}` });

export const FleetInput = z.strictObject(
  {
    strategy: oneOf(STRATEGIES).optional(),
    init: whole.optional(),
    min: whole.optional(),
    max: whole.optional(),
    parallelism: number.optional(),
    idle: duration.optional(),
    period: duration.optional(),
    "error-handler": oneOf(ERROR_HANDLERS).optional(),
    window: whole.optional(),
    "when-gone": oneOf(WHEN_GONE).optional(),
    "unknown-task-duration": duration.optional(),
    "target-duration": duration.optional(),
    "wait-count": whole.optional(),
    lifetime: duration.optional(),
    stagger: duration.optional(),
  },
  { error: "must be a map of keys and values" },
);

export type FleetInput = z.infer<typeof FleetInput>;
export type FleetLayer = Readonly<Partial<FleetConfig>>;

export const FLEET: FleetConfig = {
  strategy: "auto",
  init: 0,
  min: 0,
  max: 10,
  parallelism: 1,
  idle: 120,
  period: 5,
  errorHandler: "pause",
  window: 3,
  whenGone: "wait",
  unknownTaskDuration: 60,
  targetDuration: 600,
  waitCount: 3,
};

const MAX_PILOTS = 100_000;
const MAX_COUNT = 1_000;

export const readFleet = (source: Source, path: Path, input: FleetInput): FleetLayer => {
  const { out, key, whole: between, seconds } = reader(source, path, input);
  const positive = (value: string | number, at: Path): number =>
    seconds(value, at) || badValue(source, at, "must be more than 0");
  key("strategy", (value) => value);
  for (const name of ["init", "min", "max"] as const) key(name, between(0, MAX_PILOTS));
  key("parallelism", between(0, 1));
  for (const name of ["idle", "stagger"] as const) key(name, seconds);
  for (const name of ["period", "lifetime", "target-duration", "unknown-task-duration"] as const) key(name, positive);
  key("error-handler", (value) => value);
  key("when-gone", (value) => value);
  for (const name of ["window", "wait-count"] as const) key(name, between(1, MAX_COUNT));
  return Object.fromEntries(
    Object.entries(out).map(([name, value]) => [name.replaceAll(/-(.)/g, (_, c: string) => c.toUpperCase()), value]),
  );
};

/** What was written over the defaults; max follows min and init where only these were written. */
export const finishFleet = (
  source: Source,
  path: Path,
  defaults: FleetConfig,
  written: FleetLayer | undefined,
): FleetConfig => {
  const complete = { ...defaults, ...written };
  if (written?.max === undefined) complete.max = Math.max(complete.max, complete.min, complete.init);
  if (complete.min > complete.max || complete.init > complete.max) {
    const detail = `needs min ≤ max and init ≤ max; min is ${complete.min}, init ${complete.init}, max ${complete.max}`;
    badValue(source, path, detail);
  }
  return complete;
};

/** The name of a signal, with or without SIG. */
export const readSignal = (source: Source, path: Path, value: string): string => {
  const name = value.toUpperCase().startsWith("SIG") ? value.toUpperCase() : `SIG${value.toUpperCase()}`;
  if (!Object.hasOwn(constants.signals, name) || name === "SIGKILL" || name === "SIGSTOP")
    return badValue(
      source,
      path,
      `'${value}' is not a signal that a task can catch`,
      "Use a signal such as TERM, USR1 or INT.",
    );
  return name;
};
