import { combineClusters, readClustersFile } from "../../../../src/config/clusters-file.ts";
import type { LaunchManager } from "../../../../src/managers/managers.ts";
import type { ContainerFacts, LaunchPlan, PlanInput } from "../../../../src/launch/plan/plan.ts";
import { planLaunch } from "../../../../src/launch/plan/plan.ts";
import { buildLaunch, readLaunchBody } from "../../../../src/launch/plan/launch-spec.ts";
import { settingsOf } from "../../../../src/launch/plan/settings.ts";
import { SlipwayError } from "../../../../src/errors.ts";
import type { Partition } from "../../../../src/managers/provider.ts";

/** A partition of two nodes with four GPUs each, and one without. */
export const GPU: Partition = {
  name: "gpu",
  isDefault: true,
  isUp: true,
  nodes: 4,
  cpusPerNode: 16,
  memoryPerNode: 64 * 2 ** 30,
  gpusPerNode: 4,
  gpuTypes: ["a100"],
};
export const CPU: Partition = { ...GPU, name: "cpu", isDefault: false, gpusPerNode: 0, gpuTypes: [] };

export const ID = "f5388908-4a0b-4510-b19c-c33ba8a50203";
export const DIRECTORY = "/shared/jobs/7";

export interface SampleOptions {
  readonly manager?: LaunchManager;
  /** Lines of the cluster in clusters.yaml. */
  readonly cluster?: readonly string[];
  readonly partitions?: readonly Partition[];
  readonly container?: ContainerFacts;
  readonly directory?: string;
  readonly searchPath?: readonly string[];
  readonly streamer?: readonly string[];
  readonly streamerEnv?: Readonly<Record<string, string>>;
}

export const sampleInput = (launch: Record<string, unknown>, options: SampleOptions = {}): PlanInput => {
  const { manager = "slurm", cluster = [], partitions = [GPU, CPU], container } = options;
  const text = ["clusters:", "  hpc:", `    type: ${manager}`, ...cluster.map((line) => `    ${line}`)].join("\n");
  const config = combineClusters([readClustersFile(text, "clusters.yaml")]).clusters.get("hpc")!;
  return {
    spec: buildLaunch(readLaunchBody({ name: "job", command: ["true"], ...launch })),
    settings: settingsOf(config),
    queues: config.queues,
    facts: { manager, partitions, ...(container === undefined ? {} : { container }) },
    id: ID,
    directory: options.directory ?? DIRECTORY,
    ...(options.searchPath === undefined ? {} : { searchPath: options.searchPath }),
    ...(options.streamer === undefined ? {} : { streamer: options.streamer }),
    ...(options.streamerEnv === undefined ? {} : { streamerEnv: options.streamerEnv }),
  };
};

export const plan = (launch: Record<string, unknown>, options: SampleOptions = {}): LaunchPlan =>
  planLaunch(sampleInput(launch, options));

export const fileOf = ({ files }: LaunchPlan, path: string): string => {
  const file = files.find((candidate) => candidate.path === path);
  if (file === undefined) throw new Error(`the plan has no ${path}`);
  return file.content;
};

export const refused = (act: () => unknown): SlipwayError => {
  try {
    act();
  } catch (error) {
    if (error instanceof SlipwayError) return error;
    throw error;
  }
  throw new Error("was not refused");
};
