import { isConnectionLost, isFinalRun } from "../client/index.ts";
import { SlipwayError } from "../errors.ts";
import { readEndpoint } from "../protocol/endpoint.ts";
import type { Context } from "./context.ts";
import { isSurelyDead, untilGone } from "./gone.ts";
import { startServer } from "./server-process.ts";
import type { Submission } from "./submission.ts";

/** How long a server that is stopping is given before a run complains about it. */
const STOPPING_MS = 30_000;

/** Whether a server answers for this home; one that crashed and left its endpoint behind does not count as one. */
const isServed = async (context: Context): Promise<boolean> => {
  const endpoint = await readEndpoint(context.home);
  if (endpoint === undefined) return false;
  try {
    const { state } = await context.client.server();
    if (state !== "stopping") return true;
    return !(await untilGone(context.home, endpoint, { timeout: STOPPING_MS }));
  } catch (error) {
    if (isConnectionLost(error) && (isSurelyDead(endpoint) || (await readEndpoint(context.home)) === undefined))
      return false;
    throw error;
  }
};

/** A server reads its clusters when it starts: one that runs cannot be given others. */
export const refuseClusters = (): never => {
  throw new SlipwayError("usage", {
    detail: "--clusters is for the server a command starts; give it to `slipway up`, or to `run` without a server",
  });
};

/** Makes sure that a server runs. True when this process started it, and so is to stop it at the end. */
export const ensureServer = async (
  context: Context,
  { clusters, namesClusters }: Pick<Submission, "clusters" | "namesClusters">,
): Promise<boolean> => {
  if (await isServed(context)) return namesClusters ? refuseClusters() : false;
  try {
    await startServer({ home: context.home, root: context.root, clusters });
    return true;
  } catch (error) {
    // Another `run` was faster: its server is as good.
    if (error instanceof SlipwayError && error.code === "server-running") return false;
    throw error;
  }
};

/** Whether runs have not ended: then a server stays. */
export const otherRunsLive = async (context: Context): Promise<boolean> =>
  (await context.client.status()).runs.some((run) => !isFinalRun(run));

/** Stops the server this process started, unless other runs are live. */
export const releaseServer = async (context: Context): Promise<void> => {
  try {
    if (await otherRunsLive(context)) {
      context.note("the server stays up: other runs are live (`slipway down` stops it)");
      return;
    }
    const endpoint = await context.client.endpoint();
    await context.client.stop();
    if (!(await untilGone(context.home, endpoint, { timeout: STOPPING_MS })))
      context.note("the server is still stopping");
  } catch (error) {
    // A server that has gone by itself needs no stopping; the outcome of the run stands.
    if (!isConnectionLost(error)) throw error;
  }
};
