import type { CheckView } from "../../api/schemas.ts";
import { parseDuration } from "../../core/quantities.ts";
import { effectiveCluster } from "../../config/effective.ts";
import { loadLayers } from "../../config/load-clusters.ts";
import { findProject } from "../../config/find-project.ts";
import { loadProject } from "../../config/load-project.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { probeQueue } from "../probe.ts";
import { checkScreen } from "../render/check.ts";
import { type EffectiveView, effectiveScreen } from "../render/effective.ts";
import { reloadScreen } from "../render/reload.ts";
import { clusterScreen, clustersTable } from "../render/status.ts";
import { currentDirectory, searcherOf } from "../submission.ts";
import { type Define, examples, subcommand, widthFor } from "../verb.ts";

/** The exit status of `check` when something is wrong: the cluster would refuse. */
const REFUSED = 4;

const secondsOf = (text: string): number => {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new SlipwayError("usage", { detail: `--timeout ${(error as Error).message}` }, error);
  }
};

/** What files say from the working directory, as a server started here would read them. */
const readEffective = async (
  context: Context,
  name: string,
  { stage, clusters }: { readonly stage?: string | undefined; readonly clusters?: string | undefined },
): Promise<EffectiveView> => {
  const { files, warnings } = findProject(currentDirectory(), searcherOf(process.env));
  for (const warning of warnings) context.note(`warning: ${warning}`);
  const project = loadProject({ files, stage });
  const loaded = await loadLayers({ home: context.home, explicitPath: clusters, project });
  return { ...effectiveCluster(loaded, project.levels, name), stage: stage ?? null };
};

export const define: Define = (command, { act }) => {
  command.addHelpText(
    "after",
    examples([
      "slipway clusters list",
      "slipway clusters show local",
      "slipway clusters show hpc --effective --stage train",
      "slipway clusters reload",
      "slipway clusters check hpc",
      "slipway clusters check hpc --probe --queue cpu",
    ]),
  );
  subcommand(command, "list", "the clusters that clusters.yaml declares, and `local`")
    .option("--wide", "all columns, also where the terminal is too narrow for them")
    .action(
      act(async (context, _args, given) => {
        const clusters = await context.client.clusters();
        context.answer(clusters, () => clustersTable(clusters, widthFor(context, given)));
      }),
    );
  subcommand(command, "show", "one cluster: queues and resources")
    .argument("<NAME>")
    .option("--effective", "each value that files give it from here, with file and line; asks no server")
    .option("--stage <name>", "with --effective: a stage of slipway.yaml")
    .option("--clusters <file>", "with --effective: as for `up`")
    .action(
      act(async (context, [name], given) => {
        const { effective, stage, clusters } = given.opts<{ effective?: boolean; stage?: string; clusters?: string }>();
        const { client, answer, style } = context;
        if (effective === true) {
          const shown = await readEffective(context, name!, { stage, clusters });
          return answer(shown, () => effectiveScreen(shown, style));
        }
        if (stage !== undefined || clusters !== undefined)
          throw new SlipwayError("usage", { detail: "--stage and --clusters go with --effective" });
        const cluster = await client.cluster(name!);
        return answer(cluster, () => clusterScreen(cluster, style));
      }),
    );
  subcommand(
    command,
    "reload",
    "read clusters.yaml and its layers again, and say what changed; the server also does so when a file changes",
  ).action(
    act(async ({ client, answer, style }) => {
      const reloaded = await client.reloadClusters();
      answer(reloaded, () => reloadScreen(reloaded, style));
    }),
  );
  subcommand(command, "check", "check a cluster's configuration as clusters.yaml has it now, without running work")
    .argument("<NAME>")
    .option("--probe", "also submit one pilot per queue, wait for its agents, and cancel it")
    .option("--queue <name>", "only this queue")
    .option("--timeout <duration>", "how long --probe waits for a pilot", "10m")
    .action(
      act(async ({ client, answer, style, unicode, note }, [name], given) => {
        const { probe, queue, timeout } = given.opts<{ probe?: boolean; queue?: string; timeout: string }>();
        const seconds = secondsOf(timeout);
        const found = await client.checkCluster(name!);
        const checks = found.checks.filter((check) => queue === undefined || (check.queue ?? queue) === queue);
        const queues = [...new Set(checks.map((check) => check.queue).filter((each) => each !== null))];
        if (queue !== undefined && found.checks.some((check) => check.queue !== null) && queues.length === 0)
          throw new SlipwayError("usage", { detail: `${name} has no queue '${queue}'` });
        if (probe === true)
          for (const each of queues) {
            const failed = checks.some((check) => !check.ok && (check.queue === null || check.queue === each));
            if (failed) note(`${each} was not probed: fix the problems above first`);
            else {
              note(`${each}: waiting for a pilot`);
              const last = checks.findLastIndex((check) => check.queue === each);
              checks.splice(last + 1, 0, await probeQueue(client, name!, each, seconds));
            }
          }
        const view: CheckView = { ...found, checks, ok: checks.every(({ ok }) => ok) };
        answer(view, () => checkScreen(view, style, unicode));
        return view.ok ? 0 : REFUSED;
      }),
    );
};
