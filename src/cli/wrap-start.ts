import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { SlipwayError } from "../errors.ts";
import { logPath, prepareRegistry, wrapId } from "../wrap/holder/registry.ts";
import { holderOf } from "../wrap/holder/ledger.ts";
import { NO_RESULTS, peekStatus, realStatusFile, type StatusBody, updateStatus } from "../wrap/holder/status-file.ts";
import { parseAssignment } from "../wrap/plan/assignments.ts";
import { readParameters } from "../wrap/plan/read-parameters.ts";
import type { Context } from "./context.ts";
import type { WrapOptions, WrapTarget } from "./verbs/wrap.ts";

/** Importing Dask from a slow file system takes its time, but not this long. */
const PATIENCE_MS = 180_000;
const WORDS = 2000;

const fileParameters = (file: string): Readonly<Record<string, unknown>> => {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new SlipwayError(
      "no-such-file",
      { where: "--parameters", path: file, detail: (error as Error).message },
      error,
    );
  }
  let body: unknown;
  try {
    body = parse(text);
  } catch (error) {
    throw new SlipwayError("bad-file", { where: file, detail: (error as Error).message.split("\n")[0] }, error);
  }
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new SlipwayError("bad-file", { where: file, detail: "must be a dict of parameters" });
  return body as Record<string, unknown>;
};

/** What is in the status file already, then the file's, then the command line's. */
const parametersOf = (body: StatusBody | undefined, options: WrapOptions): Record<string, unknown> => {
  const before = body?.["parameters"];
  const all: Record<string, unknown> = typeof before === "object" && before !== null ? { ...before } : {};
  if (options.parameters !== undefined) Object.assign(all, fileParameters(options.parameters));
  for (const text of options.parameter ?? []) {
    try {
      const [name, value] = parseAssignment(text);
      all[name] = value;
    } catch (error) {
      if (error instanceof RangeError)
        throw new SlipwayError("usage", { detail: `--parameter ${error.message}` }, error);
      throw error;
    }
  }
  return all;
};

/** Checked against the queue by the wrapper. */
const GIVEN_BY_QUEUES = ["walltime", "cores", "memory", "maximum_jobs"] as const;

const prepareStatus = async ({ statusFile, chosen }: WrapTarget, options: WrapOptions): Promise<void> => {
  const parameters = parametersOf(await peekStatus(statusFile), options);
  // mistakes are told here, before anything is started
  readParameters(parameters, chosen === undefined ? [] : GIVEN_BY_QUEUES);
  await updateStatus(statusFile, { ...NO_RESULTS, parameters });
};

const launch = async (context: Context, what: WrapTarget, options: WrapOptions, log: string): Promise<ChildProcess> => {
  const file = await open(log, "w", 0o600);
  const option = (name: string, value: string | undefined): string[] => (value === undefined ? [] : [name, value]);
  const words = [
    path.join(context.root, "bin", "slipway"),
    "wrap",
    what.target,
    ...option("--home", context.home),
    ...option("--status-file", what.statusFile),
    ...option("--timeout", String(what.timeout)),
    ...option("--port-range", options.portRange),
    ...option("--host", options.host),
    ...option("--python", options.python),
    ...(what.chosen === undefined ? [] : ["--scheduler", options.scheduler]),
    ...option("--interface", options.interface),
    ...option("--stage", options.stage),
    ...option("--clusters", options.clusters),
  ];
  try {
    const child = spawn(process.execPath, words, { detached: true, stdio: ["ignore", file.fd, file.fd] });
    await once(child, "spawn");
    return child;
  } finally {
    await file.close();
  }
};

/** Until the wrapper, ours or one that was faster, says that it runs. */
const untilRunning = async (statusFile: string, child: ChildProcess | undefined, log: string): Promise<StatusBody> => {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    // asked before the file is read: what it wrote last is seen
    const hasEnded = child !== undefined && (child.exitCode !== null || child.signalCode !== null);
    const body = await peekStatus(statusFile);
    const isHeld = (await holderOf(statusFile)) !== undefined;
    if (body?.["status"] === "running" && isHeld) return body;
    if (hasEnded && !isHeld) {
      const words = (await readFile(log, "utf8").catch(() => "")).trimEnd().slice(-WORDS);
      const reason = body?.["status"] === "failed" ? String(body["reason"]) : "it ended without a word";
      throw new SlipwayError("wrap-failed", {
        detail: `the wrapper did not start: ${reason}`,
        remedy: `Its log is ${log}${words === "" ? "." : `:\n${words}`}`,
      });
    }
    if (performance.now() > until)
      throw new SlipwayError("wrap-failed", {
        detail: `the wrapper was not ready within ${PATIENCE_MS / 1000} s`,
        remedy: `It may still come: \`slipway wrap list\`. Its log is ${log}.`,
      });
    await sleep(100);
  }
};

/** Starts a wrapper that outlives this process, or finds the one that runs; prints where the cluster is. */
export const startWrap = async (context: Context, what: WrapTarget, options: WrapOptions): Promise<number> => {
  const statusFile = await realStatusFile(what.statusFile);
  const id = await wrapId(statusFile);
  const log = logPath(context.home, id);
  const isThere = (await holderOf(statusFile)) !== undefined;
  let child: ChildProcess | undefined;
  if (isThere) context.note("a wrapper holds this status file already");
  else {
    prepareRegistry(context.home);
    await prepareStatus(what, options);
    child = await launch(context, what, options, log);
  }
  const body = await untilRunning(statusFile, child, log);
  child?.unref();
  const { parameters: _, ...facts } = body;
  context.answer({ id, statusFile, found: isThere, ...facts }, () => String(body["address"]));
  return 0;
};
