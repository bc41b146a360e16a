// Runs other programs: collects their output, bounds its size and time, and measures the seconds it took.
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * The environment of every contender. Variables that would point Slipway at another server or change how it works are
 * left out, and so are the dozens that npm sets, which would make every exec more expensive than at a user's prompt.
 */
export const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(SLIPWAY_|NODE_OPTIONS$|npm_)/.test(name)),
);

const MOST_OUTPUT = 64 * 1024 * 1024;

/** A program's failure in one line: the last that it wrote. */
const lastWords = (text) => text.trimEnd().split("\n").at(-1)?.slice(0, 300) ?? "";

/** Running programs, to end when the bench is interrupted. */
const underWay = new Set();

export const endAll = () => {
  for (const child of underWay) endGroup(child);
};

const endGroup = (child) => {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
};

/**
 * Resolves with what a command wrote and how many seconds it took, whatever its exit status; rejects when it could not
 * be started or took longer than `timeout` seconds. It leads a process group of its own. A timeout ends the whole
 * group, and so does an interrupt, unless the command is `spared` because it starts or ends something that outlives it.
 */
export const attempt = (command, args, { input, timeout = 600, env = environment, cwd, spared = false } = {}) =>
  new Promise((done, failed) => {
    const begun = performance.now();
    const child = spawn(command, args, { env, cwd, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    const text = { stdout: "", stderr: "" };
    const timer = setTimeout(() => {
      endGroup(child);
      failed(new Error(`${command} did not end within ${timeout} s`));
    }, timeout * 1000);
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8");
      child[name].on("data", (data) => {
        if (text[name].length < MOST_OUTPUT) text[name] += data;
      });
    }
    if (!spared) child.once("spawn", () => underWay.add(child));
    child.once("error", (error) => {
      clearTimeout(timer);
      failed(error);
    });
    child.once("close", (status, signal) => {
      clearTimeout(timer);
      underWay.delete(child);
      done({ ...text, status, signal, seconds: (performance.now() - begun) / 1000 });
    });
    // A command that does not read its input may close it first.
    child.stdin.on("error", (error) => {
      if (error.code !== "EPIPE") failed(error);
    });
    child.stdin.end(input ?? "");
  });

/** The same, but an exit status other than 0 is an error with the command's last words. */
export const execute = async (command, args, options) => {
  const result = await attempt(command, args, options);
  if (result.status === 0) return result;
  const how = result.signal === null ? `exit status ${result.status}` : result.signal;
  throw new Error(`${[command, ...args].join(" ").slice(0, 200)}: ${how}: ${lastWords(result.stderr)}`);
};

/** Where a program is on PATH; undefined if it is not. */
export const findProgram = (name) => {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      continue;
    }
  }
  return undefined;
};
