// The machine's own limits, as small C programs compiled for the occasion.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execute, findProgram } from "./commands.mjs";
import { Skipped } from "./rounds.mjs";
import { onCores } from "./cores.mjs";
import { root, scratch } from "./slipway.mjs";

const NAMES = ["spawn-bare", "spawn-full", "spawn-wide", "read-file"];

export const NO_COMPILER = "no C compiler (cc, gcc, clang, or CC) was found";

export const compilerHere = () =>
  process.env["CC"] ?? ["cc", "gcc", "clang"].find((name) => findProgram(name) !== undefined);

const rateOf = async (command, args, cores) => {
  const [program, ...words] = onCores(cores, [command, ...args.map(String)]);
  const { stdout } = await execute(program, words);
  const rate = Number(stdout);
  if (!(rate > 0)) throw new Error(`${command} printed ${JSON.stringify(stdout)}`);
  return rate;
};

/**
 * Processes per second of a bare posix_spawn loop, and of one with everything that a task needs. `close` removes the
 * programs. Without a compiler both throw Skipped.
 */
export const compileLimits = async () => {
  const compiler = compilerHere();
  if (compiler === undefined) {
    const none = async () => {
      throw new Skipped(NO_COMPILER);
    };
    return { available: false, bare: none, full: none, wide: none, read: none, close: async () => undefined };
  }
  const directory = await mkdtemp(join(tmpdir(), "slipway-limits-"));
  for (const name of NAMES)
    await execute(compiler, ["-O2", "-o", join(directory, name), join(root, "bench", "limits", `${name}.c`)]);
  return {
    available: true,
    bare: (count, concurrency) => rateOf(join(directory, "spawn-bare"), [count, concurrency]),
    /** Its TMPDIRs are where the tasks' are. */
    full: async (count, concurrency) => {
      const place = await mkdtemp(join(scratch, "slipway-limits-"));
      try {
        return await rateOf(join(directory, "spawn-full"), [count, concurrency, place]);
      } finally {
        await rm(place, { recursive: true, force: true });
      }
    },
    /** As many workers as cores, on `cores` if given; `parents`: "one" or "own", for a directory made per task. */
    wide: async (count, workers, { cores, parents } = {}) => {
      const place = parents === undefined ? undefined : await mkdtemp(join(scratch, "slipway-limits-"));
      try {
        const where = place === undefined ? [] : [place, parents];
        return await rateOf(join(directory, "spawn-wide"), [count, workers, ...where], cores);
      } finally {
        if (place !== undefined) await rm(place, { recursive: true, force: true });
      }
    },
    /** How often a file is opened, read and closed in a second of CPU time. */
    read: (count, path) => rateOf(join(directory, "read-file"), [count, path]),
    close: () => rm(directory, { recursive: true, force: true }),
  };
};
