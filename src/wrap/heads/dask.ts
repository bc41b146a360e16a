import type { Head } from "../head.ts";
import type { Plan } from "../plan/plan.ts";
import { startShim } from "./shim.ts";

export interface DaskHeadOptions {
  readonly python: string;
  /** slipway_dask.py */
  readonly shim: string;
  /** MODULE::SYMBOL */
  readonly cluster: string;
  readonly plan: Plan;
  /** Lines for people. */
  readonly note: (line: string) => void;
}

/** A Dask cluster in a Python of the user's, driven by the shim. */
export const startDaskHead = async ({ python, shim, cluster, plan, note }: DaskHeadOptions): Promise<Head> => {
  const { send, ...process } = await startShim({ python, shim, note, start: { cluster, plan } });
  return {
    ...process,
    adapt: (minimum, maximum) => send({ op: "adapt", minimum, maximum }),
    replace: (names) => send({ op: "replace", names }),
  };
};
