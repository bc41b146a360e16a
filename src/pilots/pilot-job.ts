import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClusterConfig, QueueConfig } from "../config/clusters-file.ts";
import type { StarterConfig } from "../config/starter-keys.ts";
import { toUnits, type Resources } from "../core/resources.ts";
import { defaultStarter } from "../starters/starters.ts";
import { AGENT_SCRIPT, BEFORE_FILE, pilotScripts } from "../managers/pilot-script.ts";
import type { JobRequest } from "../managers/provider.ts";
import type { Batch } from "../managers/manager.ts";
import { agentSettings } from "../protocol/agent-settings.ts";
import { BUNDLE_MARK } from "./bundle.ts";
import type { PilotStart } from "./fleet.ts";

/**
 * Makes the job of a pilot for a workload manager: its script, what its starter runs on each node, and the agents'
 * settings, all in the pilot's own directory. Settings are in a file that only this user can read, not in a command
 * line that everybody sees.
 */

export const STDOUT = "stdout";
export const STDERR = "stderr";
const SCRIPT = "pilot.sh";
const SETTINGS = "settings.json";

/**
 * How long an idle agent on a cluster waits for a server that is gone: long enough for a new one, without wasting a
 * night.
 */
const PATIENCE_MS = 600_000;
/** An agent that cannot reach the server at all would hold its nodes for nothing. */
const FIRST_PATIENCE_MS = 180_000;

export interface PilotJobOptions {
  readonly home: string;
  readonly cluster: ClusterConfig;
  readonly queue: QueueConfig;
  readonly batch: Batch;
  /** The name of the bundle, placed when first asked for. */
  readonly bundle: () => Promise<string>;
}

/** What the queue says a node gives to tasks, in units; the agent finds out the rest. */
export const declaredBy = (queue: QueueConfig): Resources => ({
  ...queue.resources,
  ...(queue.cores === undefined ? {} : { cpus: toUnits("cpus", queue.cores) }),
  ...(queue.memory === undefined ? {} : { mem: queue.memory }),
  ...(queue.gpus === undefined ? {} : { gpus: toUnits("gpus", queue.gpus) }),
  ...(queue.tmp === undefined ? {} : { tmp: queue.tmp }),
});

/** A manager's own starters are beside its other commands. */
const inBin = (starter: StarterConfig, { ownStarters }: Batch, bin: string | undefined): StarterConfig => {
  const program = ownStarters?.[starter.name];
  return bin === undefined || program === undefined ? starter : { program: join(bin, program), ...starter };
};

export const preparePilot = async (options: PilotJobOptions, pilot: PilotStart): Promise<JobRequest> => {
  const { home, cluster, queue, batch } = options;
  const { directory, jobName } = pilot;
  const bundle = await options.bundle();
  const settings = agentSettings({
    home,
    pilot: pilot.id,
    scratch: queue.scratch ?? "$TMPDIR",
    declared: { ...declaredBy(queue), ...cluster.licences },
    graceMs: cluster.grace * 1000,
    pin: cluster.pin,
    patienceMs: PATIENCE_MS,
    firstPatienceMs: FIRST_PATIENCE_MS,
    executor: cluster.executor,
    environmentFile: join(directory, BEFORE_FILE),
    lifetime: pilot.lifetime,
  });
  const parts = cluster.manager.parts?.(queue.own) ?? 1;
  const ask = { ...queue, name: jobName, stdout: join(directory, STDOUT), stderr: join(directory, STDERR) };
  const directives = batch.directives(ask);
  const starter = inBin(
    queue.launcher ?? defaultStarter(batch.starter, queue.nodes, parts, batch.start),
    batch,
    cluster.bin,
  );
  const { script, agentScript } = pilotScripts({
    title: `pilot ${pilot.id} of ${cluster.name}/${queue.name}, made by Slipway from clusters.yaml`,
    shebang: queue.shebang ?? "#!/bin/bash",
    directives,
    environment: queue.environment,
    prologue: queue.prologue,
    epilogue: queue.epilogue,
    starter,
    bin: cluster.bin,
    job: batch.job,
    nodes: queue.nodes,
    parts,
    directory,
    node: queue.node ?? process.execPath,
    agent: [join(home, "bundles", bundle, "agent-quick.cjs"), "--settings-file", join(directory, SETTINGS)],
    hostCpus: batch.hostCpus(ask, directives, starter.name),
  });
  await writeFile(join(directory, SETTINGS), `${JSON.stringify(settings)}\n`, { mode: 0o600 });
  await writeFile(join(directory, BUNDLE_MARK), `${bundle}\n`, { mode: 0o600 });
  await writeFile(join(directory, AGENT_SCRIPT), agentScript, { mode: 0o700 });
  // OAR starts the script itself: it must be executable
  await writeFile(join(directory, SCRIPT), script, { mode: 0o700 });
  return {
    name: jobName,
    directory,
    command: ["/bin/sh", join(directory, AGENT_SCRIPT)],
    script: join(directory, SCRIPT),
  };
};
