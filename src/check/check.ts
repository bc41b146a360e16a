import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CheckView } from "../api/schemas.ts";
import type { ClusterConfig, QueueConfig } from "../config/clusters-file.ts";
import type { RunCommand } from "../managers/commands.ts";
import type { Batch } from "../managers/manager.ts";
import type { ClusterDescription, Provider } from "../managers/provider.ts";
import { createProvider } from "../managers/registry.ts";
import { simulatedOptions } from "../managers/simulated/options.ts";
import { placeBundle } from "../pilots/bundle.ts";
import { preparePilot } from "../pilots/pilot-job.ts";
import { findProgram } from "../find-program.ts";
import { limitChecks } from "./limits.ts";
import { nodeCheck } from "./node-version.ts";

/**
 * Checks a cluster's configuration without running work: programs, the manager's description of itself, what its
 * partitions allow, Node.js, directories, and for each queue a test job that the manager itself judges. Each problem
 * comes with what to do. Nothing stays behind.
 */

/** Someone is waiting for the answer: a manager that does not respond is reported soon. */
const PROMPT = { timeoutMs: 20_000, pausesMs: [500] };

type Check = CheckView["checks"][number];

export interface CheckOptions {
  readonly home: string;
  readonly bundles: string;
  readonly cluster: ClusterConfig;
  /** What is probably not meant as it is written. */
  readonly warnings: readonly string[];
  /** Whether agents on other machines could reach the server as it listens now. */
  readonly reachable: boolean;
  readonly addresses: readonly string[];
  readonly run: RunCommand;
}

export const good = (what: string, detail: string, queue: string | null = null): Check => ({
  what,
  queue,
  ok: true,
  detail,
  remedy: null,
});

export const bad = (what: string, detail: string, remedy: string, queue: string | null = null): Check => ({
  what,
  queue,
  ok: false,
  detail,
  remedy,
});

const programChecks = async (batch: Batch, cluster: ClusterConfig): Promise<Check[]> => {
  const found = await Promise.all(
    batch.programs.map(async (program) => [program, await findProgram(program, cluster.bin)] as const),
  );
  const missing = found.filter(([, path]) => path === undefined).map(([program]) => program);
  if (missing.length === 0) return [good("programs", found.map(([, path]) => path).join(", "))];
  const where = cluster.bin === undefined ? "on the server's PATH" : `in ${cluster.bin}`;
  return [
    bad(
      "programs",
      `${missing.join(", ")}: not found ${where}`,
      `Set \`bin\` of this cluster to the directory of ${cluster.manager.title}'s programs, or start the server with that directory on its PATH.`,
    ),
  ];
};

const describe = async (
  provider: Provider,
  batch: Batch,
  title: string,
): Promise<{ readonly check: Check; readonly description?: ClusterDescription }> => {
  try {
    const description = await provider.describe();
    const names = description.partitions?.map(({ name, isUp }) => (isUp ? name : `${name} (down)`));
    const detail = [description.version, ...(names === undefined ? [] : [names.join(", ")])].join("; ");
    return { check: good("manager", detail), description };
  } catch (error) {
    const remedy = `Try ${batch.programs[1]} on the server's machine; ${title} must answer there.`;
    return { check: bad("manager", (error as Error).message, remedy) };
  }
};

/** A job like a pilot's, judged by the manager and discarded. */
const tryQueue = async (
  options: CheckOptions,
  batch: Batch,
  provider: Provider,
  queue: QueueConfig,
): Promise<Check[]> => {
  const { home, cluster } = options;
  const parent = queue.logDirectory ?? join(home, "jobs");
  let directory: string;
  try {
    await mkdir(parent, { recursive: true, mode: 0o700 });
    directory = await mkdtemp(join(parent, "check-"));
  } catch (error) {
    const remedy = "Set `log-directory` to a directory that you can write to and that the nodes see too.";
    return [bad("directory", (error as Error).message, remedy, queue.name)];
  }
  try {
    const bundle = (): Promise<string> => placeBundle(home, options.bundles);
    const name = `${queue.jobNamePrefix ?? "slipway"}-check`;
    const job = await preparePilot(
      { home, cluster, queue, batch, bundle },
      { id: 0, jobName: name, directory, lifetime: undefined },
    );
    if (provider.tryOut === undefined) return [];
    const said = await provider.tryOut(job);
    return [good("submission", said === "" ? "the manager would accept it" : said, queue.name)];
  } catch (error) {
    const { hint } = error as { hint?: string };
    const remedy = hint ?? "Correct this queue in clusters.yaml.";
    return [bad("submission", (error as Error).message, remedy, queue.name)];
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

/** The simulation judges a pilot's job of each queue, as a manager would. */
const simulatedChecks = async ({ cluster }: CheckOptions, provider: Provider): Promise<Check[]> => {
  const checks = [good("manager", `${(await provider.describe()).version}: agents run on this machine`)];
  for (const queue of cluster.queues.values()) {
    const job = { name: "", directory: "", command: [], options: simulatedOptions(queue) };
    try {
      checks.push(good("submission", await provider.tryOut!(job), queue.name));
    } catch (error) {
      const remedy = "Correct this queue, or `simulation`, in clusters.yaml.";
      checks.push(bad("submission", (error as Error).message, remedy, queue.name));
    }
  }
  return checks;
};

const reachCheck = ({ reachable, addresses }: CheckOptions): Check =>
  reachable
    ? good("server", `agents connect to ${addresses.join(", ")}`)
    : bad(
        "server",
        `it listens on ${addresses.join(", ")} only, which no other machine can reach`,
        "Stop it, and start it with `slipway up` without --host, or with an address of the cluster's network.",
      );

export const checkCluster = async (options: CheckOptions): Promise<CheckView> => {
  const { cluster, home } = options;
  const { batch, title } = cluster.manager;
  const provider = createProvider(cluster, { ...PROMPT, here: { home, machine: cluster.resources } });
  const finish = (checks: Check[]): CheckView => ({
    cluster: cluster.name,
    type: cluster.type,
    ok: checks.every(({ ok }) => ok),
    checks,
  });
  if (cluster.type === "simulated") return finish(await simulatedChecks(options, provider));
  if (batch === undefined) return finish([good("manager", `${cluster.type}: agents run on this machine`)]);
  const programs = await programChecks(batch, cluster);
  if (programs.some(({ ok }) => !ok)) return finish(programs);
  const { check, description } = await describe(provider, batch, title);
  const notices = [...options.warnings, ...(cluster.manager.notices?.(cluster.own) ?? [])];
  const checks = [...notices.map((text) => good("notice", text)), ...programs, check, reachCheck(options)];
  if (description === undefined) return finish(checks);
  for (const queue of cluster.queues.values()) {
    checks.push(...limitChecks(batch, title, queue, description.partitions));
    checks.push(await nodeCheck(queue, options.run));
    checks.push(...(await tryQueue(options, batch, provider, queue)));
  }
  return finish(checks);
};
