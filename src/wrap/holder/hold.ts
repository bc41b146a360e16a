import { SlipwayError } from "../../errors.ts";
import { identify } from "../../process-identity.ts";
import { type DaskHeadOptions, startDaskHead } from "../heads/dask.ts";
import type { Head, HeadAddress, HeadEvent } from "../head.ts";
import { planOf, type Planned } from "../plan/plan.ts";
import type { PortRange } from "../plan/values.ts";
import { endJobs } from "./end-jobs.ts";
import { findPython } from "./find-python.ts";
import { pickPorts } from "./free-ports.ts";
import { claimLedger, type Ledger } from "./ledger.ts";
import { managerOf } from "./managers.ts";
import { jobNameOf, prepareRegistry, removeEntry, wrapId, writeEntry, type WrapEntry } from "./registry.ts";
import { superviseHead } from "./supervise.ts";
import { awaitStatus, removeStatus, type StatusBody, updateStatus } from "./status-file.ts";
import { makeTlsFiles, removeTlsFiles } from "./tls-files.ts";

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
  /** Lines for people. */
  readonly note: (line: string) => void;
  /** Aborts when the wrapper should end in good order. */
  readonly stop: AbortSignal;
  /** Aborts when it should end at once; jobs are cancelled all the same. */
  readonly kill: AbortSignal;
}

const PORT_TRIES = 3;

const OPEN_TO_ALL =
  "whoever reaches the scheduler's port can run code as you; `security: true` in the parameters makes it tls with a key";

interface Started {
  readonly head: Head;
  readonly events: AsyncIterator<HeadEvent>;
  readonly address: HeadAddress;
  readonly planned: Planned;
  /** What it said of jobs before it stood. */
  readonly early: readonly HeadEvent[];
}

/** Cancels what a wrapper that was killed has left. */
const cancelLeft = async (ledger: Ledger, jobName: string, note: HoldOptions["note"]): Promise<void> => {
  const { left } = ledger;
  const manager = managerOf(left?.manager ?? null);
  if (left === undefined || manager === undefined) return;
  note(`a wrapper that ended without a word left ${left.jobs.length} jobs: cancelling what still runs or waits`);
  await ledger.write(left.manager, left.jobs);
  const still = await endJobs({ manager, jobs: left.jobs, jobName });
  if (still.length > 0)
    throw new SlipwayError("wrap-failed", {
      detail: `jobs of an earlier wrapper could not be cancelled: ${still.map(({ id }) => id).join(", ")}`,
      jobs: still.map(({ id }) => id),
      remedy: "Cancel them by hand, or try again when the workload manager answers.",
    });
};

/** The first event that is not about a job decides. */
const firstWord = async (
  events: AsyncIterator<HeadEvent>,
): Promise<{ readonly word: HeadEvent | undefined; readonly early: readonly HeadEvent[] }> => {
  const early: HeadEvent[] = [];
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) return { word: undefined, early };
    if (value.event === "ready" || value.event === "failed") return { word: value, early };
    early.push(value);
  }
};

const failure = (word: HeadEvent | undefined): SlipwayError =>
  word?.event === "failed"
    ? new SlipwayError("wrap-failed", { detail: word.detail, remedy: word.remedy })
    : new SlipwayError("wrap-failed", {
        detail: "the Python process ended before the cluster stood",
        remedy: "Its last words are above.",
      });

/** Plan and head; a port that was taken between the choice and its use is another's, and others are chosen. */
const start = async (options: HoldOptions, body: StatusBody, id: string): Promise<Started> => {
  const python = await findPython(options.python);
  if (python.warning !== undefined) options.note(python.warning);
  const wantsTls = (body["parameters"] as { security?: unknown } | undefined)?.security === true;
  const tls = wantsTls ? await makeTlsFiles(options.statusFile) : undefined;
  for (let tried = 1; ; tried++) {
    const planned = planOf(body["parameters"], {
      ports: await pickPorts(options.portRange),
      host: options.host,
      portRange: options.portRange,
      python: options.python === undefined ? undefined : python.path,
      jobName: jobNameOf(id),
      tls,
    });
    const shim: DaskHeadOptions = {
      python: python.path,
      shim: options.shim,
      cluster: options.target,
      plan: planned.plan,
    };
    const head = await startDaskHead(shim);
    const abort = (): void => head.close();
    options.stop.addEventListener("abort", abort, { once: true });
    options.kill.addEventListener("abort", () => head.kill(), { once: true });
    const events = head.events[Symbol.asyncIterator]();
    const { word, early } = await firstWord(events);
    options.stop.removeEventListener("abort", abort);
    if (word?.event === "ready") return { head, events, address: word, planned, early };
    if (options.stop.aborted) throw new Stopped();
    // its end, and the end of its cluster
    while ((await events.next()).done !== true);
    if (word?.event !== "failed" || word.step !== "port" || tried === PORT_TRIES) throw failure(word);
  }
};

/** Somebody asked for the end before the cluster stood: a normal end. */
class Stopped extends Error {}

const messageOf = (error: unknown): string =>
  error instanceof SlipwayError ? `${error.message} (${error.hint})` : (error as Error).message;

/** From claiming the status file to the end of the cluster. Rejects with what went wrong, after it stands in the file. */
const holdClaimed = async (options: HoldOptions, body: StatusBody, ledger: Ledger, id: string): Promise<void> => {
  const { home, statusFile, target, note } = options;
  const entry: WrapEntry = {
    id,
    target,
    statusFile,
    holder: await identify(),
    started: new Date().toISOString(),
    state: "starting",
  };
  prepareRegistry(home);
  await writeEntry(home, entry);
  await cancelLeft(ledger, jobNameOf(id), note);
  const { head, events, address, planned, early } = await start(options, body, id);
  const { plan, warnings } = planned;
  for (const warning of warnings) note(warning);
  const isSecure = address.address.startsWith("tls://");
  if (!isSecure && plan.dask["distributed.comm.require-encryption"] === true) {
    head.close();
    while ((await events.next()).done !== true);
    throw new SlipwayError("bad-parameter", {
      key: "security",
      detail: `${target} made a cluster at ${address.address}, which is not encrypted`,
      remedy: "Let it take Dask's configuration: give it no protocol and no security of its own.",
    });
  }
  if (!isSecure) note(OPEN_TO_ALL);
  await updateStatus(statusFile, {
    status: "running",
    reason: undefined,
    problem: undefined,
    address: address.address,
    host: address.host,
    port: address.port,
    dashboard_port: address.dashboard_port,
    pid: process.pid,
    tls: plan.dask["distributed.comm.tls.ca-file"] === undefined ? undefined : tlsNames(plan.dask),
  });
  note(`${address.kind} at ${address.address}, dashboard at port ${address.dashboard_port ?? "none"}`);
  await superviseHead({ ...options, id, head, events, early, address, ledger, plan, entry });
};

/** For the client: Security(tls_ca_file=…, tls_client_cert=…, tls_client_key=…, require_encryption=True). */
const tlsNames = (keys: Planned["plan"]["dask"]): StatusBody => ({
  ca_file: keys["distributed.comm.tls.ca-file"],
  client_cert: keys["distributed.comm.tls.client.cert"],
  client_key: keys["distributed.comm.tls.client.key"],
});

/**
 * Holds a cluster until nobody needs it. Any failing step is told in the status file; a normal end removes the file and
 * leaves no job.
 */
export const hold = async (options: HoldOptions): Promise<void> => {
  const { home, statusFile } = options;
  const tell = async (problem: unknown): Promise<void> => {
    const changes = { status: "failed", reason: messageOf(problem), pid: process.pid };
    // standard error has it too
    await updateStatus(statusFile, changes).catch(() => undefined);
  };
  let body: StatusBody;
  try {
    body = await awaitStatus(statusFile);
  } catch (error) {
    // a file that never came is not made now
    if (!/did not appear/.test((error as Error).message)) await tell(error);
    throw error;
  }
  const id = await wrapId(statusFile);
  const ledger = await claimLedger(statusFile);
  let isNormal = true;
  let areJobsLeft = false;
  try {
    await holdClaimed(options, body, ledger, id);
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
