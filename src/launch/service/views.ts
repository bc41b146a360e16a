import type { LaunchView } from "../../api/launch-schemas.ts";
import { type Launch, isFinalLaunch } from "../../core/launch.ts";
import { isoTime } from "../../views/views.ts";

const some = (text: string): string | null => (text === "" ? null : text);

export const launchView = (launch: Launch, own: string, output: LaunchView["output"]): LaunchView => ({
  id: launch.id,
  name: launch.about.name,
  type: launch.about.type,
  state: launch.state,
  cluster: launch.cluster,
  user: launch.user === "" ? own : launch.user,
  jobName: launch.jobName,
  nativeId: some(launch.nativeId),
  managerState: some(launch.raw),
  reason: some(launch.reason),
  exitCode: launch.exitCode,
  signal: launch.signal,
  hosts: [...launch.hosts],
  pool: launch.about.pool,
  slots: launch.about.slots,
  nodes: launch.about.nodes,
  image: some(launch.about.image),
  command: [...launch.about.command],
  notes: [...(launch.about.notes ?? [])],
  directory: launch.cleaned > 0 ? null : launch.directory,
  submitted: isoTime(launch.requested),
  started: isoTime(launch.started),
  finished: isoTime(launch.ended),
  errorLog: some(launch.excerpt),
  cancelledBy: some(launch.cancelBy),
  output: { ...output, live: output.live && !isFinalLaunch(launch.state) },
});
