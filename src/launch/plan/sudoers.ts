import { SlipwayError } from "../../errors.ts";
import type { Manager } from "../../managers/manager.ts";
import { MANAGERS } from "../../managers/managers.ts";
import { isRunasEntry } from "./runas-list.ts";

/**
 * The sudoers file that lets a server without privileges launch in other users' names: it allows the manager's two
 * commands as the listed users, never as root, and the chown that gives job directories to their users and takes them
 * back. It has no wildcard that could match a space or a slash: directories and numbers are spelled character by
 * character.
 */

/** Variables that the manager's commands need and that sudo would drop. */
export const KEPT_VARIABLES: readonly string[] = Object.values<Manager>(MANAGERS).flatMap(
  ({ launch }) => launch?.variables ?? [],
);

export interface SudoersCluster {
  readonly name: string;
  readonly authorized: readonly string[];
  /** Absolute paths of the commands that run in users' names. */
  readonly commands: readonly string[];
  /** Where job directories are; absent: no job runs in another user's name. */
  readonly storageRoot?: string;
}

export interface SudoersInput {
  /** The server's own user. */
  readonly user: string;
  readonly uid: number;
  readonly gid: number;
  /** Absolute path of chown. */
  readonly chown: string;
  readonly clusters: readonly SudoersCluster[];
}

/** Letters in a job directory's name: a UUID without its dashes. */
export const DIRECTORY_NAME = /^[0-9a-f]{32}$/;
const DIRECTORY_PATTERN = "[0-9a-f]".repeat(32);
/** Uids from 1000 up, so that none of the system's own accounts is among them. */
const UID_DIGITS = [4, 5, 6, 7, 8, 9, 10];

const PLAIN_PATH = /^\/[A-Za-z0-9_./@+-]*$/;
const PLAIN_USER = /^[A-Za-z_][A-Za-z0-9_.-]*\$?$/;

const refuse = (key: string, detail: string): never => {
  throw new SlipwayError("bad-value", { where: "clusters.yaml", key, detail, remedy: "Correct it and try again." });
};

const plainPath = (key: string, path: string): string =>
  PLAIN_PATH.test(path) ? path : refuse(key, `'${path}' has characters that have a meaning in sudoers`);

const alias = (cluster: string, suffix: string): string =>
  `SLIPWAY_${cluster.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_${suffix}`;

/** The command that gives a directory to another user; the rules below allow exactly this. */
export const chownWords = (owner: number, group: number, directory: string): readonly string[] => [
  "-Rh",
  `${owner}:${group}`,
  directory,
];

const chownRules = (input: SudoersInput, root: string): string[] => {
  // a colon is escaped, since it has a meaning of its own in sudoers
  const rule = (owner: string): string =>
    `${input.chown} -Rh ${owner}\\:${input.gid} ${root.replace(/\/+$/, "")}/${DIRECTORY_PATTERN}`;
  return [rule(String(input.uid)), ...UID_DIGITS.map((digits) => rule(`[1-9]${"[0-9]".repeat(digits - 1)}`))];
};

export const sudoersText = (input: SudoersInput): string => {
  const { user } = input;
  if (!PLAIN_USER.test(user)) refuse("user", `'${user}' is not a valid user name`);
  const lines = [
    "# Rules for Slipway's launches, written by `slipway sudoers`. Check this file with `visudo -cf FILE`, then install",
    "# it under /etc/sudoers.d with mode 0440. Write it again when clusters.yaml changes.",
    "",
    `Defaults:${user} !requiretty`,
    `Defaults:${user} env_keep += "${KEPT_VARIABLES.join(" ")}"`,
  ];
  const names = new Set<string>();
  for (const cluster of input.clusters) {
    if (cluster.commands.length === 0) continue;
    const [users, commands, directories] = ["USERS", "COMMANDS", "DIRECTORIES"].map((kind) =>
      alias(cluster.name, kind),
    );
    if (names.has(users!)) refuse(`clusters.${cluster.name}`, "its name differs from another's only in punctuation");
    names.add(users!);
    const bad = cluster.authorized.find((entry) => !isRunasEntry(entry));
    if (bad !== undefined) refuse("sudo_authorized", `'${bad}' is not an entry of a Runas_List`);
    lines.push(
      "",
      `# ${cluster.name.replaceAll(/[^ -~]/g, "?")}`,
      `Runas_Alias ${users} = ${[...cluster.authorized, "!root", "!#0"].join(", ")}`,
      `Cmnd_Alias ${commands} = ${cluster.commands.map((path) => plainPath("commands", path)).join(", ")}`,
      `${user} ALL = (${users}) NOPASSWD: ${commands}`,
    );
    if (cluster.storageRoot === undefined) continue;
    const rules = chownRules(input, plainPath("job_storage_root", cluster.storageRoot));
    lines.push(
      `Cmnd_Alias ${directories} = ${rules.join(", \\\n    ")}`,
      `${user} ALL = (root) NOPASSWD: ${directories}`,
    );
  }
  return `${lines.join("\n")}\n`;
};
