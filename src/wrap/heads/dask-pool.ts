import type { Framework, PoolHead } from "../head.ts";
import type { OwnPlan } from "../plan/own-plan.ts";
import { startShim } from "./shim.ts";

export interface DaskPoolOptions {
  readonly python: string;
  /** slipway_scheduler.py */
  readonly shim: string;
  /** slipway_dask_worker.py, where nodes find it. */
  readonly launcher: string;
  readonly plan: OwnPlan;
  /** Lines for people. */
  readonly note: (line: string) => void;
}

/** Its name, its end and its directory are known on its node alone. */
const ON_NODE = [
  'if [ -n "$SLIPWAY_PILOT_DRAIN" ]; then',
  "  left=$((SLIPWAY_PILOT_DRAIN - $(date +%s)))",
  '  [ "$left" -ge 1 ] || left=1',
  '  set -- "$@" --lifetime "$left s"',
  "fi",
  '[ -n "$TMPDIR" ] || TMPDIR=/tmp',
  'exec "$@" --name "p$SLIPWAY_PILOT-$SLIPWAY_RUN" --local-directory "$TMPDIR"',
].join("\n");

/** What a nanny gives its worker; the launcher must have it from the start. Whoever sets others sets this one too. */
const seedOf = ({ texts }: OwnPlan): Record<string, string> =>
  Object.keys(texts).some((key) => key.startsWith("distributed.nanny.pre-spawn-environ"))
    ? {}
    : { PYTHONHASHSEED: "6640" };

/** Dask for a pool: a scheduler in a Python of the user's, and `dask worker` on the nodes with the same Python. */
export const daskFramework = ({ python, shim, launcher, plan, note }: DaskPoolOptions): Framework => {
  const start = {
    scheduler: plan.scheduler,
    dask: plan.dask,
    texts: plan.texts,
    target_duration: plan.targetDuration,
  };
  return {
    start: async (where): Promise<PoolHead> => {
      const own =
        where.in === "pilot"
          ? { file: where.file }
          : { dask: { ...start.dask, "temporary-directory": where.directory } };
      const { send, ...process } = await startShim({ python, shim, note, start: { ...start, ...own } });
      return { ...process, retire: (workers, last) => send({ op: "retire", workers, last }) };
    },
    worker: (address) => ({
      command: [
        "/bin/sh",
        "-c",
        ON_NODE,
        "dask-worker",
        python,
        launcher,
        address,
        "--no-dashboard",
        ...plan.worker.options,
      ],
      variables: { ...plan.worker.variables, ...seedOf(plan) },
    }),
    headTask: (file) => ({
      command: [python, shim, "--task", file],
      settings: { ...start, scheduler: { ...plan.scheduler, port: 0, dashboard_address: ":0" } },
      variables: plan.worker.variables,
    }),
  };
};
