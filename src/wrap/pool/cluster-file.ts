import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterConfig, clusterNamed, type QueueConfig } from "../../config/clusters-file.ts";
import { loadClusters } from "../../config/load-clusters.ts";
import type { OneQueue } from "../../config/one-queue.ts";
import { SlipwayError } from "../../errors.ts";
import type { OwnPlan } from "../plan/own-plan.ts";
import { badParameter } from "../plan/read-parameters.ts";

/** Which parameter a key of a queue comes from, where the names differ. */
const PARAMETER_OF: Readonly<Record<string, string>> = {
  scratch: "tmpdir",
  account: "project",
  options: "job_extra_directives",
  prologue: "job_script_prologue",
  "memory-per-core-property-name": "memory_per_core_property_name",
};

/** The pool bounds itself, and may be told other bounds later. */
const ANY_NUMBER = 100_000;

/** The chosen queue alone, with the parameters over its own keys. JSON is YAML. */
export const clusterFile = (
  { cluster, queue, modules, own, job }: OneQueue,
  plan: OwnPlan,
  jobName: string,
): string => {
  const { fleet, resources, ...keys } = job as { fleet?: Record<string, unknown>; resources?: unknown };
  const period = fleet?.["period"];
  return JSON.stringify(
    {
      default: cluster.name,
      ...(modules.length === 0 ? {} : { modules }),
      clusters: {
        [cluster.name]: {
          ...own,
          // of this machine they are the cluster's, not the queue's
          ...(resources === undefined ? {} : { resources }),
          queues: {
            [queue.name]: {
              "job-name-prefix": jobName,
              ...keys,
              ...plan.queue,
              fleet: {
                ...pick(fleet, ["lifetime", "stagger"]),
                ...(period === undefined ? {} : { period }),
                ...plan.fleet,
                max: ANY_NUMBER,
              },
            },
          },
        },
      },
    },
    null,
    1,
  );
};

const pick = (from: Readonly<Record<string, unknown>> | undefined, keys: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(keys.flatMap((key) => (from?.[key] === undefined ? [] : [[key, from[key]]])));

/** Makes the home of a wrapper's server; what the cluster does not understand is told by the parameter's name. */
export const writeClusterFile = async (
  home: string,
  chosen: OneQueue,
  plan: OwnPlan,
  jobName: string,
): Promise<{ readonly cluster: ClusterConfig; readonly queue: QueueConfig }> => {
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "clusters.yaml"), clusterFile(chosen, plan, jobName), { mode: 0o600 });
  try {
    const cluster = clusterNamed(await loadClusters({ home }), chosen.cluster.name);
    return { cluster, queue: cluster.queues.get(chosen.queue.name)! };
  } catch (error) {
    await rm(home, { recursive: true, force: true });
    const key =
      error instanceof SlipwayError
        ? String(error.facts["key"] ?? "")
            .split(".")
            .at(-1)!
        : "";
    if (!Object.hasOwn(plan.queue, key)) throw error;
    const { detail, remedy } = (error as SlipwayError).facts;
    throw badParameter(PARAMETER_OF[key] ?? key, String(detail), String(remedy ?? "Leave it out."));
  }
};
