import { mkdir, readFile, unlink } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type ProcessIdentity, identify, parseIdentity, whereabouts } from "../process-identity.ts";
import { replaceFile } from "../replace-file.ts";

/**
 * Who removes what an agent's tasks leave on this node: the agent and its spawners, named in a file of the home for as
 * long as the agent lives. If all of them are killed, the next agent on the node reads the file and removes what is
 * left.
 */
export interface Owners {
  readonly uuid: string;
  /** Where the TMPDIRs are. */
  readonly scratch: string;
  /** Identifies this installation of a system: tells a rebooted host from another one of the same name. */
  readonly machine: string;
  readonly processes: readonly ProcessIdentity[];
  /** Names of directories of pipes. */
  readonly pipes: readonly string[];
}

export interface OwnersFile {
  /** Settles when it is written; only then may the process get tasks. */
  add(pid: number, pipes: string): Promise<void>;
  remove(): Promise<void>;
}

export const ownersDirectory = (home: string): string => join(home, "agents");

/** Files of this host start like this. */
export const ownersPrefix = (host: string = hostname()): string => `${encodeURIComponent(host)}.`;

export const machineId = async (): Promise<string> =>
  (await readFile("/etc/machine-id", "latin1").catch(() => "")).trim();

/** Beyond this, processes that are gone are forgotten. */
const MOST_NAMED = 128;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const texts = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((each) => typeof each === "string" && UUID.test(each)) ? value : undefined;

/** Undefined for a file that is not complete: nothing follows from it. */
export const parseOwners = (text: string): Owners | undefined => {
  let body: Readonly<Record<string, unknown>>;
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    return undefined;
  }
  const { uuid, scratch, machine, processes, pipes } = body ?? {};
  if (typeof uuid !== "string" || !UUID.test(uuid) || typeof scratch !== "string" || typeof machine !== "string")
    return undefined;
  const names = texts(pipes);
  if (!Array.isArray(processes) || processes.length === 0 || names === undefined) return undefined;
  const parsed = processes.map((each: unknown) => parseIdentity((each ?? {}) as Readonly<Record<string, unknown>>));
  if (parsed.some((each) => each === undefined || each.pidStart === "")) return undefined;
  return { uuid, scratch, machine, processes: parsed as ProcessIdentity[], pipes: names };
};

/** A home that cannot be written keeps nobody from working; but then nobody will know what was left here. */
export const keepOwners = async (
  home: string,
  uuid: string,
  scratch: string,
  log: (text: string) => void,
): Promise<OwnersFile> => {
  const path = join(ownersDirectory(home), `${ownersPrefix()}${uuid}.json`);
  const machine = await machineId();
  const self = identify();
  let spawners: { readonly process: ProcessIdentity; readonly pipes: string }[] = [];
  let changes = 0;
  let written = 0;
  let last: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    // this write includes what was added since it was asked for
    if (written === changes) return;
    const upTo = changes;
    const pipes = spawners.map((each) => each.pipes).filter((name) => name !== "");
    const owners: Owners = {
      uuid,
      scratch,
      machine,
      processes: [self, ...spawners.map((each) => each.process)],
      pipes,
    };
    await replaceFile(path, `${JSON.stringify(owners)}\n`, { sync: false });
    written = upTo;
  };
  /** Spawners that had one task each come and go. */
  const forgetDead = async (): Promise<void> => {
    const dead = new Set<object>();
    for (const each of spawners) if ((await whereabouts(each.process, self)) === "dead") dead.add(each);
    spawners = spawners.filter((each) => !dead.has(each));
  };
  const save = (): Promise<void> =>
    (last = last.then(write).catch((error: unknown) => log(`${path}: ${(error as Error).message}`)));

  await mkdir(ownersDirectory(home), { recursive: true, mode: 0o700 }).catch(() => undefined);
  return {
    add: async (pid, pipes) => {
      if (spawners.length >= MOST_NAMED) await forgetDead();
      spawners.push({ process: identify(pid), pipes });
      changes += 1;
      await save();
    },
    remove: async () => {
      await last;
      await unlink(path).catch(() => undefined);
    },
  };
};
