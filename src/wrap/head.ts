/**
 * What `slipway wrap` holds, whatever it is: a head process (Dask's scheduler) that has an address, workers that connect to
 * it, an idle test, and a way to scale. Status file, keep-alive, ledger of jobs and registry know nothing else. Another
 * framework is one more file in `heads/`.
 */
export interface Head extends HeadProcess {
  /** How many jobs (or workers, where there are no jobs) the head may ask for, from now on. */
  adapt(minimum: number, maximum: number): void;
  /** Gives up jobs that the head believes in and that are gone; it asks for others if it still needs them. */
  replace(names: readonly string[]): void;
}

export interface HeadProcess {
  /** In order; ends when the head has. */
  readonly events: AsyncIterable<HeadEvent>;
  /** An orderly end: workers and clients are told. */
  close(): void;
  kill(): void;
}

/** A head whose workers come from a pool of pilots: it starts none, and says how many it would like to have. */
export interface PoolHead extends HeadProcess {
  /**
   * Lets at most this many workers go, which it chooses: those that cost least, each with all others of its job or not at
   * all. What they hold moves to others first; then they end by themselves. It tells which with `retired`. `last`: a job
   * that goes after all others.
   */
  retire(workers: number, last?: string): void;
}

/** What a framework brings for a pool: how its head is started, and what starts a worker on a node. */
export interface Framework {
  start(where: HeadPlace): Promise<PoolHead>;
  /**
   * The command of one worker that connects to `address`, as a task runs it. It names itself `p$SLIPWAY_PILOT-$SLIPWAY_RUN`,
   * retires at $SLIPWAY_PILOT_DRAIN (epoch seconds) where that is set, and ends by itself when its head is gone.
   */
  worker(address: string): WorkerCommand;
  /**
   * The command of a head that runs in a pilot and writes its address, as of `ready`, to `file`; its settings are in
   * `file`.settings before it starts. Absent where that cannot be.
   */
  headTask?(file: string): WorkerCommand & { readonly settings: object };
}

/** Here, with a directory for its files; or in a pilot, where it says its address in a file. */
export type HeadPlace =
  | { readonly in: "here"; readonly directory: string }
  | { readonly in: "pilot"; readonly file: string };

export interface WorkerCommand {
  readonly command: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** The job that a worker of a pool belongs to, told by its name. */
export const jobOfWorker = (name: string): { readonly pilot: number; readonly run: number } | undefined => {
  const [, pilot, run] = /^p(\d{1,9})-(\d{1,9})$/.exec(name) ?? [];
  return pilot === undefined ? undefined : { pilot: Number(pilot), run: Number(run) };
};

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
  /** How many workers it has asked for, or would like to have. */
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
  /** Of a pool's head: the workers that it lets go, by name. */
  | { readonly event: "retired"; readonly workers: readonly string[] }
  /** Of a pool's head in a pilot: it began again elsewhere. */
  | ({ readonly event: "moved" } & HeadAddress)
  | { readonly event: "closed" };
