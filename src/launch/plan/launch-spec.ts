import { basename, dirname, extname, isAbsolute, normalize } from "node:path/posix";
import { SlipwayError } from "../../errors.ts";
import type { RefuseOption } from "../../managers/launch-dialect.ts";
import { type LaunchManager, MANAGERS } from "../../managers/managers.ts";
import { checkShape } from "../../config/check-shape.ts";
import type { RunType, SlotType } from "../../config/launch-keys.ts";
import { badValue, jsonSource, parsed, refuse, type Path, type Source } from "../../config/source.ts";
import { checkName, checkText, MAX_ARGUMENT_BYTES, nameFrom } from "../../config/text-rules.ts";
import { readYaml } from "../../config/yaml-document.ts";
import { parseDuration } from "../../core/quantities.ts";
import { argvOf } from "../../core/spec.ts";
import { keyHint, keysAt, LAUNCH_FILE_PLAN, LaunchInput } from "./launch-schema.ts";

/** One batch job as its submitter describes it, every value checked. It is plain data: JSON carries it unchanged. */
export interface LaunchSpec {
  readonly name: string;
  /** `exp`, `cmd`, `gc` or any short word. */
  readonly type: string;
  readonly cluster?: string;
  readonly resourcePool?: string;
  readonly slots: number;
  readonly slotType?: SlotType;
  readonly slurm: { readonly args: readonly string[]; readonly slotsPerNode?: number; readonly gpuType?: string };
  readonly pbs: { readonly args: readonly string[]; readonly slotsPerNode?: number };
  readonly user?: string;
  readonly project?: string;
  readonly workspace?: string;
  readonly labels: readonly string[];
  /** Absent: no container. */
  readonly image?: string;
  /** Absent: the cluster's. */
  readonly runType?: RunType;
  /** Words, executed as they are; text for the shell has become `/bin/sh -c TEXT`. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Names of variables that the container takes from the job's environment on its node. */
  readonly inherit: readonly string[];
  readonly binds: readonly Bind[];
  /** Where the command starts, inside the container; absent: the rank's own directory with the staged files. */
  readonly cwd?: string;
  readonly files: readonly StagedFile[];
  /** Shell text that is sourced in the container before the command. */
  readonly startupHook?: string;
  /** Seconds. */
  readonly walltime?: number;
  readonly streamLogs: boolean;
}

export interface Bind {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface StagedFile {
  /** Relative to the work directory, without `..`. */
  readonly path: string;
  readonly content: string;
  readonly encoding: "utf8" | "base64";
  readonly executable: boolean;
}

/** A launch as it was written, its shape checked. */
export interface LaunchDocument {
  readonly value: LaunchInput;
  readonly source: Source;
  readonly defaultName: string;
}

/** Reads the text of a launch file. Every problem is a SlipwayError whose `where` is `file:line:column`. */
export const readLaunchFile = (text: string, fileName: string): LaunchDocument => {
  const yaml = readYaml(text, fileName, LAUNCH_FILE_PLAN);
  if (typeof yaml.value !== "object" || yaml.value === null || Array.isArray(yaml.value)) {
    const kind = Array.isArray(yaml.value) ? "a list" : typeof yaml.value === "object" ? "empty" : "plain text";
    throw new SlipwayError("bad-file", {
      where: `${fileName}:1:1`,
      detail: `a launch file is a map with the key \`command\`; this one is ${kind}`,
    });
  }
  const value = checkShape(LaunchInput, yaml.value, yaml, keysAt, keyHint);
  if (value.uuid !== undefined) badValue(yaml, ["uuid"], "belongs to requests, not to files", "Remove it.");
  return { value, source: yaml, defaultName: nameFrom(basename(fileName, extname(fileName)), "job") };
};

/** Reads the body of a request: the same keys as JSON. `where` of a problem is its path, such as `slurm.gpu_type`. */
export const readLaunchBody = (body: unknown): LaunchDocument => {
  const value = checkShape(LaunchInput, body, jsonSource, keysAt, keyHint);
  for (const [i, file] of (value.files ?? []).entries()) {
    if (file.from !== undefined) {
      const remedy = "Send the file itself: content for text, base64 for bytes.";
      badValue(jsonSource, ["files", i, "from"], "the server does not read its clients' files", remedy);
    }
  }
  return { value, source: jsonSource, defaultName: "job" };
};

/** What a submitter's path held: a file is one entry with an empty name, a directory one for each file below it. */
export interface ReadFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly executable: boolean;
}

/** The same document with the contents of its `from` files in it: what the client sends. `read` gets each path. */
export const withFileContents = (
  document: LaunchDocument,
  read: (from: string, at: { readonly source: Source; readonly path: Path }) => readonly ReadFile[],
): LaunchDocument => {
  const { files } = document.value;
  if (files === undefined) return document;
  const inlined = files.flatMap((file, i) => {
    if (file.from === undefined) return [file];
    const at = { source: document.source, path: ["files", i, "from"] };
    if (file.content !== undefined || file.base64 !== undefined) tooManySources(document.source, i);
    return read(file.from, at).map(({ name, bytes, executable }) => ({
      path: name === "" ? file.path : `${file.path}/${name}`,
      base64: Buffer.from(bytes).toString("base64"),
      executable: file.executable ?? executable,
    }));
  });
  return { ...document, value: { ...document.value, files: inlined } };
};

const tooManySources = (source: Source, i: number): never =>
  badValue(source, ["files", i], "needs exactly one of content, base64 and from", "Keep one of them.");

const TYPE = /^[A-Za-z][A-Za-z0-9_]{0,31}$/;
const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$/;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const GPU_TYPE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const MAX_SLOTS = 1_000_000;
/** The system allows about 2 MB for arguments and environment together. */
const MAX_ENV_BYTES = 1_000_000;
const MAX_FILES = 10_000;
const MAX_FILE_NAME = 255;

/** Checks what the values mean. */
export const buildLaunch = ({ value, source, defaultName }: LaunchDocument): LaunchSpec => {
  const whole = (at: Path, given: number, min: number): number =>
    given < min || given > MAX_SLOTS
      ? badValue(source, at, `must be between ${min} and ${MAX_SLOTS}, not ${given}`)
      : given;
  const named = (key: "cluster" | "resource_pool" | "project" | "workspace"): string | undefined =>
    value[key] === undefined ? undefined : checkName(source, [key], value[key]);
  const type = value.type ?? "cmd";
  if (!TYPE.test(type)) badValue(source, ["type"], "must be a short word of letters, digits and _");
  const user = value.user;
  if (user !== undefined && !USER.test(user)) badValue(source, ["user"], "is not a valid user name");
  if (value.slots !== undefined && value.slots_per_trial !== undefined)
    badValue(source, ["slots_per_trial"], "means the same as slots, which is given too", "Keep one of them.");
  const slots =
    value.slots_per_trial === undefined
      ? whole(["slots"], value.slots ?? 1, 0)
      : whole(["slots_per_trial"], value.slots_per_trial, 0);
  const image = value.image === undefined || value.image === "none" ? undefined : value.image;
  if (image !== undefined) {
    checkName(source, ["image"], image);
    if (/\s/.test(image) || image.startsWith("-")) badValue(source, ["image"], "is not a valid image");
  }
  const { env, inherit } = environmentOf(source, value.env);
  const walltime =
    value.walltime === undefined ? undefined : parsed(source, ["walltime"], () => parseDuration(value.walltime!));
  if (walltime === 0) badValue(source, ["walltime"], "must be more than 0");
  const gpuType = value.slurm?.gpu_type;
  if (gpuType !== undefined && !GPU_TYPE.test(gpuType)) {
    badValue(source, ["slurm", "gpu_type"], "must be a type as in gres.conf: letters, digits, _ . and -");
  }
  const perNode = (manager: LaunchManager): { slotsPerNode?: number } => {
    const given = value[manager]?.slots_per_node;
    return given === undefined ? {} : { slotsPerNode: whole([manager, "slots_per_node"], given, 1) };
  };
  const cwd = value.cwd === undefined ? undefined : absolute(source, ["cwd"], value.cwd);
  const optional = {
    cluster: named("cluster"),
    resourcePool: named("resource_pool"),
    slotType: value.slot_type,
    user,
    project: named("project"),
    workspace: named("workspace"),
    image,
    runType: value.container_run_type,
    cwd,
    startupHook: value.startup_hook,
    walltime,
  };
  if (value.startup_hook !== undefined) checkFileText(source, ["startup_hook"], value.startup_hook);
  return {
    ...(Object.fromEntries(Object.entries(optional).filter(([, given]) => given !== undefined)) as Partial<LaunchSpec>),
    name: checkName(source, ["name"], value.name ?? defaultName),
    type,
    slots,
    slurm: {
      args: optionsOf(source, ["slurm", "sbatch_args"], "slurm", value.slurm?.sbatch_args),
      ...perNode("slurm"),
      ...(gpuType === undefined ? {} : { gpuType }),
    },
    pbs: { args: optionsOf(source, ["pbs", "pbsbatch_args"], "pbs", value.pbs?.pbsbatch_args), ...perNode("pbs") },
    labels: (value.labels ?? []).map((label, i) => checkName(source, ["labels", i], label)),
    command: commandOf(source, value.command),
    env,
    inherit,
    binds: (value.bind_mounts ?? []).map((bind, i) => bindOf(source, ["bind_mounts", i], bind)),
    files: filesOf(source, value.files),
    streamLogs: value.stream_logs ?? true,
  };
};

const commandOf = (source: Source, command: string | readonly string[]): readonly string[] => {
  if (typeof command === "string") {
    if (checkText(source, ["command"], command).trim() === "") badValue(source, ["command"], "is empty");
    return argvOf(command);
  }
  if (command.length === 0 || command[0] === "") badValue(source, ["command"], "is empty");
  return command.map((word, i) => checkText(source, ["command", i], word));
};

/** Options become lines of a script: a line break in one would start another line. */
const optionsOf = (
  source: Source,
  path: Path,
  manager: LaunchManager,
  args: readonly string[] = [],
): readonly string[] => {
  const checked = checkedOptions(source, path, args);
  const refuseOption: RefuseOption = ({ entry, option, detail, remedy }) => {
    const at = [...path, entry];
    if (option === undefined) badValue(source, at, detail, remedy);
    refuse("option-refused", source, at, { manager, option, detail, remedy });
  };
  MANAGERS[manager].launch.checkArgs(checked, refuseOption);
  return checked;
};

const checkedOptions = (source: Source, path: Path, args: readonly string[]): readonly string[] =>
  args.map((arg, i) => {
    const at = [...path, i];
    checkText(source, at, arg);
    if (/[\n\r]/.test(arg)) badValue(source, at, "contains a line break", "Write one option per entry of the list.");
    if (arg.trim() === "") badValue(source, at, "is empty", "Remove the entry.");
    return arg.trim();
  });

const environmentOf = (
  source: Source,
  given: LaunchInput["env"] = {},
): { env: Readonly<Record<string, string>>; inherit: readonly string[] } => {
  const entries: [Path, string, string | null][] = Array.isArray(given)
    ? given.map((text, i) => {
        const at = text.indexOf("=");
        // `NAME=` tells launchers to inherit; a map says the same with an empty value, and "" means empty
        const value = at < 0 || at === text.length - 1 ? null : text.slice(at + 1);
        return [["env", i], at < 0 ? text : text.slice(0, at), value];
      })
    : Object.entries(given).map(([name, value]) => [["env", name], name, value]);
  const env = new Map<string, string>();
  const inherit = new Set<string>();
  let size = 0;
  for (const [path, name, value] of entries) {
    if (!ENV_NAME.test(name) || name.length > 200) {
      badValue(source, path, `'${name.slice(0, 60)}' is not a valid variable name`, "Use letters, digits and _.");
    }
    if (value === null) inherit.add(name);
    else {
      checkText(source, path, value);
      const bytes = Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
      if (bytes > MAX_ARGUMENT_BYTES) badValue(source, path, `is longer than ${MAX_ARGUMENT_BYTES} bytes`);
      size += bytes;
      env.set(name, value);
    }
  }
  if (size > MAX_ENV_BYTES) {
    badValue(source, ["env"], `has ${size} bytes; at most ${MAX_ENV_BYTES} reach a program`, "Stage a file instead.");
  }
  return { env: Object.fromEntries(env), inherit: [...inherit].filter((name) => !env.has(name)) };
};

const absolute = (source: Source, at: Path, path: string): string => {
  checkName(source, at, path);
  if (!isAbsolute(path)) badValue(source, at, "must be an absolute path");
  return normalize(path).replace(/(.)\/$/, "$1");
};

type BindInput = NonNullable<LaunchInput["bind_mounts"]>[number];

const bindOf = (source: Source, at: Path, bind: BindInput): Bind => {
  const wrong = (detail: string): never => badValue(source, at, detail, "Write HOST:CONTAINER or HOST:CONTAINER:ro.");
  const { host_path, container_path, read_only } =
    typeof bind === "string" ? (bindText(bind) ?? wrong("is not a pair of paths")) : bind;
  // every runtime separates the parts with : and lists with , so that a path with one cannot be said
  for (const path of [host_path, container_path ?? ""]) if (/[:,]/.test(path)) wrong("contains a path with : or ,");
  return {
    source: absolute(source, at, host_path),
    target: absolute(source, at, container_path ?? host_path),
    readOnly: read_only ?? false,
  };
};

const bindText = (text: string): Exclude<BindInput, string> | undefined => {
  const [host_path, container_path, mode, ...rest] = text.split(":");
  if (rest.length > 0 || (mode !== undefined && mode !== "ro" && mode !== "rw")) return undefined;
  return {
    host_path: host_path!,
    ...(container_path === undefined ? {} : { container_path }),
    read_only: mode === "ro",
  };
};

const checkFileText = (source: Source, at: Path, text: string): void => {
  if (text.includes("\0")) badValue(source, at, "contains a NUL character");
  if (/\p{Surrogate}/u.test(text)) badValue(source, at, "is not valid text (an unpaired surrogate)");
};

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const filesOf = (source: Source, files: LaunchInput["files"] = []): readonly StagedFile[] => {
  if (files.length > MAX_FILES)
    badValue(source, ["files"], `has ${files.length} files; at most ${MAX_FILES} are allowed`);
  const seen = new Set<string>();
  const staged = files.map((file, i): StagedFile => {
    const at = ["files", i, "path"];
    const path = normalize(checkName(source, at, file.path));
    if (isAbsolute(path) || path === "." || path.endsWith("/") || path.split("/").includes("..")) {
      badValue(source, at, "must be a path inside the work directory", "Write it relative, without `..`.");
    }
    if (path.split("/").some((name) => Buffer.byteLength(name) > MAX_FILE_NAME)) {
      badValue(source, at, `has a name of more than ${MAX_FILE_NAME} bytes`, "Shorten it: no file system accepts it.");
    }
    if (seen.has(path)) badValue(source, at, `${path} is staged twice`);
    seen.add(path);
    const given = [file.content, file.base64, file.from].filter((text) => text !== undefined);
    if (given.length !== 1) tooManySources(source, i);
    if (file.from !== undefined) badValue(source, ["files", i, "from"], "was not read");
    if (file.content !== undefined) checkFileText(source, ["files", i, "content"], file.content);
    if (file.base64 !== undefined && !BASE64.test(file.base64))
      badValue(source, ["files", i, "base64"], "is not valid base64");
    return {
      path,
      content: given[0]!,
      encoding: file.base64 === undefined ? "utf8" : "base64",
      executable: file.executable ?? false,
    };
  });
  for (const [i, { path }] of staged.entries()) {
    for (let parent = dirname(path); parent !== "."; parent = dirname(parent))
      if (seen.has(parent)) {
        const remedy = "Rename one of them: what is a file cannot be a directory too.";
        badValue(source, ["files", i, "path"], `${path} would be inside ${parent}, which is staged as a file`, remedy);
      }
  }
  return staged;
};
