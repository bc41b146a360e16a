import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { type Define, examples } from "../verb.ts";

/** The benchmarks come with the repository, not with the package: they compile C and want the peers' programs. */
const runBench = (context: Context, args: readonly string[]): Promise<number> => {
  const program = path.join(context.root, "bench", "main.mjs");
  if (!existsSync(program))
    throw new SlipwayError("usage", {
      detail: `the benchmarks are not installed (${program} is missing); they are part of Slipway's repository`,
    });
  const child = spawn(process.execPath, [program, ...args, ...(context.json ? ["--json"] : [])], { stdio: "inherit" });
  // Ctrl-C reaches the child too: it stops what it started, then ends.
  process.removeAllListeners("SIGINT");
  process.on("SIGINT", () => undefined);
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(new SlipwayError("internal", { detail: error.message }, error)));
    child.once("exit", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)));
  });
};

export const define: Define = (command, { act }) =>
  void command
    .argument("[options...]", "passed on; `npm run bench -- --help` lists them")
    .allowUnknownOption()
    .description(
      "Measure Slipway on this machine, with servers of its own, against the machine's limits and other programs. Exit " +
        "status: 0 measured, whatever the result; 1 an experiment is broken.",
    )
    .addHelpText("after", examples(["slipway bench", "slipway bench --quick", "slipway bench --only null --json"]))
    .action(act((context, args) => runBench(context, args)));
