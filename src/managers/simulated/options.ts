import { withoutSkipped, type PilotAsk } from "../manager.ts";

/** The variable with the number of an element of an array, and the number of the first one. */
export const SIMULATED_ARRAY = { variable: "SLIPWAY_SIMULATED_ELEMENT", first: 0 } as const;

/** What a simulated job asks, as the words that `submit` is given before the command. */
export interface SimulatedAsk {
  readonly nodes: number;
  /** Of each node; undefined: all of them. */
  readonly cores?: number;
  readonly walltimeMs?: number;
  readonly partition?: string;
  readonly isHeld: boolean;
  /** No earlier than this long after its submission. */
  readonly beginMs: number;
}

type SimulatedWishes = Pick<PilotAsk, "nodes" | "cores" | "walltime" | "partition" | "options" | "skipOptions">;

/** What a pilot of a queue asks of the simulation. */
export const simulatedOptions = (ask: SimulatedWishes): string[] =>
  withoutSkipped(
    [
      `--nodes=${ask.nodes}`,
      ...(ask.cores === undefined ? [] : [`--cores=${ask.cores}`]),
      ...(ask.walltime === undefined ? [] : [`--walltime=${ask.walltime}`]),
      ...(ask.partition === undefined ? [] : [`--partition=${ask.partition}`]),
      ...ask.options,
    ],
    ask.skipOptions,
  );

const MOST = 1_000_000_000;

/** The ask, or what is wrong with the words. */
export const readOptions = (words: readonly string[]): SimulatedAsk | string => {
  const ask: { -readonly [K in keyof SimulatedAsk]: SimulatedAsk[K] } = { nodes: 1, isHeld: false, beginMs: 0 };
  for (const word of words) {
    const [, name = "", value] = /^--([a-z]+)(?:=(.*))?$/s.exec(word) ?? [];
    const number = value !== undefined && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : undefined;
    const wrong = `invalid value of --${name}: ${value ?? "none"}`;
    if (name === "hold" && value === undefined) ask.isHeld = true;
    else if (name === "partition" && value !== undefined) ask.partition = value;
    else if (name === "nodes" || name === "cores") {
      if (number === undefined || !Number.isInteger(number) || number < 1 || number > MOST) return wrong;
      ask[name] = number;
    } else if (name === "walltime" || name === "begin") {
      if (number === undefined || number > MOST) return wrong;
      if (name === "walltime") ask.walltimeMs = number * 1000;
      else ask.beginMs = number * 1000;
    } else return `unknown option ${word}`;
  }
  return ask;
};
