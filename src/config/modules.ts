import type { Stats } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Manager } from "../managers/manager.ts";
import { importModule } from "../import-module.ts";
import { CONTRACT } from "../managers/contract-version.ts";
import { MANAGERS } from "../managers/managers.ts";
import { managerOfModule, ModuleProblem, type SlipwayModule } from "../managers/module.ts";
import { STARTERS } from "../starters/starters.ts";
import { clusterKeys, isLimitedKey } from "./cluster-keys.ts";
import { BUILT_IN_FORMAT, clustersFormat, type ClustersFormat } from "./clusters-schema.ts";
import { directory } from "./key-table.ts";
import { badValue, type Source } from "./source.ts";
import type { Starters } from "./starter-keys.ts";
import { readYaml, type YamlDocument } from "./yaml-document.ts";

/**
 * Managers and starters from outside. A module runs with all the rights of whoever reads the file that names it: so it is
 * named by the home's own files or by `--clusters` only, never by a project's files or a file beside a run, and nobody
 * but its user and root may be able to change it.
 */

export interface ClustersText {
  readonly path: string;
  readonly text: string;
  /** It was found beside a run's file, not named: its modules would be strangers' code. */
  readonly isFound: boolean;
}

const OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/** Why others could make it something else; undefined: they cannot. */
const pathFault = async (path: string, uid: number): Promise<{ detail: string; remedy: string } | undefined> => {
  const ours = ({ uid: owner }: Stats): boolean => owner === uid || owner === 0;
  const real = await realpath(path);
  if (real !== path)
    return { detail: `${path} leads through a symbolic link`, remedy: `Name it by its real path: ${real}` };
  const facts = await lstat(path);
  if (!facts.isFile()) return { detail: `${path} is not a file`, remedy: "Name the module's file." };
  if (!ours(facts))
    return {
      detail: `${path} belongs to user ${facts.uid}, not to you or root`,
      remedy: "Make your own copy, read it, and name that.",
    };
  if ((facts.mode & OTHERS_WRITE) !== 0)
    return { detail: `${path} is writable by others`, remedy: `chmod go-w ${path}` };
  for (let at = dirname(path); ; at = dirname(at)) {
    const parent = await lstat(at);
    if (!ours(parent))
      return {
        detail: `${at} belongs to user ${parent.uid}, who could put another module in its place`,
        remedy: "Move it to a directory whose parents are yours or root's.",
      };
    if ((parent.mode & OTHERS_WRITE) !== 0 && (parent.mode & STICKY) === 0)
      return {
        detail: `${at} is writable by others, who could put another module in its place`,
        remedy: `chmod go-w ${at}, or move it elsewhere.`,
      };
    if (at === "/") return undefined;
  }
};

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500);

const load = async (source: Source, at: readonly (string | number)[], path: string): Promise<SlipwayModule> => {
  const refuse = (detail: string, remedy: string): never => badValue(source, at, detail, remedy);
  try {
    const fault = await pathFault(path, process.getuid?.() ?? 0);
    if (fault !== undefined) refuse(fault.detail, fault.remedy);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || code === "bad-value") throw error;
    refuse(code === "ENOENT" ? `there is no file ${path}` : reason(error), "Correct the path, or remove it.");
  }
  let loaded: { readonly default?: SlipwayModule };
  try {
    loaded = (await importModule(pathToFileURL(path).href)) as typeof loaded;
  } catch (error) {
    return refuse(`${path} cannot be loaded: ${reason(error)}`, "Correct the module, or remove it.");
  }
  const module = loaded.default;
  if (typeof module !== "object" || module === null)
    return refuse(`${path} has no default export`, "Write export default { contract: 1, managers: { … } }.");
  if (module.contract !== CONTRACT)
    return refuse(
      `${path} says contract ${JSON.stringify(module.contract) ?? "nothing"}; this Slipway knows ${CONTRACT}`,
      "Use a version of the module for this contract.",
    );
  return module;
};

const TYPE = /^[a-z][a-z0-9-]{0,63}$/;

/** Adds what a module brings; throws a ModuleProblem. */
const add = (module: SlipwayModule, managers: Record<string, Manager>, starters: Record<string, Starters[string]>) => {
  const fresh = (what: string, name: string, known: object): void => {
    if (!TYPE.test(name))
      throw new ModuleProblem(
        `"${name}" cannot be the name of a ${what}`,
        "Use lower-case letters, digits and dashes.",
      );
    if (Object.hasOwn(known, name))
      throw new ModuleProblem(`there is already a ${what} ${name}`, "Give it another name.");
  };
  for (const [name, starter] of Object.entries(module.starters ?? {})) {
    fresh("starter", name, { ...STARTERS, ...starters });
    if (typeof starter !== "function")
      throw new ModuleProblem(`starter ${name} is not a function`, "docs/adding-a-manager.md shows one.");
    starters[name] = starter;
  }
  for (const [type, given] of Object.entries(module.managers ?? {})) {
    fresh("manager", type, managers);
    const manager = managerOfModule(type, given, starters);
    const known = clusterKeys(managers);
    for (const key of [...Object.keys(manager.keys), ...Object.keys(manager.clusterKeys ?? {})])
      if (Object.hasOwn(known.queue, key) || Object.hasOwn(known.cluster, key))
        throw new ModuleProblem(`manager ${type}: there is already a key ${key}`, "Give it another name.");
    const strange = manager.understands.find((key) => !isLimitedKey(key));
    if (strange !== undefined)
      throw new ModuleProblem(
        `manager ${type}: understands names ${strange}`,
        "Name only keys that not every manager has.",
      );
    const several = manager.batch!.starter;
    if (!Object.hasOwn({ ...STARTERS, ...starters }, several))
      throw new ModuleProblem(`manager ${type}: there is no starter ${several}`, "Name one, or bring it.");
    managers[type] = manager;
  }
};

const modulesOf = (yaml: YamlDocument): readonly string[] => {
  const { modules } = (yaml.value ?? {}) as { readonly modules?: unknown };
  if (modules === undefined || modules === null) return [];
  if (!Array.isArray(modules) || modules.some((path) => typeof path !== "string"))
    return badValue(yaml, ["modules"], "must be a list of paths", "Write modules: [/path/of/module.mjs].");
  return modules.map((path, i) => directory().read(path as never, yaml, ["modules", i]));
};

/** How these files are read: with what comes with Slipway, and with what the modules bring that they name. */
export const formatOf = async (files: readonly ClustersText[]): Promise<ClustersFormat> => {
  const managers: Record<string, Manager> = { ...MANAGERS };
  const starters: Record<string, Starters[string]> = {};
  const loaded = new Set<string>();
  for (const { path: file, text, isFound } of files) {
    if (!text.includes("modules")) continue;
    const yaml = readYaml(text, file, { keys: { modules: { items: { text: true } } } });
    for (const [i, path] of modulesOf(yaml).entries()) {
      const at = ["modules", i];
      if (isFound)
        badValue(
          yaml,
          ["modules"],
          "is not read from a file beside a run: whoever wrote it could run code as you",
          "Read the module; then name it in the clusters.yaml of your home, or name this file with --clusters.",
        );
      if (loaded.has(path)) continue;
      loaded.add(path);
      const module = await load(yaml, at, path);
      try {
        add(module, managers, starters);
      } catch (error) {
        if (!(error instanceof ModuleProblem)) throw error;
        badValue(yaml, at, `${path}: ${error.message}`, error.remedy);
      }
    }
  }
  return loaded.size === 0 ? BUILT_IN_FORMAT : clustersFormat(clusterKeys(managers, starters));
};
