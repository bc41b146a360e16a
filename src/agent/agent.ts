import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { Ending } from "../core/events.ts";
import { shapeKey } from "../core/resources.ts";
import { endpointPath } from "../protocol/endpoint.ts";
import { writeSpool } from "../protocol/spool.ts";
import { createAssignedTasks } from "./assigned-tasks.ts";
import { createAssignments } from "./assignments.ts";
import { createConnection } from "./connection.ts";
import { oomKillsFile } from "./cgroup.ts";
import { countMemory, delegatedCgroup } from "./delegated-cgroup.ts";
import { createDeparture, type Departure } from "./departure.ts";
import { detectResources } from "./detect.ts";
import { createDoubtfulEnds, isDoubtful } from "./doubtful-ends.ts";
import { createExecutor } from "./executor.ts";
import { removeLeftovers } from "./leftovers.ts";
import { createNodeClock } from "./node-clock.ts";
import { openOutputStream } from "./output/stream.ts";
import { keepOwners } from "./owners.ts";
import { createPilotEnd } from "./pilot-end.ts";
import { progressOf } from "./progress.ts";
import { createRankParts } from "./ranks/parts.ts";
import { createResultPace } from "./result-pace.ts";
import { createResultStore } from "./results.ts";
import { createSession } from "./session.ts";
import type { AgentSettings } from "../protocol/agent-settings.ts";
import { createSlotLine } from "./slot-line.ts";
import { SlotPool } from "./slots.ts";
import type { AgentTask } from "./task.ts";

/**
 * The process on a node: takes assignments, gives each task a slot, starts it, and keeps its result until the server
 * says that it is on disk. It outlives its server: tasks keep running, results wait, and the agent reports both to
 * the next server.
 *
 *     connection ─► session ─┬─► assignments ─┐                        ┌─► results ─► connection
 *                            └─► ranks/parts ─┴─► slot line ─► executor ─► owner of the task
 */

const PROGRESS_MS = 250;
/** Agents of one task each may be many and short: one that does not last leaves this to others. */
const LEFTOVERS_MS = 10_000;
/** How long to let the server hear of an orderly end. */
const BYE_MS = 2000;

/** A spawner stands still while a new process replaces itself (vfork), and tasks of one wait for each other: one a core. */
const MOST_SPAWNERS = 64;

export interface AgentOptions {
  readonly settings: AgentSettings;
  readonly version: string;
  readonly nativePath: string;
  readonly nodeEntry: readonly string[];
  readonly log: (text: string) => void;
}

export interface RunningAgent extends Pick<Departure, "drain" | "ended"> {
  /** Whether a server ever accepted it and, if it runs one task only, has its result. */
  readonly succeeded: () => boolean;
}

const cgroupFor = async (setting: string): Promise<string | null> => {
  const directory = setting === "auto" ? delegatedCgroup() : setting === "off" ? null : setting;
  if (directory !== null) await countMemory(directory);
  return directory;
};

/** The agent, ready to run tasks; no server knows of it yet. */
const createAgent = async ({ settings, version, nativePath, nodeEntry, log }: AgentOptions) => {
  const uuid = randomUUID();
  const clock = createNodeClock();
  const { scratch, declared, managerCpus, taskJob } = settings;
  const found = await detectResources({ declared, managerCpus, only: taskJob !== undefined });
  const outputDirectory = join(settings.home, "output");
  mkdirSync(outputDirectory, { recursive: true, mode: 0o700 });
  const output = await openOutputStream(join(outputDirectory, `${uuid}.out`));
  const pilotEnd = createPilotEnd(settings.lifetime, process.env["SLIPWAY_PILOT_START"]);
  const departure = createDeparture(log);
  const connection = createConnection({
    endpointFile: settings.endpointFile ?? endpointPath(settings.home),
    tokenFile: settings.tokenFile ?? join(settings.home, "keys", "agent.token"),
    log,
  });
  const results = createResultStore();
  const pace = createResultPace(() => {
    const messages = results.take();
    // before the welcome they would overtake those that the last connection lost; the welcome sends all of them
    if (connection.open) for (const message of messages) connection.send(message);
    departure.check();
  });

  const doubtful = createDoubtfulEnds<AgentTask>((task, result) => task.owner.ended(task, result));
  const owners = await keepOwners(settings.home, uuid, scratch, log);
  // before it moves to a group of its own
  const counted = oomKillsFile();
  const executor = await createExecutor({
    uuid,
    settings,
    oomKillsFile: counted,
    cgroup: await cgroupFor(settings.cgroup),
    gpus: found.gpus,
    environment: [`SLIPWAY_PILOT=${settings.pilot}`, ...pilotEnd.environment],
    output,
    clock,
    // one for one task, however large
    spawners: taskJob === undefined ? Math.min(found.cpus.length, MOST_SPAWNERS) : 1,
    nativePath,
    nodeEntry,
    onSpawner: ({ pid, pipes }) => owners.add(pid, pipes),
    onDropped: (task) => task.owner.dropped(task),
    onEnd: (task, result) => {
      if (isDoubtful(result)) doubtful.add(task, result);
      else task.owner.ended(task, result);
    },
    onBroken: (reason) => {
      if (!departure.draining) departure.drain(false, `a spawner ended: ${reason}`);
    },
  });

  const pool = new SlotPool({ capacity: found.resources, cpus: found.cpus, gpus: found.gpus.indices });
  const line = createSlotLine();
  const made = createAssignedTasks();
  const send = connection.send;
  const shared = { pool, line, executor, clock, send };
  const parts = createRankParts({
    ...shared,
    uuid,
    scratch,
    output,
    make: made.make,
    own: settings.ranks,
    result: (result) => {
      results.add(result);
      pace.due(true);
    },
    gone: departure.check,
  });
  const nullOnly = settings.executor === "null";
  const assignments = createAssignments({ ...shared, nullOnly, made, results, pace, departure });
  // tasks that need several agents come before those that need only this one
  line.join(parts);
  line.join(assignments);

  const identity = {
    slipway: version,
    uuid,
    pilot: settings.pilot,
    ...(settings.cluster === undefined ? {} : { cluster: settings.cluster }),
    ...(settings.queue === undefined ? {} : { queue: settings.queue }),
    ...(taskJob === undefined ? {} : { taskJob }),
    resources: found.resources,
    output: output.path,
  };
  const { endsInMs } = pilotEnd;
  const common = { connection, assignments, parts, executor, results, output, clock, departure };
  const session = createSession({ ...common, identity, endsInMs, ranks: settings.ranks, line, log });
  return { ...common, session, identity, pilotEnd, pace, doubtful, owners };
};

type Agent = Awaited<ReturnType<typeof createAgent>>;

/** Reports progress to the server, and gives up when there has been no server for too long. */
const report = (agent: Agent, { patienceMs, firstPatienceMs = patienceMs }: AgentSettings): void => {
  const { connection, assignments, parts, session } = agent;
  const tasks = [...progressOf(assignments.running, agent.output, agent.clock), ...parts.progress()];
  const others = parts.progressOfOthers();
  // the server learns first that what these lay behind has ended
  if (tasks.length > 0) agent.pace.flush();
  if ((tasks.length > 0 || others.length > 0) && connection.open)
    connection.send({ t: "progress", tasks, ...(others.length > 0 ? { parts: others } : {}) });
  const patience = session.epoch === 0 ? firstPatienceMs : patienceMs;
  if (assignments.size === 0 && parts.size === 0 && connection.lonelyMs() > patience)
    agent.departure.close("no server");
};

/** Gives back tasks that have not begun; `now` interrupts those that run. */
const drain = ({ connection, assignments, parts, departure, doubtful }: Agent, now: boolean, reason: string): void => {
  if (connection.open && departure.leaving !== undefined) connection.send(departure.leaving);
  assignments.giveBack();
  if (now) {
    doubtful.interrupted();
    assignments.endRunning(Ending.INTERRUPTED, reason);
  }
  parts.drain(now, reason);
};

/** Nothing runs, and every result has been sent. */
const isIdle = ({ assignments, parts, results }: Agent): boolean =>
  assignments.size === 0 && parts.size === 0 && results.gathered === 0;

const isDelivered = (agent: Agent): boolean => isIdle(agent) && agent.results.unacknowledged.length === 0;

/** All is delivered, or there is no server to take it. */
const isEmpty = (agent: Agent): boolean => isDelivered(agent) || (isIdle(agent) && !agent.connection.open);

const close = async (agent: Agent, reason: string, { settings, log }: AgentOptions): Promise<void> => {
  const { connection, results } = agent;
  agent.pace.stop();
  agent.pilotEnd.stop();
  const bye = (): Promise<void> => {
    connection.send({ t: "bye", reason });
    return connection.stop(BYE_MS);
  };
  // where nothing is left to report, the server hears of the end while the rest is put away
  const told = isDelivered(agent) && connection.open ? bye() : undefined;
  await agent.executor.close();
  await agent.owners.remove();
  await agent.output.close();
  if (told !== undefined) return told;
  const rest = [...results.unacknowledged, ...results.take()].filter((message, i, all) => all.indexOf(message) === i);
  if (rest.length > 0)
    log(`no server took the results; they are in ${await writeSpool(settings.home, agent.identity.uuid, rest)}`);
  const orderly = agent.assignments.size === 0 && rest.length === 0 && connection.open;
  await (orderly ? bye() : connection.stop());
};

export const startAgent = async (options: AgentOptions): Promise<RunningAgent> => {
  const { settings, log } = options;
  const agent = await createAgent(options);
  const { connection, session, departure, executor, assignments, parts } = agent;

  const ticker = setInterval(() => report(agent, settings), PROGRESS_MS);
  departure.arm({
    drain: (now, reason) => drain(agent, now, reason),
    isEmpty: () => isEmpty(agent),
    isDelivered: () => isDelivered(agent),
    close: (reason) => {
      clearInterval(ticker);
      return close(agent, reason, options);
    },
  });
  connection.connect(session);
  const endRunning = (ending: number, reason: string): void => {
    assignments.endRunning(ending, reason);
    parts.drain(true, reason, ending);
    departure.drain(true, reason);
  };
  agent.pilotEnd.arm(
    settings.taskJob === undefined
      ? {
          drain: (reason) => departure.drain(false, reason),
          signal: (name) => {
            if (!departure.draining) departure.drain(false, "its pilot is about to end");
            executor.warn(name);
          },
          end: (reason) => endRunning(Ending.CUT_OFF, reason),
        }
      : {
          // its task would have no more time in another job
          drain: () => undefined,
          signal: (name) => executor.warn(name, true),
          end: () => endRunning(Ending.TIME_LIMIT, "over the walltime of its job"),
        },
  );
  if (settings.taskJob === undefined) void removeLeftovers(settings.home, log);
  else setTimeout(() => void removeLeftovers(settings.home, log), LEFTOVERS_MS).unref();
  const { uuid, resources } = agent.identity;
  log(`agent ${uuid} on ${hostname()}: ${shapeKey(resources)}; ${executor.kind} spawner`);
  return {
    drain: departure.drain,
    ended: departure.ended,
    succeeded: () => session.epoch > 0 && (settings.taskJob === undefined || isDelivered(agent)),
  };
};
