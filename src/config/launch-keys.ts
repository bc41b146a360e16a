import { z } from "zod";
import { directory, flag, name, oneOf, pickKeys, seconds, type Kind, type Values } from "./key-table.ts";
import { badValue } from "./source.ts";
import { checkName } from "./text-rules.ts";

/**
 * The keys of a cluster that concern `slipway launch`, under the names that administrators of such launchers know. Here
 * they are read; src/launch/plan/settings.ts gives what was not written its default.
 */

export const SLOT_TYPES = ["cuda", "rocm", "cpu"] as const;
export type SlotType = (typeof SLOT_TYPES)[number];

export const RUN_TYPES = ["apptainer", "singularity", "podman", "enroot", "charliecloud", "none"] as const;
/** What runs the image on each node; `none`: the node itself. */
export type RunType = (typeof RUN_TYPES)[number];

export const slotType = oneOf(...SLOT_TYPES);
export const runType = oneOf(...RUN_TYPES);

/** Where the label of a job in the manager's accounts comes from. */
export type ProjectSource =
  | { readonly from: "project" | "workspace" }
  | { readonly from: "label"; readonly prefix: string };

const projectSource: Kind<ProjectSource> = {
  ...name,
  read: (value: string, source, at) => {
    const [from, ...rest] = checkName(source, at, value).split(":");
    if (from === "label") return { from, prefix: rest.join(":") };
    if ((from === "project" || from === "workspace") && rest.length === 0) return { from };
    return badValue(source, at, "must be project, workspace, label or label:PREFIX");
  },
};

/** A user, %group, #uid or ALL, excluded by a `!` before it: what sudoers takes, and nothing that could end its line. */
const RUN_AS = /^!?(?:%?[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?|%?#\d{1,10})$/;

const text = z.string({ error: "must be text" });

const authorized: Kind<readonly string[]> = {
  schema: z.union([text, z.array(text)], { error: "must be a list of users" }),
  plan: { text: true, items: { text: true } },
  read: (value: string | readonly string[], source, at) => {
    const users = [value]
      .flat()
      .flatMap((part) => part.split(","))
      .map((user) => user.trim())
      .filter((user) => user !== "");
    for (const user of users) {
      if (!RUN_AS.test(user)) {
        badValue(source, at, `'${user.slice(0, 60)}' is not a user`, "List users, %groups or ALL; !NAME excludes one.");
      }
    }
    return users;
  },
};

export interface PartitionOverride {
  readonly slotType?: SlotType;
}

const map = { error: "must be a map of keys and values" };
export const OVERRIDE_KEYS = ["slot_type"];

const overrides: Kind<Readonly<Record<string, PartitionOverride>>> = {
  schema: z.record(z.string(), z.strictObject({ slot_type: slotType.schema.optional() }, map), map),
  read: (value: Readonly<Record<string, { slot_type?: SlotType }>>) =>
    Object.fromEntries(
      Object.entries(value).map(([partition, { slot_type }]) => [
        partition,
        slot_type === undefined ? {} : { slotType: slot_type },
      ]),
    ),
};

export const LAUNCH_KEYS = {
  slot_type: slotType,
  tres_supported: flag,
  gres_supported: flag,
  default_aux_resource_pool: name,
  default_compute_resource_pool: name,
  partition_overrides: overrides,
  job_project_source: projectSource,
  job_storage_root: directory(),
  job_retention: seconds,
  container_run_type: runType,
  image_root: directory(),
  apptainer_image_root: directory(),
  singularity_image_root: directory(),
  sudo_authorized: authorized,
} as const;

/** Keys of queues that apply to launches also when the cluster itself has them. */
interface SharedKeys {
  readonly jobNamePrefix?: string;
  /** For launches into a partition that no queue names. */
  readonly prologue?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const SHARED = ["jobNamePrefix", "prologue", "environment"] as const satisfies readonly (keyof SharedKeys)[];

/** What was written, by the names of the file. */
export type LaunchKeys = Values<typeof LAUNCH_KEYS> & SharedKeys;

export const launchKeys = (
  own: Readonly<Record<string, unknown>>,
  shared: Readonly<Record<string, unknown>>,
): LaunchKeys => ({
  ...pickKeys(LAUNCH_KEYS, own),
  ...(Object.fromEntries(
    SHARED.filter((key) => shared[key] !== undefined).map((key) => [key, shared[key]]),
  ) as SharedKeys),
});
