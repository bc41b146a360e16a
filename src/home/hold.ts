import { stat, unlink } from "node:fs/promises";
import type { HomeClock } from "./clock.ts";
import { highestClaimed, releaseEpoch } from "./epoch.ts";
import { unless } from "./files.ts";
import { type Lease, leasePath, parseLease, readLeaseText, writeLease } from "./lease.ts";

export interface HoldTimes {
  /** Milliseconds between two renewals of the lease. */
  readonly renew: number;
  /** A holder that could not renew for this long gives up. Well below the time after which another host takes over. */
  readonly lose: number;
}

/** A home held by this process. */
export interface HomeClaim {
  readonly epoch: number;
  readonly lease: Lease;
  /** Tells other starters at which address to reach this server. */
  setAddress(address: string): Promise<void>;
  /** Called once, when the home is lost: this server must end without writing anything more. */
  onLost(listener: (reason: string) => void): void;
  /** Whether this server surely holds its home now. Answers at once while the lease is fresh, else after renewing it. */
  fence(): boolean | Promise<boolean>;
  /** Gives the home back. */
  release(): Promise<void>;
}

/**
 * Keeps the lease of a claimed epoch. A renewal writes the lease and then looks for a higher epoch; a taker creates its
 * epoch and then looks at the lease again: between a holder that wakes up late and a taker, at least one sees the
 * other.
 */
export const holdHome = (home: string, first: Lease, clock: HomeClock, times: HoldTimes): HomeClaim => {
  const { epoch } = first;
  let lease = first;
  let renewedAt = clock.now();
  let underWay: Promise<void> | undefined;
  let overdue = 0;
  let directory: string | undefined;
  let lostReason: string | undefined;
  let ended = false;
  const listeners: ((reason: string) => void)[] = [];
  let onLoss: (() => void) | undefined;
  const loss = new Promise<void>((resolve) => {
    onLoss = resolve;
  });

  const lose = (reason: string): void => {
    if (ended) return;
    ended = true;
    lostReason = reason;
    stop();
    onLoss?.();
    for (const listener of listeners) listener(reason);
  };

  const successor = async (): Promise<boolean> => {
    const highest = await highestClaimed(home);
    if (highest <= epoch) return false;
    lose(`a server of epoch ${highest} has taken over`);
    return true;
  };

  /** A directory that was removed and made again has its own epochs: nothing in it shows that it is a different one. */
  const isReplaced = async (): Promise<boolean> => {
    const { dev, ino } = await stat(home);
    const now = `${dev}:${ino}`;
    directory ??= now;
    if (directory !== now) lose("the home was removed, and another is in its place");
    return directory !== now;
  };

  const renewal = async (): Promise<void> => {
    const began = clock.now();
    if (await isReplaced()) return;
    const found = parseLease((await readLeaseText(home)) ?? "");
    if (found !== undefined && found.epoch !== epoch) {
      lose(`the lease belongs to epoch ${found.epoch} now (pid ${found.pid} on ${found.host})`);
      return;
    }
    if (ended || (await successor())) return;
    lease = { ...lease, counter: lease.counter + 1 };
    await writeLease(home, lease);
    if (await successor()) return;
    renewedAt = began;
    overdue = 0;
  };

  const tooOld = (): boolean => clock.now() - renewedAt >= times.lose;

  /** Joins a renewal that is under way. Never rejects: only the age of the lease matters. */
  const renew = (): Promise<void> => {
    underWay ??= renewal()
      .catch((error: unknown) => {
        if (tooOld()) lose(`the lease could not be renewed: ${(error as Error).message}`);
      })
      .finally(() => {
        underWay = undefined;
      });
    return underWay;
  };

  /** A process that was stopped for long finds everything late at once; so a hanging renewal gets a second look. */
  const tick = (): void => {
    if (underWay === undefined) void renew();
    else if (tooOld()) {
      overdue += 1;
      if (overdue >= 2) lose("the lease could not be renewed: the file system does not answer");
    }
  };
  const stop = clock.every(times.renew, tick);

  return {
    epoch,
    get lease() {
      return lease;
    },
    setAddress: async (address) => {
      await underWay;
      lease = { ...lease, address };
      await renew();
    },
    onLost: (listener) => {
      if (lostReason === undefined) listeners.push(listener);
      else listener(lostReason);
    },
    fence: () => {
      if (ended) return false;
      if (!tooOld()) return true;
      return Promise.race([renew(), loss]).then(() => !ended && !tooOld());
    },
    release: async () => {
      stop();
      await Promise.race([underWay, loss]);
      if (ended) return;
      ended = true;
      await releaseEpoch(home, epoch, lease);
      const found = parseLease((await readLeaseText(home)) ?? "");
      if (found === undefined || found.epoch === epoch) await unless(["ENOENT"], () => unlink(leasePath(home)));
    },
  };
};
