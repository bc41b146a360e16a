import { z } from "zod";
import type { Starter } from "../starters/starter.ts";
import { STARTERS } from "../starters/starters.ts";
import type { Kind } from "./key-table.ts";
import { directory, name as nameKind, planOf, readKeys, shapeOf, words, type Values } from "./key-table.ts";
import { suggest } from "./nearest.ts";
import { badValue } from "./source.ts";

export const STARTER_KEYS = {
  name: nameKind,
  program: nameKind,
  overrides: words,
  prefix: words,
  "working-directory": directory(),
} as const;

type StarterValues = Values<typeof STARTER_KEYS>;

/** What starts the agent on every node of a pilot's job: the key `launcher`. */
export interface StarterConfig {
  readonly name: string;
  /** For a starter from outside. */
  readonly start?: Starter;
  /** Its program, unless that is the one of its name on the PATH. */
  readonly program?: string;
  /** Words put before the command, after the launcher's own options. */
  readonly overrides: readonly string[];
  /** Words before the agent's command on each node: a container's, a profiler's. */
  readonly prefix: readonly string[];
  /** Where the agent starts on each node. */
  readonly workingDirectory?: string;
}

const StarterMap = z.strictObject(shapeOf(STARTER_KEYS), { error: "must be a launcher's name, or a map" });

export type Starters = Readonly<Record<string, Starter>>;

/** A name, or a map with the name and what differs. `outside`: starters that do not come with Slipway. */
export const launcherKind = (outside: Starters): Kind<StarterConfig> => ({
  schema: z.union([z.string(), StarterMap], { error: "must be a launcher's name, or a map with a name" }),
  plan: { text: true, keys: planOf(STARTER_KEYS) },
  names: Object.keys(STARTER_KEYS),
  read: (value: string | z.infer<typeof StarterMap>, source, at) => {
    const read = typeof value === "string" ? { name: value } : readKeys(STARTER_KEYS, source, at, value).values;
    const { name, overrides = [], prefix = [], ...rest } = read as StarterValues;
    const names = [...Object.keys(STARTERS), ...Object.keys(outside)];
    const where = typeof value === "string" ? at : [...at, "name"];
    if (name === undefined) return badValue(source, at, "has no name", `Add name: ${names.join(", ")}.`);
    if (!names.includes(name))
      return badValue(
        source,
        where,
        `there is no launcher '${name}'${suggest(name, names)}`,
        `Known launchers: ${names.join(", ")}.`,
      );
    if (name === "wrapped" && prefix.length === 0)
      badValue(source, at, "wrapped needs a prefix", "Write launcher: { name: wrapped, prefix: [words, …] }.");
    const start = Object.hasOwn(outside, name) ? outside[name]! : undefined;
    return { name, overrides, prefix, ...rest, ...(start === undefined ? {} : { start }) };
  },
});

export const launcher = launcherKind({});
