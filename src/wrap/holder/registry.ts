import { createHash } from "node:crypto";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "../../errors.ts";
import { identify, parseIdentity, type ProcessIdentity, whereabouts } from "../../process-identity.ts";
import { makeDirectories } from "../../protocol/make-directories.ts";
import { replaceFile } from "../../replace-file.ts";
import type { HeadAddress, HeadWorker } from "../head.ts";
import { realStatusFile } from "./status-file.ts";

/**
 * The wrappers of a home, one file each under `wraps/`: found without a server, also on another host that shares the home.
 * Requests to a wrapper are files beside, which it looks for each second.
 */
export interface WrapEntry {
  readonly id: string;
  /** MODULE::SYMBOL */
  readonly target: string;
  readonly statusFile: string;
  readonly holder: ProcessIdentity;
  /** ISO 8601. */
  readonly started: string;
  readonly state: "starting" | "running" | "closing";
  readonly head?: HeadAddress;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly work?: number;
  /** The work by state. */
  readonly tasks?: Readonly<Record<string, number>>;
  readonly clients?: number;
  /** Workers that it has asked for. */
  readonly wanted?: number;
  readonly workers?: readonly HeadWorker[];
  readonly jobs?: readonly WrapJob[];
  /** The last thing that went wrong with its jobs. */
  readonly problem?: string;
  /** Of a wrapper whose workers run in pilots: where they come from. */
  readonly cluster?: string;
  readonly queue?: string;
  /** Those that have not ended, by number. */
  readonly pilots?: readonly WrapPilot[];
}

/** A job that a cluster class has submitted. */
export interface WrapJob {
  readonly id: string;
  readonly connected: boolean;
  /** What its manager says while it waits. */
  readonly reason?: string;
}

/** A pilot of a wrapper's own server, as far as a list of pilots shows it. */
export interface WrapPilot {
  readonly id: string;
  /** The job in the workload manager; null while it is being submitted. */
  readonly job: string | null;
  /** As in `slipway pilots list`: PMGR_ACTIVE, PMGR_ACTIVE_PENDING… */
  readonly state: string;
  readonly agents: number;
  /** Workers of it that are connected to the scheduler. */
  readonly workers: number;
  /** What its manager says while it waits, else why it is in this state. */
  readonly reason: string | null;
}

/** `lost`: its process is gone without a word. */
export type WrapView = Omit<WrapEntry, "state"> & { readonly state: WrapEntry["state"] | "lost" };

export type WrapRequest =
  | { readonly op: "scale"; readonly minimum: number; readonly maximum: number }
  | { readonly op: "down" };

const directoryOf = (home: string): string => join(home, "wraps");
const entryPath = (home: string, id: string): string => join(directoryOf(home), `${id}.json`);
const requestPath = (home: string, id: string): string => join(directoryOf(home), `${id}.request`);
/** What a detached wrapper prints. */
export const logPath = (home: string, id: string): string => join(directoryOf(home), `${id}.log`);

/** The same for a status file at each start, so that the jobs of an earlier wrapper are known by their name. */
export const wrapId = async (statusFile: string): Promise<string> =>
  createHash("sha256")
    .update(await realStatusFile(statusFile))
    .digest("hex")
    .slice(0, 8);

/** The name of a wrapper's jobs; managers allow 15 characters. */
export const jobNameOf = (id: string): string => `dask-${id}`;

export const prepareRegistry = (home: string): void => {
  try {
    makeDirectories(directoryOf(home), 0o700);
  } catch (error) {
    throw new SlipwayError("home-unusable", { home, detail: (error as Error).message }, error);
  }
};

export const writeEntry = (home: string, entry: WrapEntry): Promise<void> =>
  replaceFile(entryPath(home, entry.id), `${JSON.stringify(entry)}\n`, { sync: false });

export const removeEntry = async (home: string, id: string): Promise<void> => {
  await rm(requestPath(home, id), { force: true });
  await rm(entryPath(home, id), { force: true });
};

const readEntry = async (path: string): Promise<WrapEntry | undefined> => {
  try {
    const body = JSON.parse(await readFile(path, "utf8")) as WrapEntry;
    const holder = parseIdentity(body.holder as unknown as Readonly<Record<string, unknown>>);
    return holder === undefined ? undefined : { ...body, holder };
  } catch {
    // gone meanwhile, or not one of ours
    return undefined;
  }
};

const viewOf = async (entry: WrapEntry, self: ProcessIdentity): Promise<WrapView> => ({
  ...entry,
  state: (await whereabouts(entry.holder, self)) === "dead" ? "lost" : entry.state,
});

export const listWraps = async (home: string): Promise<WrapView[]> => {
  const names = await readdir(directoryOf(home)).catch(() => []);
  const self = identify();
  const views: WrapView[] = [];
  for (const name of names.toSorted()) {
    if (!/^[0-9a-f]{8}\.json$/.test(name)) continue;
    const entry = await readEntry(join(directoryOf(home), name));
    if (entry !== undefined) views.push(await viewOf(entry, self));
  }
  return views.toSorted((a, b) => a.started.localeCompare(b.started));
};

/** By id, the beginning of one, or the path of its status file. */
export const findWrap = async (home: string, name: string): Promise<WrapView> => {
  const all = await listWraps(home);
  const ofFile = await wrapId(name);
  const found = all.filter(({ id }) => id === ofFile || (name.length >= 2 && id.startsWith(name)));
  const [one] = found;
  if (one === undefined || found.length > 1) throw new SlipwayError("no-such-wrap", { name });
  return one;
};

export const request = (home: string, id: string, what: WrapRequest): Promise<void> =>
  replaceFile(requestPath(home, id), JSON.stringify(what), { sync: false });

/** What somebody asked for since the last time. */
export const takeRequest = async (home: string, id: string): Promise<WrapRequest | undefined> => {
  try {
    const text = await readFile(requestPath(home, id), "utf8");
    await rm(requestPath(home, id), { force: true });
    const body = JSON.parse(text) as WrapRequest;
    if (body.op === "down") return body;
    return body.op === "scale" && Number.isInteger(body.minimum) && Number.isInteger(body.maximum) ? body : undefined;
  } catch {
    return undefined;
  }
};
