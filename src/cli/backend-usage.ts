import path from "node:path";
import type { Command } from "commander";
import { SlipwayError } from "../errors.ts";
import type { Context } from "./context.ts";
import { currentDirectory } from "./submission.ts";

/** `-b -h`: what the manager of a cluster takes, without a server and without anything to run. */

const isAsked = (backend: unknown): boolean => typeof backend === "string" && /(^|\s)(-h|--help)(\s|$)/.test(backend);

/** Prints it; false if nobody asked. */
export const printBackendUsage = async (context: Context, command: Command): Promise<boolean> => {
  const {
    backend,
    cluster: name,
    local,
    clusters: file,
  } = command.opts<Record<string, string | boolean | undefined>>();
  if (!isAsked(backend)) return false;
  const { clusterNamed } = await import("../config/clusters-file.ts");
  const { loadClusters } = await import("../config/load-clusters.ts");
  const explicitPath = typeof file === "string" ? path.resolve(currentDirectory(), file) : undefined;
  const clusters = await loadClusters({ home: context.home, explicitPath });
  const cluster = clusterNamed(clusters, local === true ? "local" : (name as string | undefined));
  const usage = cluster.manager.batch?.task?.usage;
  if (usage === undefined)
    throw new SlipwayError("usage", {
      detail: `--backend: cluster '${cluster.name}' is of type ${cluster.type}, which takes no options of tasks`,
    });
  if (context.json) context.printJson({ cluster: cluster.name, type: cluster.type, usage });
  else context.out.line(usage.trimEnd());
  return true;
};
