import type { LaunchSpec } from "./launch-spec.ts";
import type { LaunchDialect } from "../../managers/launch-dialect.ts";
import type { LaunchSettings } from "./settings.ts";

/** The names that the manager and its accounting have for a job. */

/** PBS takes 230 characters; letters, digits and `. - _ +`. */
const LONGEST_NAME = 230;
const LONGEST_PROJECT = 200;

/** `PREFIX_TYPE-NAME-ID-ID`; the two halves of the id keep it unique whatever was cut from the name. */
export const jobNameOf = (settings: LaunchSettings, spec: Pick<LaunchSpec, "type" | "name">, id: string): string => {
  const hex = id.replaceAll("-", "").toLowerCase();
  const half = Math.ceil(hex.length / 2);
  const tail = `-${hex.slice(0, half)}-${hex.slice(half)}`;
  const head = `${settings.jobNamePrefix}_${spec.type}-`;
  const name = spec.name.replaceAll(/[^A-Za-z0-9._+-]+/g, "-").replaceAll(/^-+|-+$/g, "") || "job";
  return head + name.slice(0, Math.max(1, LONGEST_NAME - head.length - tail.length)) + tail;
};

/**
 * Slurm's WCKey, PBS's project: what job_project_source names, with characters that the manager forbids replaced by
 * `_`.
 */
export const projectOf = (
  { notInProjects }: Pick<LaunchDialect, "notInProjects">,
  settings: Pick<LaunchSettings, "projectSource">,
  spec: Pick<LaunchSpec, "project" | "workspace" | "labels">,
): string | undefined => {
  const { projectSource } = settings;
  const text =
    projectSource.from === "label"
      ? spec.labels
          .filter((label) => label.startsWith(projectSource.prefix))
          .map((label) => label.slice(projectSource.prefix.length))
          .filter((label) => label !== "")
          .join("_")
      : spec[projectSource.from];
  if (text === undefined || text.trim() === "") return undefined;
  return text.trim().replaceAll(notInProjects, "_").slice(0, LONGEST_PROJECT);
};
