import { copyFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { captureEnvironment } from "../../config/environment.ts";
import type { OneQueue } from "../../config/one-queue.ts";
import { SlipwayError } from "../../errors.ts";
import { lifetimeOf } from "../../fleet/lifetimes.ts";
import { identify } from "../../process-identity.ts";
import type { Framework, HeadAddress, HeadEvent, PoolHead } from "../head.ts";
import { daskFramework } from "../heads/dask-pool.ts";
import { findPython } from "../holder/find-python.ts";
import { pickPorts } from "../holder/free-ports.ts";
import { type HoldClaimed, holdAs, type HoldOptions, OPEN_TO_ALL, tlsNames } from "../holder/hold.ts";
import type { Ledger } from "../holder/ledger.ts";
import { jobNameOf, prepareRegistry, type WrapEntry, writeEntry } from "../holder/registry.ts";
import { failure, firstWord, PORT_TRIES, Stopped } from "../holder/start-head.ts";
import { hasResults, NO_RESULTS, type StatusBody, updateStatus } from "../holder/status-file.ts";
import { makeTlsFiles } from "../holder/tls-files.ts";
import { type OwnPlan, ownPlanOf } from "../plan/own-plan.ts";
import { writeClusterFile } from "./cluster-file.ts";
import { endLeftServer, poolHome, type PoolServer, startPoolServer, type StartServer } from "./server.ts";
import { supervisePool } from "./supervise-pool.ts";
import { taskDocument } from "./task-document.ts";
import { lastLines } from "./worker-tasks.ts";

export interface HoldPoolOptions extends HoldOptions {
  /** The queue that workers come from. */
  readonly chosen: OneQueue;
  /** Where the scheduler runs: in this process's Python, or in the first pilot. */
  readonly scheduler: "here" | "pilot";
  readonly interface?: string | undefined;
  readonly startServer: StartServer;
}

interface Made {
  readonly plan: OwnPlan;
  readonly warnings: readonly string[];
  readonly framework: Framework;
}

const isSecure = (body: StatusBody): boolean =>
  (body["parameters"] as { security?: unknown } | null | undefined)?.security !== false;

/** Plan and framework, with ports that are free now. */
const make = async (options: HoldPoolOptions, body: StatusBody, shim: string, own: string): Promise<Made> => {
  const python = await findPython(options.python);
  const { walltime, cores, memory, nodes, fleet } = options.chosen.queue;
  const { plan, warnings } = ownPlanOf(body["parameters"], {
    queue: { walltime, cores, memory, nodes, max: fleet.max },
    ports: await pickPorts(options.portRange),
    host: options.host,
    portRange: options.portRange,
    interface: options.interface,
    isHeadInPilot: options.scheduler === "pilot",
    tls: isSecure(body) ? await makeTlsFiles(options.statusFile) : undefined,
  });
  const launcher = join(own, LAUNCHER);
  const framework = daskFramework({ python: python.path, shim, launcher, plan, note: options.note });
  return { plan, warnings, framework };
};

interface Standing {
  readonly head: PoolHead;
  readonly events: AsyncIterator<HeadEvent>;
  readonly address: HeadAddress;
  readonly made: Made;
  readonly headRun?: number;
}

/** The head's first word; undefined where another pair of ports may do. */
const standing = async (
  options: HoldPoolOptions,
  ledger: Ledger,
  made: Made,
  head: PoolHead,
  isLast: boolean,
): Promise<Standing | undefined> => {
  options.kill.addEventListener("abort", () => head.kill(), { once: true });
  const events = head.events[Symbol.asyncIterator]();
  if (options.stop.aborted) head.close();
  const word = await firstWord({ head, events, early: [] }, options, ledger);
  if (word !== "late" && word?.event === "ready") return { head, events, address: word, made };
  head.close();
  while ((await events.next()).done !== true);
  if (options.stop.aborted) throw new Stopped();
  if (word === "late" || word?.event !== "failed" || word.step !== "port" || isLast) throw failure(word, options);
  return undefined;
};

const startHere = async (
  options: HoldPoolOptions,
  body: StatusBody,
  ledger: Ledger,
  first: Made,
  directory: string,
): Promise<Standing> => {
  for (let tried = 1, made = first; ; tried++, made = await make(options, body, shimOf(options), directory)) {
    const head = await made.framework.start({ in: "here", directory });
    const found = await standing(options, ledger, made, head, tried === PORT_TRIES);
    if (found !== undefined) return found;
  }
};

/** Lies in the server's home, which nodes see. */
const LAUNCHER = "slipway_dask_worker.py";

const shimOf = ({ shim }: HoldPoolOptions): string => join(dirname(shim), "slipway_scheduler.py");

/** Rejects when a task has failed, with what it said; a head that cannot start even once will not start later. */
const failedAttempt = async ({ client }: PoolServer, run: number, signal: AbortSignal): Promise<never> => {
  for await (const { event, task = "" } of client.events({ follow: true, run, signal, since: 0 })) {
    if (event !== "attempt.failed" && event !== "task.ended") continue;
    const { lastStderr, reason } = await client.task(run, Number(task.split(".")[1]));
    throw new SlipwayError("wrap-failed", {
      detail: `the scheduler did not start in its pilot: ${lastLines(lastStderr) || reason || "it ended without a word"}`,
      remedy: "Its Python and the home must be on the nodes, under the same paths.",
    });
  }
  return new Promise<never>(() => undefined);
};

/** The scheduler as a task in the first pilot; nodes find it, and its settings, in the server's home. */
const startInPilot = async (
  options: HoldPoolOptions,
  ledger: Ledger,
  made: Made,
  home: string,
  server: PoolServer,
): Promise<Standing> => {
  const file = join(home, "scheduler.json");
  const task = made.framework.headTask!(file);
  await writeFile(`${file}.settings`, JSON.stringify(task.settings), { mode: 0o600 });
  const { environment } = captureEnvironment(process.env);
  const document = taskDocument("scheduler", task, { cpus: 0, environment }, 1000);
  const { run } = await server.client.submit(document);
  const head = await made.framework.start({ in: "pilot", file });
  const done = new AbortController();
  try {
    const first = standing(options, ledger, made, head, true);
    const stood = await Promise.race([first, failedAttempt(server, run, done.signal)]);
    return { ...stood!, headRun: run };
  } catch (error) {
    head.kill();
    throw error;
  } finally {
    done.abort();
  }
};

const copyShim = async (options: HoldPoolOptions, home: string): Promise<string> => {
  for (const from of [options.shim, shimOf(options)]) await copyFile(from, join(home, basename(from)));
  return join(home, basename(shimOf(options)));
};

const holdPool: HoldClaimed<HoldPoolOptions> = async (options, body, ledger, id) => {
  const { home, statusFile, note, chosen } = options;
  const entry: WrapEntry = {
    id,
    target: options.target,
    statusFile,
    holder: identify(),
    started: new Date().toISOString(),
    state: "starting",
    cluster: chosen.cluster.name,
    queue: chosen.queue.name,
  };
  prepareRegistry(home);
  await writeEntry(home, entry);
  if (hasResults(body)) await updateStatus(statusFile, NO_RESULTS);
  const own = poolHome(home, id);
  await endLeftServer(own, options.startServer, note);
  const made = await make(options, body, shimOf(options), own);
  const { queue } = await writeClusterFile(own, chosen, made.plan, jobNameOf(id));
  await copyFile(join(dirname(options.shim), LAUNCHER), join(own, LAUNCHER));
  const isHere = options.scheduler === "here";
  let server: PoolServer | undefined;
  try {
    const starting = startPoolServer(own, options.startServer, note).then((started) => (server = started));
    // they start side by side: both take their time
    const [stands] = await Promise.all([
      isHere ? startHere(options, body, ledger, made, own) : undefined,
      starting,
    ]).catch(async (error: unknown) => {
      await starting.catch(() => undefined);
      throw error;
    });
    const shim = isHere ? shimOf(options) : await copyShim(options, own);
    const { made: stood, ...stand } =
      stands ?? (await startInPilot(options, ledger, await make(options, body, shim, own), own, server!));
    for (const warning of stood.warnings) note(warning);
    if (!isSecure(body)) note(OPEN_TO_ALL);
    const { address } = stand;
    const tls = isSecure(body) ? tlsNames(stood.plan.dask) : undefined;
    await tellRunning(statusFile, address, tls);
    note(`${address.kind} at ${address.address}, dashboard at port ${address.dashboard_port ?? "none"}`);
    await supervisePool({
      ...options,
      id,
      entry,
      ...stand,
      headRun: stand.headRun,
      server: server!,
      plan: stood.plan,
      framework: stood.framework,
      tellRunning: (moved) => tellRunning(statusFile, moved, tls),
      environment: captureEnvironment(process.env).environment,
      drainMs: (pilot) =>
        lifetimeOf(pilot, {
          walltime: queue.walltime,
          lifetime: queue.fleet.lifetime,
          stagger: queue.fleet.stagger,
          signal: queue.signal,
          signalBefore: queue.signalBefore,
        })?.drainMs,
    });
  } finally {
    await server?.stop();
    await rm(own, { recursive: true, force: true });
  }
};

const tellRunning = (statusFile: string, head: HeadAddress, tls: StatusBody | undefined): Promise<void> =>
  updateStatus(statusFile, {
    status: "running",
    reason: undefined,
    problem: undefined,
    address: head.address,
    host: head.host,
    port: head.port,
    dashboard_port: head.dashboard_port,
    pid: process.pid,
    tls,
  });

/** Holds a cluster whose workers run in pilots, until nobody needs it. */
export const holdPoolFor = (options: HoldPoolOptions): Promise<void> => holdAs(options, holdPool);
