import { join } from "node:path";
import { SlipwayError } from "../errors.ts";
import { type HomeClock, systemClock } from "./clock.ts";
import { claimEpoch, highestClaimed, pruneEpochs, readClaim, releaseEpoch } from "./epoch.ts";
import { makeDirectory } from "./files.ts";
import { type HomeClaim, type HoldTimes, holdHome } from "./hold.ts";
import { type ProcessIdentity, identify, whereabouts } from "../process-identity.ts";
import { parseLease, readLeaseText, writeLease } from "./lease.ts";

export interface ClaimTimes extends HoldTimes {
  /** A lease held elsewhere that stays unchanged this long, on our clock, is taken over. 0: do not wait. */
  readonly takeOver: number;
  /** The time between two looks at it. */
  readonly look: number;
}

export const defaultClaimTimes: ClaimTimes = { renew: 5_000, lose: 30_000, takeOver: 60_000, look: 1_000 };

export interface ClaimOptions {
  readonly pid?: number;
  /** What this host calls itself. */
  readonly host?: string;
  readonly address?: string;
  /** Called before waiting to see whether a lease held elsewhere is dead. */
  readonly onWait?: (wait: { readonly host: string; readonly pid: number; readonly ms: number }) => void;
  readonly times?: Partial<ClaimTimes>;
}

/** Who holds the home, according to its files. */
interface Holder {
  readonly epoch: number;
  readonly by: ProcessIdentity | undefined;
  readonly address: string | undefined;
}

interface View {
  readonly holder: Holder | undefined;
  /** The highest epoch claimed, and the highest in any file. */
  readonly top: number;
  readonly highest: number;
  readonly leaseText: string | undefined;
  /** Everything that was read: any change means that someone is alive. */
  readonly text: string;
}

/** The highest epoch rules: its file names the holder even before the lease is written, or after someone deleted it. */
const look = async (home: string): Promise<View> => {
  const leaseText = await readLeaseText(home);
  const lease = parseLease(leaseText ?? "");
  const top = await highestClaimed(home);
  const claim = top === 0 ? undefined : await readClaim(home, top);
  const text = JSON.stringify([leaseText, top, claim?.text]);
  const highest = Math.max(top, lease?.epoch ?? 0);
  if (claim !== undefined && claim.epoch >= (lease?.epoch ?? 0)) {
    const own = lease?.epoch === claim.epoch ? lease : undefined;
    const holder = { epoch: claim.epoch, by: claim.by ?? own, address: own?.address };
    return { holder: claim.released ? undefined : holder, top, highest, leaseText, text };
  }
  const holder = lease === undefined ? undefined : { epoch: lease.epoch, by: lease, address: lease.address };
  return { holder, top, highest, leaseText, text };
};

const heldBy = (home: string, { by }: Holder, age: string): SlipwayError =>
  new SlipwayError("home-held", { home, host: by?.host ?? "an unknown host", pid: by?.pid ?? "unknown", age });

/** Watches a holder that cannot be asked. Returns when it seems dead or is gone; throws `home-held` when it renews. */
const outwait = async (
  home: string,
  view: View,
  holder: Holder,
  options: ClaimOptions,
  times: ClaimTimes,
  clock: HomeClock,
): Promise<void> => {
  if (times.takeOver === 0) throw heldBy(home, holder, "an unknown time");
  options.onWait?.({ host: holder.by?.host ?? "an unknown host", pid: holder.by?.pid ?? 0, ms: times.takeOver });
  const began = clock.now();
  while (clock.now() - began < times.takeOver) {
    await clock.sleep(times.look);
    const now = await look(home);
    if (now.text === view.text) continue;
    if (now.holder?.epoch === holder.epoch) throw heldBy(home, holder, "less than a second");
    return;
  }
};

/** The other host that holds this home, as its files say; undefined: no other host does. Changes nothing. */
export const heldElsewhere = async (home: string, host: string): Promise<string | undefined> => {
  const by = (await look(home)).holder?.by;
  return by === undefined || by.host === host ? undefined : by.host;
};

const ATTEMPTS = 100;

/**
 * Makes this process the one server of a home (rule 1). If several try at once, exactly one gets it; the others get
 * `server-running` (same host) or `home-held` (elsewhere). A holder that died on this host is recognised at once.
 */
export const claimHome = async (
  home: string,
  options: ClaimOptions = {},
  clock: HomeClock = systemClock,
): Promise<HomeClaim> => {
  const times = { ...defaultClaimTimes, ...options.times };
  const self = identify(options.pid, options.host);
  await makeDirectory(join(home, "epochs"));
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const view = await look(home);
    const { holder } = view;
    let watched = false;
    if (holder !== undefined) {
      const state = holder.by === undefined ? "elsewhere" : await whereabouts(holder.by, self);
      if (state === "alive") {
        const address = holder.address ?? "still starting";
        throw new SlipwayError("server-running", { home, pid: holder.by?.pid, host: holder.by?.host, address });
      }
      if (state === "elsewhere") {
        await outwait(home, view, holder, options, times, clock);
        if ((await look(home)).text !== view.text) continue;
        watched = true;
      }
    }
    const epoch = await claimEpoch(home, view, self);
    if (epoch === undefined) continue;
    if (watched && holder !== undefined && (await readLeaseText(home)) !== view.leaseText) {
      await releaseEpoch(home, epoch, self);
      throw heldBy(home, holder, "less than a second");
    }
    const { address } = options;
    const started = new Date().toISOString();
    const lease = { ...self, epoch, counter: 0, started, ...(address === undefined ? {} : { address }) };
    await writeLease(home, lease);
    await pruneEpochs(home, epoch);
    return holdHome(home, lease, clock, times);
  }
  throw new SlipwayError("home-unusable", { home, detail: "too many servers are starting at once" });
};
