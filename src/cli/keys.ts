import { readFileSync } from "node:fs";

/**
 * Single keys of the terminal, without Enter, while something is shown. What the terminal usually makes of Ctrl-C,
 * Ctrl-\ and Ctrl-Z stays: node's raw mode takes that away, so it is done here. Nothing is read while this process is
 * in the background, where reading would stop it.
 */

const CONTROL: Readonly<Record<string, NodeJS.Signals>> = { "\u0003": "SIGINT", "\u001c": "SIGQUIT" };
const SUSPEND = "\u001a";

/** Whether the terminal is ours now: its foreground group is this process's. */
const isForeground = (): boolean => {
  try {
    // the command's name, in parentheses, may hold anything
    const [, , group, , , terminalGroup] = readFileSync("/proc/self/stat", "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return group === terminalGroup;
  } catch {
    return false;
  }
};

export const canReadKeys = (): boolean =>
  process.stdin.isTTY === true && process.stderr.isTTY === true && process.env["TERM"] !== "dumb" && isForeground();

/** Calls `pressed` with each key; returns what gives the terminal back. */
export const onKeys = (pressed: (key: string) => void): (() => void) => {
  const { stdin } = process;
  let isRaw = false;
  const raw = (on: boolean): void => {
    if (on === isRaw) return;
    isRaw = on;
    stdin.setRawMode(on);
    if (on) stdin.resume();
    else stdin.pause();
  };
  const heard = (data: Buffer): void => {
    for (const key of data.toString("utf8")) {
      if (key === SUSPEND) {
        raw(false);
        process.kill(process.pid, "SIGTSTP");
      } else if (CONTROL[key] !== undefined) process.kill(process.pid, CONTROL[key]);
      else pressed(key);
    }
  };
  const continued = (): void => {
    if (isForeground()) raw(true);
  };
  const leave = (): void => raw(false);
  stdin.on("data", heard);
  process.on("SIGCONT", continued);
  // whatever ends this process, the terminal is as it was
  process.once("exit", leave);
  raw(true);
  return () => {
    stdin.off("data", heard);
    process.off("SIGCONT", continued);
    process.off("exit", leave);
    raw(false);
    // nothing waits for the terminal any more
    stdin.unref();
  };
};
