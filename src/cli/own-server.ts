import { setTimeout as sleep } from "node:timers/promises";
import { isConnectionLost, isFinalRun } from "../client/index.ts";
import { SlipwayError } from "../errors.ts";
import { readEndpoint } from "../protocol/endpoint.ts";
import type { Context } from "./context.ts";
import { settledClusters } from "./cluster-problems.ts";
import { isSurelyDead, untilGone } from "./server-end.ts";
import { startServer } from "./server-process.ts";
import type { ProjectUse, Submission } from "./submission.ts";

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
    detail:
      "--clusters is for a server that the command starts; use it with `slipway up`, or with `run` when no server is running",
  });
};

/** Of a submission, what concerns the server it needs. */
type ServerNeeds = Pick<Submission, "clusters" | "namesClusters" | "foundClusters" | "project">;

/**
 * A server has its queues from its start, and its pilots serve all runs: a run whose project wants other parameters for a
 * queue it goes to is refused, rather than getting jobs that its files do not describe.
 */
export const refuseOverrides = async (context: Context, { overrides, goesTo }: ProjectUse): Promise<void> => {
  if (overrides.size === 0) return;
  const [{ overrides: held = {} }, clusters] = await Promise.all([context.client.server(), context.client.clusters()]);
  const { digestsOf } = await import("../config/effective.ts");
  const wanted = digestsOf(overrides);
  for (const { name, default: isDefault } of clusters) {
    if (!goesTo.includes(name) && !(isDefault && goesTo.includes(undefined))) continue;
    if (wanted[name] === undefined || wanted[name] === held[name]) continue;
    const { key, file, line } = overrides.get(name)![0]!;
    throw new SlipwayError("bad-value", {
      where: `${file}:${line}`,
      key: `clusters.${name}.${key}`,
      detail: `the running server did not start with what this project overrides of '${name}', and its pilots serve other runs too`,
      remedy:
        "`slipway down`, then `slipway up` in this directory; or declare a queue with these parameters in clusters.yaml and choose it with queue:.",
    });
  }
};

/** Makes sure that a server runs. True when this process started it, and so must stop it at the end. */
const ensureServer = async (
  context: Context,
  { clusters, namesClusters, foundClusters, project }: ServerNeeds,
  wasThere: boolean,
): Promise<boolean> => {
  // Any server may see to its end what was submitted already.
  const refuseOthers = async (): Promise<void> => (wasThere ? undefined : refuseOverrides(context, project));
  if (await isServed(context)) {
    if (namesClusters && !wasThere) refuseClusters();
    if (clusters !== undefined)
      context.note(`${clusters} was not read: the running server already has its clusters (\`slipway clusters list\`)`);
    await refuseOthers();
    return false;
  }
  try {
    const explicit = namesClusters ? clusters : undefined;
    const overriding = project.overrides.size === 0 ? undefined : project;
    await startServer({
      home: context.home,
      root: context.root,
      clusters: explicit,
      foundClusters,
      project: overriding,
    });
    // what this run goes to has described itself before it is judged
    const { goesTo } = project;
    await settledClusters(
      context,
      ({ name, default: is }) => goesTo.includes(name) || (is && goesTo.includes(undefined)),
    );
    return true;
  } catch (error) {
    // Another `run` was faster: its server is as good, unless it has other queues.
    if (!(error instanceof SlipwayError && error.code === "server-running")) throw error;
    await refuseOthers();
    return false;
  }
};

/** Whether runs have not ended: then a server stays. */
export const otherRunsLive = async (context: Context): Promise<boolean> =>
  (await context.client.status()).runs.some((run) => !isFinalRun(run));

/** Stops the server this process started, unless other runs are live. */
export const releaseServer = async (context: Context): Promise<void> => {
  try {
    const endpoint = await context.client.endpoint();
    // The server decides: between a question and a request another run could begin.
    const { state } = await context.client.stop({ idle: true });
    if (state === "running") context.note("the server stays up: other runs are live (`slipway down` stops it)");
    else if (!(await untilGone(context.home, endpoint, { timeout: STOPPING_MS })))
      context.note("the server is still stopping");
  } catch (error) {
    // A server that has already gone needs no stopping; the run's outcome stands.
    if (!isConnectionLost(error)) throw error;
  }
};

/** How long a run looks for a server while those of other runs come and go. */
const PATIENCE_MS = 60_000;

/** A server was there, and left: another `run`, whose own it was, has stopped it. */
const hasLeft = (error: unknown): boolean =>
  isConnectionLost(error) || (error instanceof SlipwayError && error.code === "stopping");

export interface ServerUse {
  /** Hears of every server this process starts. */
  readonly found: () => void;
  /** Whether the work may be done again after it had begun. */
  readonly repeatable: boolean;
  /** A server was there a moment ago: look for another only when it has left. */
  readonly wasThere?: boolean;
}

/** Does something that needs a server; when the server leaves meanwhile, does it again with the next one. */
export const withServer = async <T>(
  context: Context,
  submission: ServerNeeds,
  { found, repeatable, wasThere = false }: ServerUse,
  work: () => Promise<T>,
): Promise<T> => {
  const start = performance.now();
  for (let isThere = wasThere; ; isThere = false) {
    if (!isThere && (await ensureServer(context, submission, wasThere))) found();
    try {
      return await work();
    } catch (error) {
      const hadBegun = !(error instanceof SlipwayError && error.code === "no-server");
      if (!hasLeft(error) || (hadBegun && !repeatable) || performance.now() - start > PATIENCE_MS) throw error;
      // One that another run is just starting has no address yet.
      await sleep(100);
    }
  }
};
