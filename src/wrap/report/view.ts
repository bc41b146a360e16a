import type { WrapView } from "../../api/schemas.ts";
import { listWraps, type WrapPilot, type WrapView as Entry } from "../holder/registry.ts";
import { whyWrap } from "./why.ts";

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const dashboardOf = ({ head }: Entry): string | null => {
  if (head?.dashboard_port == null) return null;
  const host = head.host.includes(":") ? `[${head.host}]` : head.host;
  return `http://${host}:${head.dashboard_port}/status`;
};

/** Jobs of a cluster class are shown as pilots are: each is a job that brings workers. */
const pilotsOf = ({ pilots, jobs = [] }: Entry): readonly WrapPilot[] =>
  pilots ??
  jobs.map(({ id, connected, reason }) => ({
    id,
    job: id,
    state: connected ? "PMGR_ACTIVE" : "PMGR_ACTIVE_PENDING",
    agents: 0,
    workers: connected ? 1 : 0,
    reason: reason ?? null,
  }));

/** A wrapper as the API and the command line show it: a fleet of workers. */
export const wrapView = (wrap: Entry): WrapView => {
  const workers = wrap.workers ?? [];
  const pilots = pilotsOf(wrap);
  const shown: Omit<WrapView, "why"> = {
    id: wrap.id,
    target: wrap.target,
    kind: wrap.head?.kind ?? null,
    cluster: wrap.cluster ?? null,
    queue: wrap.queue ?? null,
    state: wrap.state,
    statusFile: wrap.statusFile,
    host: wrap.holder.host,
    pid: wrap.holder.pid,
    started: wrap.started,
    address: wrap.head?.address ?? null,
    dashboardPort: wrap.head?.dashboard_port ?? null,
    dashboard: dashboardOf(wrap),
    minimum: wrap.minimum ?? 0,
    maximum: wrap.maximum ?? 0,
    wanted: wrap.wanted ?? pilots.length,
    work: wrap.work ?? 0,
    tasks: { ...wrap.tasks },
    clients: wrap.clients ?? 0,
    memory: {
      used: total(workers.map(({ used = 0 }) => used)),
      limit: total(workers.map(({ memory }) => memory ?? 0)),
    },
    workers: workers.map(({ name, address, threads, memory, used = 0 }) => ({ name, address, threads, memory, used })),
    jobs: (wrap.jobs ?? []).map(({ id, connected, reason = null }) => ({ id, connected, reason })),
    pilots: pilots.map((pilot) => ({ ...pilot })),
    problem: wrap.problem ?? null,
  };
  return { ...shown, why: whyWrap(shown) };
};

/** Wrappers of a home. They need no server: what they wrote is read. */
export const wrapViews = async (home: string): Promise<WrapView[]> => (await listWraps(home)).map(wrapView);
