import { clusterScreen, clustersTable } from "./render/status.ts";
import { type Define, examples, subcommand } from "./verb.ts";

export const define: Define = (command, { act }) => {
  command.addHelpText("after", examples(["slipway clusters list", "slipway clusters show local"]));
  subcommand(command, "list", "the clusters that clusters.yaml declares, and `local`").action(
    act(async ({ client, answer, out }) => {
      const clusters = await client.clusters();
      answer(clusters, () => clustersTable(clusters, out.columns()));
    }),
  );
  subcommand(command, "show", "one cluster: queues and resources")
    .argument("<NAME>")
    .action(
      act(async ({ client, answer, style }, [name]) => {
        const cluster = await client.cluster(name!);
        answer(cluster, () => clusterScreen(cluster, style));
      }),
    );
};
