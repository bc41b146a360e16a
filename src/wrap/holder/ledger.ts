import { link, readFile, rename, rm } from "node:fs/promises";
import { SlipwayError } from "../../errors.ts";
import { identify, parseIdentity, type ProcessIdentity, whereabouts } from "../../process-identity.ts";
import { replaceFile, writeTemporary } from "../../replace-file.ts";
import { besides, unwritable } from "./status-file.ts";

/**
 * The file beside a status file that says which wrapper holds it and which jobs it has submitted. It is there before the
 * first job and goes after the last one: a wrapper that was killed leaves it, and the next start cancels what it names.
 */
export interface LedgerJob {
  readonly id: string;
  readonly cancel: string | null;
}

export interface LedgerBody {
  readonly version: 1;
  readonly holder: ProcessIdentity;
  readonly manager: string | null;
  readonly jobs: readonly LedgerJob[];
}

export interface Ledger {
  /** Of a wrapper that was killed. */
  readonly left: LedgerBody | undefined;
  /** Replaces what it says. Resolves when it is on disk; the last one given wins. */
  write(manager: string | null, jobs: readonly LedgerJob[]): Promise<void>;
  release(): Promise<void>;
}

const parse = (text: string): LedgerBody | undefined => {
  try {
    const body = JSON.parse(text) as Partial<LedgerBody>;
    const holder = parseIdentity((body.holder ?? {}) as unknown as Readonly<Record<string, unknown>>);
    return holder === undefined || !Array.isArray(body.jobs) ? undefined : ({ ...body, holder } as LedgerBody);
  } catch {
    return undefined;
  }
};

export const ledgerPath = (statusFile: string): string => besides(statusFile, "jobs");

export const readLedger = async (statusFile: string): Promise<LedgerBody | undefined> =>
  parse(await readFile(ledgerPath(statusFile), "utf8").catch(() => ""));

/** Who holds a status file now, as far as can be known from here; a holder on another host counts as alive. */
export const holderOf = async (statusFile: string): Promise<ProcessIdentity | undefined> => {
  const body = await readLedger(statusFile);
  if (body === undefined) return undefined;
  return (await whereabouts(body.holder, identify())) === "dead" ? undefined : body.holder;
};

const textOf = (body: LedgerBody): string => `${JSON.stringify(body)}\n`;

/** Makes the ledger of this process; rejects with wrap-running where another wrapper that lives has one. */
export const claimLedger = async (statusFile: string): Promise<Ledger> => {
  const path = ledgerPath(statusFile);
  const self = identify();
  let left: LedgerBody | undefined;
  const temporary = await writeTemporary(
    path,
    textOf({ version: 1, holder: self, manager: null, jobs: [] }),
    true,
  ).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  try {
    for (;;) {
      try {
        // fails where there is one: two that start at once do not both get it
        await link(temporary, path);
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const held = await holderOf(statusFile);
      if (held !== undefined)
        throw new SlipwayError("wrap-running", { file: statusFile, pid: held.pid, host: held.host });
      const old = `${temporary}.old`;
      const moved = await rename(path, old).then(
        () => true,
        () => false,
      );
      if (!moved) continue;
      const body = parse(await readFile(old, "utf8"));
      const isDead = body === undefined || (await whereabouts(body.holder, self)) === "dead";
      // another start was faster, and this is its own: it gets it back
      if (isDead && body !== undefined) {
        left = body;
        // whoever is killed from now on still leaves word of them
        await replaceFile(temporary, textOf({ ...body, holder: self }));
      } else if (!isDead) await link(old, path).catch(() => undefined);
      await rm(old, { force: true });
    }
  } finally {
    await rm(temporary, { force: true });
  }
  let writing: Promise<void> = Promise.resolve();
  return {
    left,
    write: (manager, jobs) => {
      // a disk that was full once may not be next time
      writing = writing
        .catch(() => undefined)
        .then(() => replaceFile(path, textOf({ version: 1, holder: self, manager, jobs }), { sync: false }));
      return writing;
    },
    release: async () => {
      await writing.catch(() => undefined);
      await rm(path, { force: true });
    },
  };
};
