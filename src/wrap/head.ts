/**
 * What `slipway wrap` holds, whatever it is: a head process (Dask's scheduler) that has an address, workers that connect to
 * it, an idle test, and a way to scale. Status file, keep-alive, ledger of jobs and registry know nothing else. Another
 * framework is one more file in `heads/`.
 */
export interface Head {
  /** In order; ends when the head has. */
  readonly events: AsyncIterable<HeadEvent>;
  /** How many jobs (or workers, where there are no jobs) the head may ask for, from now on. */
  adapt(minimum: number, maximum: number): void;
  /** Gives up jobs that the head believes in and that are gone; it asks for others if it still needs them. */
  replace(names: readonly string[]): void;
  /** An orderly end that leaves no job. */
  close(): void;
  kill(): void;
}

export interface HeadAddress {
  readonly address: string;
  readonly host: string;
  readonly port: number;
  readonly dashboard_port: number | null;
  /** The class of the cluster. */
  readonly kind: string;
  /** The workload manager of its jobs, where it has any. */
  readonly manager: string | null;
  /** Where the jobs' output goes; null: where the manager puts it. */
  readonly log_directory: string | null;
}

export interface HeadJob {
  readonly name: string;
  readonly id: string;
  readonly manager: string | null;
  /** The command that ends it, for managers without a driver. */
  readonly cancel: string | null;
}

export interface HeadWorker {
  readonly name: string;
  readonly address: string;
  readonly threads: number;
  /** Its limit, in bytes. */
  readonly memory: number;
  /** What it uses of that, where the head knows. */
  readonly used?: number;
}

/** Each second. */
export interface HeadTick {
  /** Tasks that run or could run. */
  readonly work: number;
  /** The same by state, in the framework's own words. */
  readonly tasks?: Readonly<Record<string, number>>;
  readonly clients: number;
  /** How many workers it has asked for. */
  readonly wanted?: number;
  readonly workers: readonly HeadWorker[];
  readonly jobs: readonly { readonly name: string; readonly id: string | null; readonly connected: boolean }[];
}

export type HeadEvent =
  | ({ readonly event: "ready" } & HeadAddress)
  /** `port`: another pair of ports may do. */
  | { readonly event: "failed"; readonly step: string; readonly detail: string; readonly remedy: string }
  | ({ readonly event: "job" } & HeadJob)
  | { readonly event: "refused"; readonly name: string; readonly detail: string }
  | ({ readonly event: "tick" } & HeadTick)
  | { readonly event: "closed" };
