import { spawn } from "node:child_process";
import { SlipwayError } from "../errors.ts";
import { setAside } from "../extra-authorities.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Stays with a process of ours, such as a server: its output is ours, signals go to it, and its status is ours. */
export const inForeground = (args: readonly string[]): Promise<number> => {
  const child = spawn(process.execPath, args, { stdio: "inherit", env: setAside() });
  process.removeAllListeners("SIGINT");
  // a terminal sends Ctrl-C to the whole group, the child included; only what was sent to us alone is forwarded
  for (const signal of SIGNALS)
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(new SlipwayError("internal", { detail: error.message }, error)));
    child.once("exit", (code, signal) => resolve(code ?? (signal === "SIGINT" ? 130 : 1)));
  });
};
