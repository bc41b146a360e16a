import { SlipwayError } from "../../errors.ts";
import { identify } from "../../process-identity.ts";
import type { Plan } from "../plan/plan.ts";
import type { PortRange } from "../plan/values.ts";
import { endJobs } from "./end-jobs.ts";
import { claimLedger, type Ledger } from "./ledger.ts";
import { managerOf } from "./managers.ts";
import { jobNameOf, prepareRegistry, removeEntry, wrapId, writeEntry, type WrapEntry } from "./registry.ts";
import { endEarly, startHead, type Started, Stopped } from "./start-head.ts";
import { superviseHead } from "./supervise.ts";
import {
  awaitStatus,
  hasResults,
  NO_RESULTS,
  realStatusFile,
  removeStatus,
  type StatusBody,
  updateStatus,
} from "./status-file.ts";
import { removeTlsFiles } from "./tls-files.ts";

export interface HoldOptions {
  readonly home: string;
  /** MODULE::SYMBOL */
  readonly target: string;
  /** Absolute. */
  readonly statusFile: string;
  readonly portRange?: PortRange | undefined;
  readonly host?: string | undefined;
  /** Seconds without work and clients; 0: for ever. */
  readonly timeout: number;
  readonly python?: string | undefined;
  /** slipway_dask.py */
  readonly shim: string;
  /** How long a cluster may take to stand. */
  readonly patienceMs?: number;
  /** Lines for people. */
  readonly note: (line: string) => void;
  /** Aborts when the wrapper should end in good order. */
  readonly stop: AbortSignal;
  /** Aborts when it should end at once; jobs are cancelled all the same. */
  readonly kill: AbortSignal;
}

export const OPEN_TO_ALL =
  "anyone who reaches the scheduler's port can run code as you; `security: true` in the parameters asks for a key";

/** Cancels what a wrapper that was killed has left. */
const cancelLeft = async (ledger: Ledger, jobName: string, note: HoldOptions["note"]): Promise<void> => {
  const { left } = ledger;
  const manager = managerOf(left?.manager ?? null);
  if (left === undefined || manager === undefined) return;
  note(`an earlier wrapper died and left ${left.jobs.length} jobs: cancelling them`);
  await ledger.write(left.manager, left.jobs);
  const still = await endJobs({ manager, jobs: left.jobs, jobName });
  if (still.length > 0)
    throw new SlipwayError("wrap-failed", {
      detail: `jobs of an earlier wrapper could not be cancelled: ${still.map(({ id }) => id).join(", ")}`,
      jobs: still.map(({ id }) => id),
      remedy: "Cancel them by hand, or try again when the workload manager answers.",
    });
};

const messageOf = (error: unknown): string =>
  error instanceof SlipwayError ? `${error.message} (${error.hint})` : (error as Error).message;

/** From claiming the status file to the end of the cluster. Rejects with what went wrong, after it stands in the file. */
const holdClaimed: HoldClaimed<HoldOptions> = async (options, body, ledger, id) => {
  const { home, statusFile, target, note } = options;
  const entry: WrapEntry = {
    id,
    target,
    statusFile,
    holder: identify(),
    started: new Date().toISOString(),
    state: "starting",
  };
  prepareRegistry(home);
  await writeEntry(home, entry);
  if (hasResults(body)) await updateStatus(statusFile, NO_RESULTS);
  await cancelLeft(ledger, jobNameOf(id), note);
  const started = await startHead(options, body, id, ledger);
  try {
    await announce(options, started);
  } catch (error) {
    await endEarly(started, jobNameOf(id));
    throw error;
  }
  const { planned, ...rest } = started;
  await superviseHead({ ...options, ...rest, id, ledger, plan: planned.plan, entry });
};

/** Says in the status file where the cluster is. */
const announce = async (options: HoldOptions, { address, planned }: Started): Promise<void> => {
  const { statusFile, target, note } = options;
  const { plan, warnings } = planned;
  for (const warning of warnings) note(warning);
  const isSecure = address.address.startsWith("tls://");
  if (!isSecure && plan.dask["distributed.comm.require-encryption"] === true)
    throw new SlipwayError("bad-parameter", {
      key: "security",
      detail: `${target} made a cluster at ${address.address}, which is not encrypted`,
      remedy: "Let it take Dask's configuration: give it no protocol and no security of its own.",
    });
  if (!isSecure) note(OPEN_TO_ALL);
  await updateStatus(statusFile, {
    status: "running",
    address: address.address,
    host: address.host,
    port: address.port,
    dashboard_port: address.dashboard_port,
    pid: process.pid,
    tls: plan.dask["distributed.comm.tls.ca-file"] === undefined ? undefined : tlsNames(plan.dask),
  });
  note(`${address.kind} at ${address.address}, dashboard at port ${address.dashboard_port ?? "none"}`);
};

/** For the client: Security(tls_ca_file=…, tls_client_cert=…, tls_client_key=…, require_encryption=True). */
export const tlsNames = (keys: Plan["dask"]): StatusBody => ({
  ca_file: keys["distributed.comm.tls.ca-file"],
  client_cert: keys["distributed.comm.tls.client.cert"],
  client_key: keys["distributed.comm.tls.client.key"],
});

/** What happens between claiming the status file and letting it go. */
export type HoldClaimed<O> = (options: O, body: StatusBody, ledger: Ledger, id: string) => Promise<void>;

/** Holds a cluster of a class of Python's. */
export const hold = (options: HoldOptions): Promise<void> => holdAs(options, holdClaimed);

/**
 * Holds a cluster until nobody needs it. Any failing step is told in the status file; a normal end removes the file and
 * leaves no job.
 */
export const holdAs = async <O extends HoldOptions>(given: O, holdIt: HoldClaimed<O>): Promise<void> => {
  const { home, stop } = given;
  let { statusFile } = given;
  const tell = async (problem: unknown): Promise<void> => {
    const changes = { status: "failed", reason: messageOf(problem), pid: process.pid };
    // standard error has it too
    await updateStatus(statusFile, changes).catch(() => undefined);
  };
  let body: StatusBody;
  try {
    body = await awaitStatus(statusFile, { stop });
  } catch (error) {
    if (stop.aborted) return;
    // a file that never came is not made now
    if (!/did not appear/.test((error as Error).message)) await tell(error);
    throw error;
  }
  // a link stays one: what it leads to is replaced
  statusFile = await realStatusFile(statusFile);
  const options = { ...given, statusFile };
  const id = await wrapId(statusFile);
  const ledger = await claimLedger(statusFile);
  let isNormal = true;
  let areJobsLeft = false;
  try {
    await holdIt(options, body, ledger, id);
  } catch (error) {
    if (!(error instanceof Stopped)) {
      isNormal = false;
      // the next start cancels them
      areJobsLeft = error instanceof SlipwayError && error.facts["jobs"] !== undefined;
      await tell(error);
      throw error;
    }
  } finally {
    await removeTlsFiles(statusFile);
    await removeEntry(home, id);
    if (isNormal) await removeStatus(statusFile);
    if (!areJobsLeft) await ledger.release();
  }
};
