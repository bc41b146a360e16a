import { spawn } from "node:child_process";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { serverBundle } from "../server-process.ts";
import { type Define, examples, subcommand } from "../verb.ts";

const ACTIONS = [
  ["info", "segments, snapshot, size, what it holds"],
  ["verify", "read every record and check it, changing nothing"],
  ["compact", "fold old segments into a snapshot"],
  ["repair", "keep everything that can be read, set aside events that cannot be applied"],
  ["export", "every event as a line of JSON"],
] as const;

/** The journal belongs to the server: its bundle does the work, without a server running. */
const runAction = async (context: Context, action: string, args: readonly string[]): Promise<number> => {
  const all = [serverBundle(context.root), "journal", action, "--home", context.home, ...args];
  if (context.json) all.push("--json");
  const child = spawn(process.execPath, all, { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(new SlipwayError("internal", { detail: error.message }, error)));
    child.once("exit", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)));
  });
};

const flags = ({ deep, clusters }: { deep?: boolean; clusters?: string }): string[] => [
  ...(deep === true ? ["--deep"] : []),
  ...(clusters === undefined ? [] : ["--clusters", clusters]),
];

export const define: Define = (command, { act }) => {
  command.addHelpText(
    "after",
    examples(["slipway journal info", "slipway journal verify --deep", "slipway journal export > events.jsonl"]),
  );
  for (const [name, summary] of ACTIONS) {
    const action = subcommand(command, name, summary).action(
      act((context, _args, verb) => runAction(context, name, flags(verb.opts()))),
    );
    if (name === "verify")
      action.option("--deep", "also check that the snapshot and what follows it give the same state as all records");
    if (name === "verify" || name === "compact")
      action.option("--clusters <file>", "a clusters.yaml besides the home's own, as with `up`");
  }
};
