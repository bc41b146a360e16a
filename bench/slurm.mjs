// A real Slurm on this machine, the one that the tests boot, for the time of the measurement.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSource } from "../scripts/load-source.mjs";
import { noteTime, readTimes, writeScript } from "./counted-commands.mjs";
import { Skipped } from "./rounds.mjs";
import { keepOpen } from "./slipway.mjs";

/**
 * How long, in seconds, Slurm shows a job that has ended: the least that it accepts, so that the server asks for
 * histories.
 */
const MIN_JOB_AGE = 2;

/**
 * Boots it, with accounting if that is installed; throws Skipped if Slurm is not. `startOf` resolves with the
 * milliseconds at which a node began with a job: Slurm's own times are whole seconds, so a prolog writes them.
 */
export const openSlurm = async ({ cpus, accounting: wanted, epilog: wantsEnds = false }) => {
  const { startSlurm, skipReason } = await loadSource('export * from "./test/clusters/lab/slurm.ts";');
  const missing = skipReason();
  if (missing !== undefined) throw new Skipped(missing);
  const withoutHistory = wanted ? skipReason({ accounting: true }) : "a history is not asked for in so short a run";
  const directory = await mkdtemp(join(tmpdir(), "slw-bench-slurm-"));
  const [starts, ends, prolog, epilog] = ["starts", "ends", "prolog", "epilog"].map((name) => join(directory, name));
  const written = Promise.all([
    writeScript(prolog, noteTime("$SLURM_JOB_ID", starts)),
    writeScript(epilog, noteTime("$SLURM_JOB_ID", ends)),
  ]);
  const booting = written.then(() =>
    startSlurm({
      nodes: 1,
      cpus,
      bigNodes: 0,
      plainNodes: 0,
      gpus: {},
      accounting: withoutHistory === undefined,
      minJobAge: MIN_JOB_AGE,
      extra: [`Prolog=${prolog}`, ...(wantsEnds ? [`Epilog=${epilog}`] : [])],
    }),
  );
  const session = {
    directory,
    /** Why there is no history. */
    withoutHistory,
    startOf: async (id) => (await readTimes(starts)).find(({ words }) => words === id)?.at,
    /** The same of its end, if that was wanted. */
    endOf: async (id) => (await readTimes(ends)).find(({ words }) => words === id)?.at,
    ends: () => readTimes(ends),
    /** Of the first job that began after this. */
    firstStart: async (from) => (await readTimes(starts)).find(({ at }) => at >= from)?.at,
  };
  keepOpen(session, async () => {
    // a Slurm that did not start has left nothing, and has said why
    await (await booting.catch(() => undefined))?.stop();
    await rm(directory, { recursive: true, force: true });
  });
  try {
    const { env, run } = await booting;
    return Object.assign(session, { config: env.SLURM_CONF, run });
  } catch (error) {
    await session.close();
    throw error;
  }
};
