import type { WrapView } from "../api/wraps.ts";
import { listWraps } from "../wrap/holder/registry.ts";

/** Wrappers of a home as the API shows them. They need no server: it reads what they wrote. */
export const wrapViews = async (home: string): Promise<WrapView[]> =>
  (await listWraps(home)).map((wrap) => ({
    id: wrap.id,
    target: wrap.target,
    state: wrap.state,
    statusFile: wrap.statusFile,
    host: wrap.holder.host,
    pid: wrap.holder.pid,
    started: wrap.started,
    address: wrap.head?.address ?? null,
    dashboardPort: wrap.head?.dashboard_port ?? null,
    minimum: wrap.minimum ?? 0,
    maximum: wrap.maximum ?? 0,
    work: wrap.work ?? 0,
    clients: wrap.clients ?? 0,
    workers: (wrap.workers ?? []).map((worker) => ({ ...worker })),
    jobs: (wrap.jobs ?? []).map((job) => ({ ...job })),
    problem: wrap.problem ?? null,
  }));
