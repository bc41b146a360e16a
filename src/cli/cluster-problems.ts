import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterView, ServerView, SubmitAnswer } from "../api/schemas.ts";
import type { Context } from "./context.ts";
import { plural } from "./render/text.ts";

/** Clusters that cannot be used: one line for each, with the cause and what to do. */

/** How long a command that has started a server waits for managers to answer. */
const PATIENCE_MS = 5000;
const LOOK_MS = 100;

const warningOf = ({ name, problem }: ClusterView): string | undefined => {
  if (problem === undefined)
    return `warning: cluster ${name} has not answered yet; its tasks wait until it does (\`slipway clusters check ${name}\` says what to fix)`;
  if (problem === null) return undefined;
  const { cause, remedy, tasks } = problem;
  const become = tasks === "local" ? "its tasks run on this machine" : "its tasks wait";
  return `warning: cluster ${name} cannot be used: ${cause}; ${become}. To change that, ${remedy}.`;
};

/** The clusters of a server that has just started, once their managers have described themselves, or after a while. */
export const settledClusters = async (
  context: Pick<Context, "client">,
  which: (cluster: ClusterView) => boolean = () => true,
): Promise<ClusterView[]> => {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const clusters = await context.client.clusters();
    const isOpen = clusters.some((cluster) => cluster.problem === undefined && which(cluster));
    if (!isOpen || performance.now() > end) return clusters;
    await sleep(LOOK_MS);
  }
};

/** Says which clusters of a server that has just started cannot be used. */
export const tellProblems = async (context: Context): Promise<void> => {
  const { clustersFile } = await context.client.server();
  for (const warning of clustersFile?.warnings ?? []) context.note(`warning: ${warning}`);
  for (const cluster of await settledClusters(context)) {
    const warning = warningOf(cluster);
    if (warning !== undefined) context.note(warning);
  }
};

/** Says that the server could not take a connection of every agent that its fleets may bring. */
export const tellFileLimit = ({ files }: Pick<ServerView, "files">, note: (text: string) => void): void => {
  if (files === undefined || files.wanted <= files.limit) return;
  note(
    `warning: the server may open ${files.limit} files, and with all its fleets at their largest it needs ${files.wanted}: agents beyond that wait outside. Start it again after \`ulimit -n ${files.wanted}\`, or lower \`max\` of the fleets.`,
  );
};

/** Says how many tasks of a run were sent to this machine, and why; and what was ignored of what they say. */
export const tellRedirected = (
  context: Pick<Context, "note">,
  { redirected = [], notices = [] }: SubmitAnswer,
): void => {
  for (const { cluster, tasks, cause } of redirected)
    context.note(
      `warning: ${plural(tasks, "task")} of cluster ${cluster} ${tasks === 1 ? "runs" : "run"} on this machine, because it cannot be used: ${cause} (\`slipway clusters check ${cluster}\` says what to fix; \`fallback: wait\` in clusters.yaml lets tasks wait)`,
    );
  for (const notice of notices) context.note(`warning: ${notice}`);
};
