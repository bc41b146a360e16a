import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute } from "node:path";
import type { AgentSettings } from "./settings.ts";

/** What an agent was told, from its command line or from a file that only its user can read. */

type Environment = Readonly<Record<string, string | undefined>>;

/** `$TMPDIR/x` with the node's own value; where it has none, the system's directory for such things. */
export const expandScratch = (scratch: string, env: Environment): string => {
  const [, name, rest] = /^\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?(.*)$/s.exec(scratch) ?? [];
  if (name === undefined) return scratch;
  const value = env[name] ?? "";
  return `${isAbsolute(value) ? value : tmpdir()}${rest}`;
};

export const readSettings = (
  given: { readonly settings?: string | undefined; readonly "settings-file"?: string | undefined },
  env: Environment = process.env,
): AgentSettings => {
  const file = given["settings-file"];
  const text = given.settings ?? (file === undefined ? undefined : readFileSync(file, "utf8"));
  if (text === undefined)
    throw new Error("agent.js is started by a pilot, or by `slipway agent`: --settings or --settings-file is missing");
  const settings = JSON.parse(text) as AgentSettings;
  return { ...settings, scratch: expandScratch(settings.scratch, env) };
};
