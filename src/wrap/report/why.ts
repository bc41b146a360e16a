import type { WhyView, WrapView } from "../../api/schemas.ts";

/** Why a Dask cluster has no workers, or fewer than one would think, and what would help. Pure. */

type Shown = Omit<WrapView, "why">;

const SHOWN = 3;

const why = (cause: string, detail: string, remedy: string): WhyView => ({ cause, detail, remedy });

const count = (value: number, noun: string): string => `${value} ${noun}${value === 1 ? "" : "s"}`;

/** `2 of 4 workers are connected, for 10 tasks`. */
const standing = ({ workers, wanted, work }: Shown): string => {
  const most = Math.max(wanted, workers.length);
  const there = most === 0 ? "it has no workers" : `${workers.length} of ${count(most, "worker")} connected`;
  return work === 0 ? there : `${there}, for ${count(work, "task")}`;
};

const whyNotRunning = (wrap: Shown): WhyView | undefined => {
  const where = `pid ${wrap.pid} on ${wrap.host}`;
  if (wrap.state === "lost")
    return why(
      "wrapper-lost",
      `its process (${where}) is gone without a word`,
      `\`slipway wrap down ${wrap.id}\` ends what it left; then start it again.`,
    );
  if (wrap.state === "starting")
    return why(
      "starting",
      `its cluster does not stand yet (${where})`,
      `Nothing to do; \`slipway wrap show ${wrap.id}\` names its log.`,
    );
  if (wrap.state === "closing") return why("closing", "it is being closed", "Nothing to do; or start it again.");
  return undefined;
};

/** Jobs that are there and have not brought their workers. */
const whyNotConnected = (wrap: Shown): WhyView | undefined => {
  const late = wrap.pilots.filter(({ workers }) => workers === 0);
  if (wrap.problem !== null && (late.length > 0 || wrap.workers.length < Math.max(1, wrap.wanted)))
    return why(
      "job-failed",
      `${standing(wrap)}; ${wrap.problem}`,
      `It tries again by itself. Correct what its words name: in the parameters of ${wrap.statusFile} (\`slipway wrap down ${wrap.id}\`, then start it again) or on the cluster.`,
    );
  const told = late.filter(({ reason, state }) => reason !== null && state !== "PMGR_ACTIVE");
  if (told.length > 0)
    return why(
      "pilot-queued",
      `${standing(wrap)}; ${count(told.length, "job")} waiting in the workload manager: ${told
        .slice(0, SHOWN)
        .map(({ job, id, reason }) => `${job ?? `pilot ${id}`}: ${reason}`)
        .join("; ")}`,
      "They start when the manager has room for them; `slipway pilots list` shows each.",
    );
  if (late.length > 0)
    return why(
      "pilot-starting",
      `${standing(wrap)}; ${count(late.length, "job")} not connected yet: ${late
        .slice(0, SHOWN)
        .map(({ job, id }) => job ?? `pilot ${id}`)
        .join(", ")}`,
      "Nothing to do: the workload manager is asked every few seconds; `slipway pilots list` shows what it says.",
    );
  return undefined;
};

/** Nothing is missing, or the cluster does not ask for more. */
const whyNoMore = (wrap: Shown): WhyView => {
  const { id, workers, work, clients, minimum, maximum } = wrap;
  if (work === 0)
    return why(
      "idle",
      `${standing(wrap)}: there is nothing to compute (${count(clients, "client")}), and it keeps ${minimum}`,
      `Submit tasks; or keep workers with \`slipway wrap scale ${id} 1-${Math.max(1, maximum)}\`.`,
    );
  if (Math.max(workers.length, wrap.pilots.length) >= maximum)
    return why(
      "at-maximum",
      `${standing(wrap)}: it may have ${maximum}`,
      `\`slipway wrap scale ${id} ${minimum}-${Math.max(1, 2 * maximum)}\` allows more.`,
    );
  const stranded = wrap.tasks["no-worker"] ?? 0;
  if (stranded > 0 && workers.length > 0)
    return why(
      "no-fitting-worker",
      `${standing(wrap)}: ${count(stranded, "task")} may run on none of them`,
      "They ask for resources, or for workers by name, that this cluster does not have: see `dask-resources` in docs/dask.md.",
    );
  if (workers.length === 0)
    return why("scaling", `${standing(wrap)}; the first jobs are about to be asked for`, "Nothing to do: look again.");
  return why(
    "enough",
    `${standing(wrap)}: as Dask knows its tasks, these are done with them within \`target-duration\``,
    `A shorter \`target-duration\` asks for more; \`slipway wrap scale ${id} ${maximum}\` asks for all it may have.`,
  );
};

export const whyWrap = (wrap: Shown): WhyView => whyNotRunning(wrap) ?? whyNotConnected(wrap) ?? whyNoMore(wrap);
