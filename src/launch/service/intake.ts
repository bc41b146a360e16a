import type { Caller } from "../../api/caller.ts";
import type { LaunchRequested } from "../../core/events.ts";
import type { Launch } from "../../core/launch.ts";
import type { Engine } from "../../server/engine.ts";
import { type Prepare, type Prepared, STREAM_FILE } from "./preparation.ts";
import { endpointFileOf } from "./publish.ts";
import type { Storage } from "./storage.ts";
import { hashOf } from "./tokens.ts";

/**
 * Takes a launch in: makes its directory, writes its intent to disk, and only then submits it to its manager (rule 3).
 * A repeated request is the same launch, even while the first one is still being answered (rule 7).
 */
export interface Intake {
  /** The launch that a request with this uuid made, or is making. */
  find(uuid: string): Promise<Launch> | Launch | undefined;
  /** Answers when the manager has accepted or refused it. */
  take(caller: Caller, document: unknown, uuid: string | undefined): Promise<Launch>;
  /** How many are being taken in now. */
  readonly size: number;
}

export interface IntakeOptions {
  readonly engine: Engine;
  readonly storage: Storage;
  readonly homeHash: string;
  /** The server's own user. */
  readonly own: string;
  readonly prepare: Prepare;
  /** Submits a launch, whose intent is on disk, to its manager. */
  readonly submit: (launch: Launch) => Promise<void>;
}

/** How much of a long command its record keeps. */
const MOST_WORDS = 100;
const LONGEST_WORD = 1000;

const aboutOf = ({ spec, plan }: Prepared): LaunchRequested["about"] => ({
  name: spec.name,
  type: spec.type,
  pool: plan.pool.name,
  slots: plan.sizing.slots,
  nodes: plan.sizing.nodes.max,
  image: plan.image ?? "",
  command: spec.command.slice(0, MOST_WORDS).map((word) => word.slice(0, LONGEST_WORD)),
  notes: plan.notes,
});

export const createIntake = (options: IntakeOptions): Intake => {
  const { engine, storage, homeHash, own, prepare, submit } = options;
  const { state } = engine;
  const inFlight = new Map<string | symbol, Promise<Launch>>();
  /** The last number handed out: launches that are being staged are not in the state yet. */
  let reserved = 0;

  const reserve = (): number => {
    reserved = Math.max(reserved + 1, state.nextLaunch);
    return reserved;
  };

  const begin = async (prepared: Prepared): Promise<Launch> => {
    const { cluster, plan, user, uuid, token } = prepared;
    const id = reserve();
    const isOthers = user.name !== own;
    const { directory, ...files } = plan.paths;
    const stream = { launch: id, endpointFile: endpointFileOf(cluster.root, homeHash), token };
    await storage.make({
      directory,
      directories: plan.directories,
      files: [
        ...plan.files,
        { path: STREAM_FILE, content: `${JSON.stringify(stream)}\n`, encoding: "utf8", mode: 0o600 },
      ],
      ...(isOthers ? { owner: user } : {}),
    });
    const lsn = engine.commit({
      type: "launch.requested",
      at: engine.clock(),
      launch: id,
      uuid,
      cluster: cluster.config.name,
      user: isOthers ? user.name : "",
      jobName: plan.jobName,
      directory,
      files: { ...files, options: plan.submitOptions },
      tokenHash: hashOf(token),
      about: aboutOf(prepared),
    });
    await engine.whenDurable(lsn);
    const launch = state.launches.get(id)!;
    await submit(launch);
    await engine.whenDurable();
    return launch;
  };

  return {
    find: (uuid) => inFlight.get(uuid) ?? state.launches.get(state.launchByUuid.get(uuid) ?? 0),
    take: async (caller, document, uuid) => {
      const work = prepare(caller, document).then(begin);
      const key = uuid ?? Symbol("launch");
      inFlight.set(key, work);
      try {
        return await work;
      } finally {
        inFlight.delete(key);
      }
    },
    get size() {
      return inFlight.size;
    },
  };
};
