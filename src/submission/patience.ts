import { SlipwayError } from "../errors.ts";
import type { Engine } from "../server/engine.ts";
import type { Journal } from "../journal/journal.ts";

/** Waits for the disk, but not forever when it is full; a `committed` run is then taken in once there is room. */
export type Patience = (lsn: number, committed?: number) => Promise<void>;

/** How long a client waits for room on the disk before it learns that there is none. */
const FULL_PATIENCE_MS = 5000;

export const createPatience =
  (engine: Engine, journal: Journal, home: string): Patience =>
  async (lsn, committed) => {
    let timer: NodeJS.Timeout | undefined;
    const refusal = (): SlipwayError =>
      committed === undefined
        ? new SlipwayError("journal-full", { detail: "no room left", home })
        : new SlipwayError("journal-waits", { run: committed, home });
    const refuse = new Promise<never>((_, reject) => {
      timer = setInterval(() => {
        if (journal.state === "full") reject(refusal());
      }, FULL_PATIENCE_MS);
    });
    try {
      await Promise.race([engine.whenDurable(lsn), refuse]);
    } finally {
      clearInterval(timer);
    }
  };
