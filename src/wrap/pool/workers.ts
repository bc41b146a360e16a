import type { EventView } from "../../api/schemas.ts";
import { type HeadTick, jobOfWorker } from "../head.ts";

/** A worker as a task of the server: its run, and what is known of it. */
export interface Worker {
  readonly run: number;
  readonly since: number;
  /** The pilot that it was placed on. */
  pilot: number | undefined;
  connectedAt: number | undefined;
  isConnected: boolean;
  leavingSince: number | undefined;
}

/**
 *   coming ── waits, has a pilot, starts; its worker connects ──► connected ── asked to leave ──► leaving ──► ended
 *      ▲                                                              │  └── expires, or dies ──────────────────▲
 *      └────── its pilot is gone, and the server runs it again ───────┘
 */
export type WorkerState = "coming" | "connected" | "leaving";

export interface Workers {
  add(run: number, since: number): Worker;
  get(run: number): Worker | undefined;
  remove(run: number): void;
  all(): readonly Worker[];
  those(state: WorkerState): readonly Worker[];
  /** What an event of the server says of agents and of where workers are. */
  hear(event: EventView): void;
  /** The pilot that the head runs in. */
  headPilot(): number | undefined;
  /** Who is connected now; answers with the pilots of all that are, and whether one has just come. */
  see(tick: HeadTick, now: number): { readonly pilots: readonly number[]; readonly hasJoined: boolean };
}

const stateOf = ({ leavingSince, connectedAt }: Worker): WorkerState =>
  leavingSince !== undefined ? "leaving" : connectedAt === undefined ? "coming" : "connected";

export const createWorkers = (headRun?: number): Workers => {
  let headPilot: number | undefined;
  const workers = new Map<number, Worker>();
  const pilotOfAgent = new Map<number, number>();
  return {
    add: (run, since) => {
      const worker: Worker = {
        run,
        since,
        pilot: undefined,
        connectedAt: undefined,
        isConnected: false,
        leavingSince: undefined,
      };
      workers.set(run, worker);
      return worker;
    },
    get: (run) => workers.get(run),
    remove: (run) => void workers.delete(run),
    all: () => [...workers.values()],
    those: (state) => [...workers.values()].filter((worker) => stateOf(worker) === state),
    hear: ({ event, run, detail = {} }) => {
      if (event === "agent.joined") pilotOfAgent.set(Number(detail["agent"]), Number(detail["pilot"]));
      if (run !== undefined && run === headRun && event === "tasks.assigned")
        headPilot = pilotOfAgent.get(Number(detail["agent"]));
      const worker = run === undefined ? undefined : workers.get(run);
      if (worker === undefined) return;
      if (event === "tasks.assigned") worker.pilot = pilotOfAgent.get(Number(detail["agent"])) ?? 0;
      if (event !== "attempt.lost") return;
      // its pilot is gone; the server runs it again on another
      worker.pilot = worker.connectedAt = undefined;
      worker.isConnected = false;
    },
    headPilot: () => headPilot,
    see: (tick, now) => {
      const jobs = tick.workers.map(({ name }) => jobOfWorker(name)).filter((job) => job !== undefined);
      const pilots = new Map(jobs.map(({ run, pilot }) => [run, pilot]));
      let hasJoined = false;
      for (const worker of workers.values()) {
        const pilot = pilots.get(worker.run);
        worker.isConnected = pilot !== undefined;
        if (pilot === undefined) continue;
        worker.pilot = pilot;
        hasJoined ||= worker.connectedAt === undefined;
        worker.connectedAt ??= now;
      }
      return { pilots: [...pilots.values()], hasJoined };
    },
  };
};
