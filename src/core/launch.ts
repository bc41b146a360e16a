import type { LaunchChanged, LaunchRemoved, LaunchRequested } from "./events.ts";
import { advanceLaunch } from "./moves.ts";
import type { Apply } from "./state.ts";
import { type LaunchState, isFinalLaunch } from "./states.ts";
import type { LaunchId } from "./ids.ts";

export { LAUNCH_STATES, type LaunchState, isFinalLaunch, mayAdvanceLaunch } from "./states.ts";

/**
 * A launch: one batch job handed straight to a workload manager, with its directory, its logs and its outcome. What the
 * manager itself says about it is kept beside its state.
 */

/** What people want to know about a launch without reading its script. */
export interface LaunchAbout {
  readonly name: string;
  /** `exp`, `cmd`, `gc` or any short word. */
  readonly type: string;
  readonly pool: string;
  readonly slots: number;
  readonly nodes: number;
  readonly image: string;
  readonly command: readonly string[];
  /** What was rounded, replaced or assumed. */
  readonly notes: readonly string[];
}

/** Where a launch's files are, absolute, and the options its script is submitted with. */
export interface LaunchFiles {
  readonly script: string;
  readonly options: readonly string[];
  readonly stdout: string;
  readonly stderr: string;
  /** Written last by the script: its exit status. */
  readonly exitCode: string;
  /** Written first by the script: the manager's id of the job. */
  readonly nativeId: string;
}

export interface Launch {
  readonly id: LaunchId;
  readonly uuid: string;
  readonly cluster: string;
  /** The user it runs as; empty: the server's own user. */
  readonly user: string;
  /** Unique: finds the job again when the manager's answer was lost. */
  readonly jobName: string;
  readonly directory: string;
  readonly files: LaunchFiles;
  /** SHA-256 of the token that its log stream presents. */
  readonly tokenHash: string;
  readonly about: LaunchAbout;
  readonly requested: number;
  state: LaunchState;
  nativeId: string;
  /** The manager's own word for its state, and its own reason. */
  raw: string;
  reason: string;
  exitCode: number | null;
  signal: number | null;
  hosts: readonly string[];
  /** The informative part of its error log, if it did not succeed. */
  excerpt: string;
  started: number;
  ended: number;
  /** When someone asked for its end, and who; 0 and empty until then. */
  cancelAsked: number;
  cancelBy: string;
  /** When its directory was removed. */
  cleaned: number;
}

export const applyLaunchRequested: Apply<LaunchRequested> = (state, event) => {
  if (state.launches.has(event.launch)) return;
  state.nextLaunch = Math.max(state.nextLaunch, event.launch + 1);
  state.launchByUuid.set(event.uuid, event.launch);
  state.launches.set(event.launch, {
    id: event.launch,
    uuid: event.uuid,
    cluster: event.cluster,
    user: event.user,
    jobName: event.jobName,
    directory: event.directory,
    files: event.files,
    tokenHash: event.tokenHash,
    about: event.about,
    requested: event.at,
    state: "pending",
    nativeId: "",
    raw: "",
    reason: "",
    exitCode: null,
    signal: null,
    hosts: [],
    excerpt: "",
    started: 0,
    ended: 0,
    cancelAsked: 0,
    cancelBy: "",
    cleaned: 0,
  });
};

/** Facts are kept whenever they come; a state counts only if it moves the launch forward. */
export const applyLaunchChanged: Apply<LaunchChanged> = (state, event) => {
  const launch = state.launches.get(event.launch);
  if (launch === undefined) return;
  if (event.cancelBy !== undefined && launch.cancelAsked === 0) {
    launch.cancelAsked = event.at;
    launch.cancelBy = event.cancelBy;
  }
  if (event.cleaned === true && launch.cleaned === 0) launch.cleaned = event.at;
  if (event.excerpt !== undefined) launch.excerpt = event.excerpt;
  // an answer from the manager after the end says nothing new
  if (isFinalLaunch(launch.state)) return;
  if (event.nativeId !== undefined) launch.nativeId = event.nativeId;
  if (event.raw !== undefined) launch.raw = event.raw;
  if (event.reason !== undefined) launch.reason = event.reason;
  if (event.hosts !== undefined) launch.hosts = event.hosts;
  if (event.exitCode !== undefined) launch.exitCode = event.exitCode;
  if (event.signal !== undefined) launch.signal = event.signal;
  if (event.state === undefined || !advanceLaunch(launch, event.state)) return;
  if (event.state === "running") launch.started = event.at;
  if (isFinalLaunch(event.state)) launch.ended = event.at;
};

export const applyLaunchRemoved: Apply<LaunchRemoved> = (state, event) => {
  const launch = state.launches.get(event.launch);
  if (launch === undefined) return;
  state.launches.delete(event.launch);
  state.launchByUuid.delete(launch.uuid);
};
