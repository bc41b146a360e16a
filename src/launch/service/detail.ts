import { open } from "node:fs/promises";
import { type JobDetail, MOST_TEXT } from "../../api/job-details.ts";
import type { LaunchView } from "../../api/launch-schemas.ts";
import { type Launch, isFinalLaunch } from "../../core/launch.ts";
import { staysOf } from "../../views/stays.ts";
import { waitingReason } from "../../managers/waiting-reason.ts";
import type { Manager } from "../../managers/manager.ts";
import { MANAGERS } from "../../managers/managers.ts";

/** A launch with all that is known of it. */

/** A log that is longer is not read for its end: `launches/{launch}/logs` has it. */
const MOST_LOG = 1024 * 1024;
const TAIL = 4096;

const readScript = async ({ files, cleaned }: Launch): Promise<string | null> => {
  if (cleaned > 0) return null;
  try {
    const file = await open(files.script, "r");
    try {
      const buffer = Buffer.alloc(MOST_TEXT);
      const { bytesRead } = await file.read(buffer, 0, MOST_TEXT, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch {
    // another user's, or gone
    return null;
  }
};

const tailOf = async (source: AsyncIterable<Uint8Array>): Promise<string> => {
  let tail = Buffer.alloc(0);
  for await (const piece of source) tail = Buffer.concat([tail, piece]).subarray(-TAIL);
  return tail.toString("utf8").trimEnd();
};

const outputOf = async (
  { output, errorLog }: LaunchView,
  read: (stream: "stdout" | "stderr") => AsyncIterable<Uint8Array>,
): Promise<string | null> => {
  if (errorLog !== null) return errorLog;
  if (output.stdout === 0 || output.stdout > MOST_LOG) return null;
  return (await tailOf(read("stdout")).catch(() => "")) || null;
};

/** What its manager's reason means, in whichever manager's words it is. */
const saysOf = ({ state, managerState, reason }: LaunchView): JobDetail["says"] => {
  if (state !== "pending" || (managerState === null && reason === null))
    return { words: null, plain: null, remedy: null };
  const rows = Object.values<Manager>(MANAGERS).flatMap(({ batch }) => batch?.waiting ?? []);
  const known = waitingReason(rows, reason ?? managerState ?? "");
  const words = [managerState, reason === null ? null : `(${reason})`].filter((each) => each !== null).join(" ");
  return { words, plain: known?.meaning ?? null, remedy: known?.remedy ?? null };
};

export const launchDetail = async (
  launch: Launch,
  view: LaunchView,
  now: number,
  read: (stream: "stdout" | "stderr") => AsyncIterable<Uint8Array>,
): Promise<JobDetail> => {
  const isOver = isFinalLaunch(launch.state);
  const came = [
    ["pending", launch.requested] as const,
    ...(launch.started > 0 ? [["running", launch.started] as const] : []),
    ...(isOver && launch.ended > 0 ? [[launch.state, launch.ended] as const] : []),
  ];
  return {
    kind: "launch",
    id: String(launch.id),
    name: view.name,
    state: view.state,
    cluster: view.cluster,
    queue: null,
    nativeId: view.nativeId,
    reason: view.reason,
    submitted: view.submitted,
    started: view.started,
    finished: view.finished,
    hosts: view.hosts,
    exitCode: view.exitCode,
    command: view.command,
    spec: {
      type: view.type,
      pool: view.pool,
      slots: view.slots,
      nodes: view.nodes,
      image: view.image,
      notes: view.notes,
    },
    ranks: view.hosts.map((host) => ({ host, ranks: 1 })),
    directory: view.directory,
    jobName: view.jobName,
    history: staysOf(came, now, isOver),
    script: await readScript(launch),
    says: saysOf(view),
    outputTail: await outputOf(view, read),
    decision: `launched by ${view.user}`,
  };
};
