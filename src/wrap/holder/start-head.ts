import { SlipwayError } from "../../errors.ts";
import { type DaskHeadOptions, startDaskHead } from "../heads/dask.ts";
import type { Head, HeadAddress, HeadEvent, HeadProcess } from "../head.ts";
import { planOf, type Planned } from "../plan/plan.ts";
import { findPython } from "./find-python.ts";
import { pickPorts } from "./free-ports.ts";
import type { HoldOptions } from "./hold.ts";
import type { Ledger, LedgerJob } from "./ledger.ts";
import { managerOf } from "./managers.ts";
import { jobNameOf } from "./registry.ts";
import type { StatusBody } from "./status-file.ts";
import { endWithJobs } from "./supervise.ts";
import { makeTlsFiles } from "./tls-files.ts";

export const PORT_TRIES = 3;
/** Importing Dask from a slow file system takes its time; what hangs is given up. */
const START_MS = 600_000;
const CLOSING_MS = 30_000;

/** Somebody asked for the end before the cluster stood: a normal end. */
export class Stopped extends Error {}

/** A head that has not said yet whether its cluster stands, or one that must go. */
interface Starting {
  readonly head: Head;
  readonly events: AsyncIterator<HeadEvent>;
  /** What it said of jobs so far. */
  readonly early: HeadEvent[];
}

/** The first event that is not about a job decides. Jobs are written down as they come. */
export const firstWord = async (
  { head, events, early }: Omit<Starting, "head"> & { readonly head: HeadProcess },
  { stop, patienceMs = START_MS }: HoldOptions,
  ledger: Ledger,
): Promise<HeadEvent | "late" | undefined> => {
  let isLate = false;
  let closing: NodeJS.Timeout | undefined;
  const late = setTimeout(() => {
    isLate = true;
    head.kill();
  }, patienceMs);
  // whatever hangs in an import does not hear it
  const onStop = (): void => {
    closing = setTimeout(() => head.kill(), CLOSING_MS);
    head.close();
  };
  stop.addEventListener("abort", onStop, { once: true });
  try {
    for (;;) {
      const { value, done } = await events.next();
      if (done === true) return isLate ? "late" : undefined;
      if (value.event === "ready" || value.event === "failed") return value;
      early.push(value);
      if (value.event === "job") await ledger.write(value.manager, jobsIn(early)).catch(() => undefined);
    }
  } finally {
    stop.removeEventListener("abort", onStop);
    clearTimeout(late);
    clearTimeout(closing);
  }
};

const jobsIn = (events: readonly HeadEvent[]): LedgerJob[] =>
  events.flatMap((each) => (each.event === "job" ? [{ id: each.id, cancel: each.cancel }] : []));

/** Ends a head before anybody supervised it, and the jobs that it has submitted. */
export const endEarly = async ({ head, events, early }: Starting, jobName: string): Promise<void> => {
  const timer = setTimeout(() => head.kill(), CLOSING_MS);
  head.close();
  const all = [...early];
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) break;
    all.push(value);
  }
  clearTimeout(timer);
  const manager = managerOf(all.find((each) => each.event === "job")?.manager ?? null);
  await endWithJobs({ manager, jobs: jobsIn(all), jobName, lookTwice: true });
};

export const failure = (word: HeadEvent | "late" | undefined, { patienceMs = START_MS }: HoldOptions): SlipwayError => {
  if (word === "late")
    return new SlipwayError("wrap-failed", {
      detail: `the cluster was not up within ${patienceMs / 1000} s: its module, or Dask itself, hangs`,
      remedy: "Try the import in this Python by hand.",
    });
  return word?.event === "failed"
    ? new SlipwayError("wrap-failed", { detail: word.detail, remedy: word.remedy })
    : new SlipwayError("wrap-failed", {
        detail: "the Python process ended before the cluster was up",
        remedy: "Its output above, or in the log, says more.",
      });
};

export interface Started extends Starting {
  readonly address: HeadAddress;
  readonly planned: Planned;
}

/** Plan and head; a port that was taken between the choice and its use is another's, and others are chosen. */
export const startHead = async (
  options: HoldOptions,
  body: StatusBody,
  id: string,
  ledger: Ledger,
): Promise<Started> => {
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
      note: options.note,
    };
    if (options.stop.aborted) throw new Stopped();
    const head = await startDaskHead(shim);
    options.kill.addEventListener("abort", () => head.kill(), { once: true });
    const starting: Starting = { head, events: head.events[Symbol.asyncIterator](), early: [] };
    const word = await firstWord(starting, options, ledger);
    if (word !== "late" && word?.event === "ready") return { ...starting, address: word, planned };
    await endEarly(starting, jobNameOf(id));
    if (options.stop.aborted) throw new Stopped();
    if (word === "late" || word?.event !== "failed" || word.step !== "port" || tried === PORT_TRIES)
      throw failure(word, options);
  }
};
