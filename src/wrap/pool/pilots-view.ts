import type { PilotView } from "../../api/schemas.ts";
import type { Client } from "../../client/index.ts";
import type { WrapPilot } from "../holder/registry.ts";
import { afterWait } from "../plan/pool.ts";

/** The pilots of a wrapper's server, asked for when something has changed, and now and then while some wait. */
export interface PilotsView {
  changed(): void;
  /** Asks if there is a reason to. */
  refresh(): void;
  /** The pilots of the workers that are connected. */
  connected(pilots: readonly number[]): void;
  list(): readonly WrapPilot[];
  /** When a pilot takes nothing new, in epoch milliseconds; undefined: never, or not known yet. */
  drainsAt(pilot: number): number | undefined;
  /** How long pilots wait in the manager. */
  queueWaitMs(): number;
}

export interface PilotsViewOptions {
  readonly client: Client;
  readonly report: (problem: string | undefined) => void;
  readonly drainMs: (pilot: number) => number | undefined;
}

const PERIOD_MS = 5000;
const ENDED = ["DONE", "FAILED", "CANCELED"];
const REMEMBERED = 1000;

export const createPilotsView = ({ client, report, drainMs }: PilotsViewOptions): PilotsView => {
  let all: readonly PilotView[] = [];
  const drains = new Map<number, number>();
  const waited = new Set<string>();
  let wait: number | undefined;
  let counts = new Map<number, number>();
  let isDirty = true;
  let isAsking = false;
  let askedAt = 0;
  let problem = "";

  const learn = (pilot: PilotView): void => {
    const number = Number(pilot.id);
    const active = pilot.active === null ? undefined : Date.parse(pilot.active);
    if (active !== undefined && !waited.has(pilot.id)) {
      waited.add(pilot.id);
      wait = afterWait(wait, Math.max(0, active - Date.parse(pilot.requested ?? pilot.active!)));
      const life = drainMs(number);
      if (life !== undefined) drains.set(number, active + life);
    }
  };

  const ask = async (): Promise<void> => {
    isAsking = true;
    isDirty = false;
    askedAt = Date.now();
    try {
      const { pilots, fleets } = await client.status();
      for (const pilot of pilots) learn(pilot);
      all = pilots.filter(({ state }) => !ENDED.includes(state));
      const [fleet] = fleets.filter((each) => each.failure !== null || each.problem !== null);
      // how long it still waits is no news
      const key = `${fleet?.failure ?? ""}${fleet?.failure == null ? (fleet?.problem ?? "") : ""}`;
      if (key !== "" && key !== problem) report([fleet?.failure, fleet?.problem].filter((text) => text).join("; "));
      problem = key;
    } catch {
      // the server is being started again: it is asked again
      isDirty = true;
    } finally {
      isAsking = false;
      if (waited.size > REMEMBERED) waited.delete(waited.values().next().value!);
    }
  };

  return {
    changed: () => {
      isDirty = true;
    },
    refresh: () => {
      const isWaiting = all.some(({ agents }) => agents.length === 0) && Date.now() - askedAt > PERIOD_MS;
      if (!isAsking && (isDirty || isWaiting)) void ask();
    },
    connected: (pilots) => {
      counts = new Map();
      for (const pilot of pilots) counts.set(pilot, (counts.get(pilot) ?? 0) + 1);
    },
    list: () =>
      all.map(({ id, nativeId, state, agents, reason, waiting }) => ({
        id,
        job: nativeId,
        state,
        agents: agents.filter((agent) => agent.state !== "gone").length,
        workers: counts.get(Number(id)) ?? 0,
        reason: waiting ?? reason,
      })),
    drainsAt: (pilot) => drains.get(pilot),
    queueWaitMs: () => wait ?? 0,
  };
};
