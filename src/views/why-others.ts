import type { LaunchView } from "../api/launch-schemas.ts";
import type { ClusterView, FleetView, PilotView, WhyView } from "../api/schemas.ts";
import type { ManagerSays } from "./why.ts";

/** Why pilots, fleets, clusters and launches are where they are, and what would help. */

const why = (cause: string, detail: string, remedy: string): WhyView => ({ cause, detail, remedy });

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

const checkText = (cluster: string): string => `\`slipway clusters check ${cluster}\` says what to fix.`;

const runningOf = ({ agents }: PilotView): number => agents.reduce((sum, { running }) => sum + running, 0);

/** `says`: what the manager says while it waits. */
export const whyPilot = (pilot: PilotView, says: ManagerSays | null): WhyView => {
  const { id, cluster, queue, state, nativeId, reason, output, agents } = pilot;
  const name = `pilot ${id} of ${cluster}/${queue}${nativeId === null ? "" : ` (job ${nativeId})`}`;
  const told = reason === null ? "" : `: ${reason}`;
  if (state === "FAILED")
    return why(
      "failed",
      `${name} failed${told}${output === null ? "" : `\nit printed:\n${output}`}`,
      `Correct what these words name, in the queue's keys in clusters.yaml or on the cluster. ${checkText(cluster)}`,
    );
  if (state === "CANCELED") return why("canceled", `${name} was cancelled${told}`, "Tasks that it had run elsewhere.");
  if (state === "DONE") return why("done", `${name} has ended${told}`, "Nothing to do.");
  if (says !== null)
    return why("pilot-queued", `${name} is ${says.text}`, says.remedy ?? "It starts when the manager has room for it.");
  const connected = agents.filter((agent) => agent.state === "connected" || agent.state === "draining");
  if (connected.length > 0)
    return why(
      pilot.draining ? "draining" : "running",
      `${name} runs ${plural(runningOf(pilot), "task")} on ${plural(connected.length, "agent")}${pilot.draining ? "; it takes nothing new and ends when it is empty" : ""}`,
      "Nothing to do.",
    );
  if (agents.some((agent) => agent.state === "suspect"))
    return why(
      "agent-silent",
      `${name}: its agents do not answer`,
      "Slipway gives them up when their lease is over or their job is gone; their tasks then run again.",
    );
  if (nativeId === null)
    return why("pilot-starting", `${name} is being handed to its manager`, "The manager's answer is awaited.");
  return why(
    "pilot-starting",
    `${name} has begun, and no agent of it has connected yet`,
    "If none comes, its nodes may not reach this server, or its prologue takes long: the files stdout and stderr in its directory say more.",
  );
};

/** `pilots`: those of it that have not ended, each with its answer. */
export const whyFleet = (fleet: FleetView, pilots: readonly WhyView[]): WhyView => {
  const { cluster, queue, problem, failure, waiting, active, max } = fleet;
  const name = `fleet ${cluster}/${queue}`;
  const last = failure === null ? "" : `; the last one, ${failure}`;
  if (problem !== null) return why("no-pilot", `${name} starts no pilot: ${problem}${last}`, checkText(cluster));
  if (active === 0 && pilots.length > 0)
    return {
      ...pilots[0]!,
      detail: `${name}: ${pilots
        .slice(0, 3)
        .map(({ detail }) => detail)
        .join("; ")}`,
    };
  if (waiting === 0)
    return why(
      "idle",
      `${name}: no task waits for it; ${active === 0 ? "it has no pilots" : `${plural(active, "pilot")} of it ${active === 1 ? "is" : "are"} active`}`,
      "Nothing to do: pilots come with the tasks.",
    );
  if (max === 0)
    return why(
      "no-pilot",
      `${name} may start no pilot: its max is 0, and ${plural(waiting, "task")} wait`,
      "Raise max in clusters.yaml, or start one with `slipway pilots add`.",
    );
  if (pilots.length >= max)
    return why(
      "at-max",
      `${name} has all ${plural(max, "pilot")} that its max allows; ${plural(waiting, "task")} wait for room on them`,
      "They start when others end; a larger max in clusters.yaml starts more pilots.",
    );
  if (pilots.length === 0)
    return why("no-pilot", `${name} has no pilot yet; ${plural(waiting, "task")} wait${last}`, checkText(cluster));
  return why(
    "running",
    `${name}: ${plural(active, "pilot")} active, ${plural(waiting, "task")} wait`,
    "They start as places become free.",
  );
};

/** `fleets`: the answers of its queues. */
export const whyCluster = (cluster: ClusterView, fleets: readonly WhyView[]): WhyView => {
  const { name, problem } = cluster;
  const since = problem?.since == null ? "" : ` since ${problem.since.slice(0, 19).replace("T", " ")} UTC`;
  if (problem != null)
    return why(
      "cluster-unusable",
      `cluster ${name} cannot be used${since}: ${problem.cause}; its tasks ${problem.tasks === "local" ? "run on this machine" : "wait"}`,
      `To change that, ${problem.remedy}. ${checkText(name)}`,
    );
  if (problem === undefined)
    return why("untried", `cluster ${name} has not answered since this server started`, checkText(name));
  const bad = fleets.find(({ cause }) => cause === "no-pilot" || cause === "failed");
  const worst = bad ?? fleets.find(({ cause }) => cause === "pilot-queued") ?? fleets[0];
  if (worst === undefined) return why("idle", `cluster ${name} answers; it has no queues`, "Nothing to do.");
  return why(worst.cause, `cluster ${name} answers. ${fleets.map(({ detail }) => detail).join(". ")}`, worst.remedy);
};

/** `says`: what the manager's words mean while it waits. */
export const whyLaunch = (launch: LaunchView, says: ManagerSays | null): WhyView => {
  const { id, state, cluster, nativeId, reason, exitCode, errorLog } = launch;
  const name = `launch ${id} (${nativeId === null ? launch.jobName : `job ${nativeId}`} of ${cluster})`;
  const told = reason === null ? "" : `: ${reason}`;
  switch (state) {
    case "pending":
      if (nativeId === null)
        return why("job-requested", `${name} waits for ${cluster}'s answer${told}`, checkText(cluster));
      return why(
        "job-queued",
        `${name} is ${says?.text ?? `waiting${told}`}`,
        says?.remedy ?? "It starts when the manager has room for it.",
      );
    case "running":
      return why(
        "running",
        `${name} runs on ${launch.hosts.join(", ") || "its nodes"}`,
        `\`slipway jobs logs ${id} -f\` follows what it prints.`,
      );
    case "succeeded":
      return why("done", `${name} succeeded`, "Nothing to do.");
    case "cancelled":
      return why(
        "canceled",
        `${name} was cancelled${launch.cancelledBy === null ? told : ` by ${launch.cancelledBy}`}`,
        "Nothing to do; launch it again if it is still needed.",
      );
    case "lost":
      return why(
        "lost",
        `${name} is unknown to its manager${told}`,
        "Its manager forgot it, or its record is gone: look at its directory, and launch it again.",
      );
    default:
      return why(
        "failed",
        `${name} failed${exitCode === null ? "" : ` with exit code ${exitCode}`}${told}${errorLog === null ? "" : `\nit printed:\n${errorLog}`}`,
        `\`slipway jobs logs ${id} --stderr\` has all of it.`,
      );
  }
};
