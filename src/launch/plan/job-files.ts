import type { RunType, SlotType } from "../../config/launch-keys.ts";
import { imageFor } from "../../containers/preflight.ts";
import { RUNTIMES } from "../../containers/registry.ts";
import type { ContainerScript } from "../../containers/runtime.ts";
import { MANAGERS } from "../../managers/managers.ts";
import { environmentScript, splitEnvironment } from "./environment-script.ts";
import type { PlanInput, PlannedFile } from "./plan.ts";
import { enterScript, HOST_PREFIXES, rankScript } from "./rank-scripts.ts";

/**
 * What is written to a job's directory: the scripts around its command, its environment, and the files its submitter
 * staged.
 */

export interface PlannedContainer {
  readonly runType: RunType;
  /** The image it runs from; absent without a container. */
  readonly image?: string;
  readonly script: ContainerScript;
  readonly notes: readonly string[];
}

export const containerFor = (input: PlanInput, slotType: SlotType): PlannedContainer => {
  const { spec, settings, facts } = input;
  const wanted = spec.image === undefined ? "none" : (spec.runType ?? settings.runType);
  const image = wanted === "none" ? undefined : spec.image;
  const runType = image === undefined ? "none" : wanted;
  const found =
    image === undefined ? undefined : imageFor(runType, image, settings.imageRoot, facts.container?.images ?? []);
  const script = RUNTIMES[runType]({
    image: found?.image ?? "",
    binds: spec.binds,
    slotType: spec.slots === 0 ? "cpu" : slotType,
    inherit: spec.inherit,
    name: `slipway-${input.id}`,
    version: facts.container?.version,
  });
  if (found === undefined) return { runType, script, notes: script.notes };
  const isLeftToNodes = !found.prepared && runType !== "podman";
  const note = `no prepared image was found for ${image}: each node resolves ${found.image} itself`;
  return { runType, image: found.image, script, notes: isLeftToNodes ? [...script.notes, note] : script.notes };
};

const text = (path: string, content: string, mode: number): PlannedFile => ({ path, content, encoding: "utf8", mode });

export interface JobFilesInput {
  readonly jobName: string;
  readonly container: PlannedContainer;
  /** The batch script. */
  readonly script: string;
}

export const jobFiles = (input: PlanInput, { jobName, container, script }: JobFilesInput): PlannedFile[] => {
  const { spec, facts, directory } = input;
  const { streamer = [], streamerEnv = {} } = spec.streamLogs ? input : {};
  const hostEnv = Object.fromEntries(
    Object.entries(spec.env).filter(([name]) => HOST_PREFIXES.some((prefix) => name.startsWith(prefix))),
  );
  const hasHostEnv = Object.keys(hostEnv).length > 0;
  const hasStreamEnv = Object.keys(streamerEnv).length > 0;
  const rank = rankScript({
    dialect: MANAGERS[facts.manager].launch.rank,
    jobName,
    directory,
    container: container.script,
    hasContainer: container.image !== undefined,
    streamer,
    hasHostEnv,
    hasStreamEnv,
  });
  const { plain, special } = splitEnvironment(spec.env);
  const enter = enterScript({
    command: spec.command,
    special,
    cwd: spec.cwd,
    hasHook: spec.startupHook !== undefined,
    hidden: streamer.length === 0 ? [] : [...Object.keys(streamerEnv), "SLIPWAY_STREAM_RANK"],
  });
  return [
    text("job.sh", script, 0o755),
    text("rank.sh", rank, 0o755),
    text("enter.sh", enter, 0o755),
    text("environment.sh", environmentScript(plain), 0o600),
    ...(hasHostEnv ? [text("host-environment.sh", environmentScript(hostEnv), 0o600)] : []),
    ...(hasStreamEnv ? [text("stream.sh", environmentScript(streamerEnv), 0o600)] : []),
    ...(spec.startupHook === undefined ? [] : [text("startup-hook.sh", spec.startupHook, 0o755)]),
    ...spec.files.map(({ path, content, encoding, executable }): PlannedFile => ({
      path: `files/${path}`,
      content,
      encoding,
      mode: executable ? 0o755 : 0o644,
    })),
  ];
};

/** Parents before children. */
export const directoriesOf = (files: readonly PlannedFile[]): string[] => {
  const all = new Set(["files", "ranks"]);
  for (const { path } of files) {
    const parts = path.split("/").slice(0, -1);
    for (let depth = 1; depth <= parts.length; depth++) all.add(parts.slice(0, depth).join("/"));
  }
  return [...all];
};
