import { SlipwayError } from "../errors.ts";
import type { Engine } from "../server/engine.ts";
import type { Journal } from "../journal/journal.ts";

/** Waits for the disk, but not forever when it is full; a `committed` run is then taken in once there is room. */
export type Patience = (lsn: number, committed?: number) => Promise<void>;

/** How long a client waits for room on the disk before it learns that there is none. */
const FULL_PATIENCE_MS = 5000;

export const createPatience =
  (engine: Engine, journal: Journal, home: string): Patience =>
  (lsn, committed) => {
    const refusal = (): SlipwayError =>
      committed === undefined
        ? new SlipwayError("journal-full", { detail: "no room left", home })
        : new SlipwayError("journal-waits", { run: committed, home });
    return new Promise((resolve, reject) => {
      const timer = setInterval(() => {
        if (journal.state !== "full") return;
        clearInterval(timer);
        reject(refusal());
      }, FULL_PATIENCE_MS);
      engine.whenDurable(lsn).then(
        () => {
          clearInterval(timer);
          resolve();
        },
        (error: unknown) => {
          clearInterval(timer);
          reject(error as Error);
        },
      );
    });
  };
