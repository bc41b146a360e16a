import { z } from "zod";
import { runType, slotType } from "../../config/launch-keys.ts";
import type { TextPlan } from "../../config/yaml-document.ts";

/**
 * The shape of a launch as people write it, in a YAML file or in the body of a REST request. Only the shape is checked
 * here; launch-spec.ts checks what the values mean.
 */

const text = z.string({ error: "must be text" });
const anyText = z.union([z.string(), z.number(), z.boolean()], { error: "must be text" }).transform(String);
const whole = z.number({ error: "must be a whole number" }).int({ error: "must be a whole number" });
const flag = z.boolean({ error: "must be true or false" });
const duration = z.union([z.number(), z.string()], { error: "must be a duration such as 90, 10m or 01:30:00" });
const map = { error: "must be a map of keys and values" };
const options = z.array(anyText, { error: "must be a list of options, one entry each" });

export const SlurmInput = z.strictObject(
  { sbatch_args: options.optional(), slots_per_node: whole.optional(), gpu_type: anyText.optional() },
  map,
);

export const PbsInput = z.strictObject({ pbsbatch_args: options.optional(), slots_per_node: whole.optional() }, map);

export const BindInput = z.union(
  [z.string(), z.strictObject({ host_path: text, container_path: text.optional(), read_only: flag.optional() }, map)],
  { error: "must be HOST:CONTAINER, HOST:CONTAINER:ro, or {host_path, container_path, read_only}" },
);

export const FileInput = z.strictObject(
  {
    path: text,
    /** Its text, or its bytes, or where the submitter keeps it (a file or a directory; only in files). */
    content: text.optional(),
    base64: text.optional(),
    from: text.optional(),
    executable: flag.optional(),
  },
  map,
);

export const LaunchInput = z.strictObject(
  {
    name: anyText.optional(),
    type: anyText.optional(),
    cluster: anyText.optional(),
    resource_pool: anyText.optional(),
    slots: whole.optional(),
    /** Determined's name for `slots`. */
    slots_per_trial: whole.optional(),
    slot_type: slotType.schema.optional(),
    slurm: SlurmInput.optional(),
    pbs: PbsInput.optional(),
    user: anyText.optional(),
    project: anyText.optional(),
    workspace: anyText.optional(),
    labels: z.array(anyText, { error: "must be a list of labels" }).optional(),
    image: anyText.optional(),
    container_run_type: runType.schema.optional(),
    command: z.union([z.string(), z.array(anyText)], {
      error: "must be a command: text for the shell, or a list of arguments",
    }),
    env: z
      .union([z.record(z.string(), z.union([anyText, z.null()], { error: "must be text" })), z.array(anyText)], {
        error: "must be a map of names and values, or a list of NAME=VALUE",
      })
      .optional(),
    bind_mounts: z.array(BindInput, { error: "must be a list" }).optional(),
    cwd: text.optional(),
    files: z.array(FileInput, { error: "must be a list of files" }).optional(),
    startup_hook: text.optional(),
    walltime: duration.optional(),
    stream_logs: flag.optional(),
    /** Only in requests: repeating a request with the same uuid gives the same launch. */
    uuid: z.uuid({ error: "must be a UUID" }).optional(),
  },
  { error: "must be a map with the key `command`" },
);

export type LaunchInput = z.infer<typeof LaunchInput>;

const asText: TextPlan = { text: true };
const textList: TextPlan = { text: true, items: asText };

/** Where a file's scalars are text, whatever they look like. */
export const LAUNCH_FILE_PLAN: TextPlan = {
  keys: {
    name: asText,
    type: asText,
    cluster: asText,
    resource_pool: asText,
    slurm: { keys: { sbatch_args: textList, gpu_type: asText } },
    pbs: { keys: { pbsbatch_args: textList } },
    user: asText,
    project: asText,
    workspace: asText,
    labels: textList,
    image: asText,
    command: textList,
    env: { rest: { text: true, nullable: true }, items: asText },
    bind_mounts: { items: { text: true, keys: { host_path: asText, container_path: asText } } },
    cwd: asText,
    files: { items: { keys: { path: asText, content: asText, base64: asText, from: asText } } },
    startup_hook: asText,
  },
};

export const keysAt = (path: readonly (string | number)[]): readonly string[] => {
  if (path[0] === "slurm") return Object.keys(SlurmInput.shape);
  if (path[0] === "pbs") return Object.keys(PbsInput.shape);
  if (path[0] === "bind_mounts") return ["host_path", "container_path", "read_only"];
  if (path[0] === "files") return Object.keys(FileInput.shape);
  return Object.keys(LaunchInput.shape).filter((key) => key !== "uuid");
};

/** What other launchers call it. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  command: ["run", "cmd", "entrypoint", "script", "exec"],
  env: ["environment", "environment_variables", "variables", "vars"],
  resource_pool: ["queue", "partition", "pool"],
  slots: ["gpus", "cpus"],
  cwd: ["work_dir", "workdir", "working_directory", "working_dir", "directory"],
  bind_mounts: ["binds", "mounts", "volumes", "bind"],
  walltime: ["time", "time_limit", "timeout"],
  image: ["container", "container_image"],
  startup_hook: ["startup", "hook", "prologue", "on_startup"],
  stream_logs: ["stream", "log_streaming", "streaming"],
  labels: ["tags", "label"],
  slurm: ["sbatch_args", "gpu_type"],
  pbs: ["pbsbatch_args"],
};

export const keyHint = (key: string, path: readonly (string | number)[]): string | undefined => {
  if (path.length > 0) return undefined;
  if (key === "slots_per_node") return " here; it belongs under `slurm` or `pbs`";
  const word = key.toLowerCase().replaceAll("-", "_");
  if (word !== key && word in LaunchInput.shape) return `; did you mean '${word}'?`;
  const ours = Object.keys(ELSEWHERE).find((name) => ELSEWHERE[name]!.includes(word));
  if (ours === "slurm" || ours === "pbs") return ` here; it belongs under \`${ours}\``;
  return ours === undefined ? undefined : `; did you mean '${ours}'?`;
};
