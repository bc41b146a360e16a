// Counts how often a server calls a workload manager's commands: each is wrapped by a script of the same name that
// writes a line and becomes the real one.
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findProgram } from "./commands.mjs";

/** A line of shell that appends the time, in seconds, and some words to a file. */
export const noteTime = (words, file) => `echo "$EPOCHREALTIME ${words}" >>'${file}'`;

/** The lines of such a file: milliseconds, and the words. */
export const readTimes = async (file) =>
  (await readFile(file, "utf8").catch(() => ""))
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const [seconds, words] = line.split(" ");
      return { at: Number(seconds) * 1000, words };
    });

/** A script with these lines. */
export const writeScript = async (path, ...lines) => {
  await writeFile(path, ["#!/bin/bash", ...lines, ""].join("\n"));
  await chmod(path, 0o755);
};

/**
 * Wraps commands in a directory that must come first on the server's PATH. `calls` resolves with the times of all calls
 * so far by their command, in milliseconds; `count` with how many there were of each from one time to another.
 */
export const countCommands = async (directory, names) => {
  const bin = join(directory, "bin");
  const file = join(directory, "calls");
  await mkdir(bin, { recursive: true });
  for (const name of names) {
    const program = findProgram(name);
    // a command that is missing here stays missing for the server
    if (program !== undefined) await writeScript(join(bin, name), noteTime(name, file), `exec '${program}' "$@"`);
  }
  const calls = async () => {
    const all = await readTimes(file);
    return Object.fromEntries(
      names.map((name) => [name, all.filter(({ words }) => words === name).map(({ at }) => at)]),
    );
  };
  const count = async (from, to) =>
    Object.fromEntries(
      Object.entries(await calls()).map(([name, times]) => [name, times.filter((at) => at > from && at <= to).length]),
    );
  return { bin, calls, count };
};
