import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { SlipwayError } from "../errors.ts";
import type { ClusterKeys } from "./cluster-keys.ts";
import { combineClusters, readClustersFile, type ClustersConfig } from "./clusters-file.ts";
import type { Layer } from "./clusters-layer.ts";
import { loadProject, type ProjectLocation } from "./load-project.ts";
import { type ClustersText, formatOf } from "./modules.ts";
import { refusePage } from "./page-keys.ts";
import { overrideLayers } from "./project-file.ts";
import { decodeUtf8, reasonOf } from "./file-text.ts";
import { badValue, pathText, type Path } from "./source.ts";

/** The layers that declare clusters, from all the places where they are looked for. */

export interface ClustersLocation {
  /** The home: `clusters.yaml` inside it, and the files of `clusters/`. */
  readonly home: string;
  /** `--clusters FILE`; it must exist. */
  readonly explicitPath?: string | undefined;
  /** A clusters.yaml that was found beside a run's file. */
  readonly foundPath?: string | undefined;
  /** The project whose overrides apply. */
  readonly project?: ProjectLocation | undefined;
}

const MOST_FILES = 1000;

const readText = (path: string, required: boolean): string | undefined => {
  try {
    return decodeUtf8(readFileSync(path), path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    if (error instanceof SlipwayError) throw error;
    throw new SlipwayError("no-such-file", { where: "clusters", path, detail: reasonOf(error) }, error);
  }
};

/** The YAML files of the home's `clusters/`, by name; hidden ones and what editors leave are none. */
const filesOf = (directory: string): string[] => {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw new SlipwayError("no-such-file", { where: "clusters", path: directory, detail: reasonOf(error) }, error);
  }
  const files = names.filter((name) => /^[^.].*\.ya?ml$/i.test(name)).sort();
  if (files.length > MOST_FILES)
    throw new SlipwayError("bad-file", {
      where: directory,
      detail: `it holds ${files.length} files; at most ${MOST_FILES} are read`,
    });
  return files.map((name) => join(directory, name));
};

const SETTINGS = {
  default: ["default"],
  keepHistory: ["keep-history"],
  tasksPerRun: ["limits", "tasks-per-run"],
  losses: ["limits", "losses"],
  outputPerTask: ["limits", "output-per-task"],
  outputPerRun: ["limits", "output-per-run"],
  page: ["page"],
} as const satisfies Partial<Record<keyof Layer, Path>>;

/** What the files of a home say once: there is no order between them in which one could win. */
const saysOnce = (layer: Layer): [string, Path][] => [
  ...[...layer.clusters.keys()].map((name): [string, Path] => [`the cluster '${name}'`, ["clusters", name]]),
  ...Object.entries(SETTINGS)
    .filter(([key]) => layer[key as keyof typeof SETTINGS] !== undefined)
    .map(([, path]): [string, Path] => [pathText(path), path]),
];

const refuseTwice = (layers: readonly Layer[]): void => {
  const seen = new Map<string, string>();
  for (const layer of layers)
    for (const [what, path] of saysOnce(layer)) {
      const { where } = layer.source.locate(path, "key");
      const before = seen.get(what);
      if (before !== undefined)
        badValue(
          { locate: (at) => ({ ...layer.source.locate(at), where }) },
          path,
          `${what} is also in ${before}`,
          "Keep it in one of these files.",
        );
      seen.set(what, where);
    }
};

/** The clusters files of a location that are there: the home's own, the one beside a run, the named one. */
interface Texts {
  readonly own: readonly ClustersText[];
  readonly found: readonly ClustersText[];
  readonly named: readonly ClustersText[];
}

const textsOf = ({ home, explicitPath, foundPath }: ClustersLocation): Texts => {
  const named = explicitPath === undefined ? undefined : resolve(explicitPath);
  const found = foundPath === undefined ? undefined : resolve(foundPath);
  const own = [resolve(home, "clusters.yaml"), ...filesOf(resolve(home, "clusters"))];
  const read = (paths: readonly (string | undefined)[], required = false): ClustersText[] =>
    paths.flatMap((path) => {
      const text = path === undefined ? undefined : readText(path, required);
      // the home's own files are trusted, wherever a run's file is
      return text === undefined ? [] : [{ path: path!, text, isFound: path === found && !own.includes(path!) }];
    });
  // a file in two of these places takes the stronger one
  return {
    own: read(own.filter((path) => path !== found && path !== named)),
    found: found === named ? [] : read([found]),
    named: read([named], true).map((text) => ({ ...text, isFound: false })),
  };
};

/** Every file whose change may change the clusters, also those that are not there yet. Never fails. */
export const watchedFiles = ({ home, explicitPath, foundPath, project }: ClustersLocation): string[] => {
  const directory = resolve(home, "clusters");
  let own: string[] = [];
  try {
    own = filesOf(directory);
  } catch {
    // reading the clusters says what is wrong with it
  }
  const named = [foundPath, explicitPath].filter((path) => path !== undefined).map((path) => resolve(path));
  return [resolve(home, "clusters.yaml"), directory, ...own, ...named, ...(project?.files ?? [])];
};

export interface LoadedLayers {
  /** Weakest first. */
  readonly layers: readonly Layer[];
  /** The keys they may hold, with those of managers from outside. */
  readonly keys: ClusterKeys;
}

/**
 * Weakest first: the home's clusters.yaml and clusters/*.yaml, the clusters.yaml beside the run file, the overrides of
 * slipway.yaml and .slipway.yaml, `--clusters FILE`. Modules are never taken from a project's files.
 */
export const loadLayers = async (location: ClustersLocation): Promise<LoadedLayers> => {
  const { own, found, named } = textsOf(location);
  const format = await formatOf([...own, ...found, ...named]);
  const read = (texts: readonly ClustersText[]): Layer[] =>
    texts.map(({ path, text }) => readClustersFile(text, path, format));
  const declared = read(own);
  const beside = read(found);
  for (const [at, { source, page }] of beside.entries())
    if (page !== undefined && found[at]!.isFound) refusePage(source);
  refuseTwice(declared);
  const { project } = location;
  const overrides = project === undefined ? [] : overrideLayers(loadProject(project).levels);
  return { layers: [...declared, ...beside, ...overrides, ...read(named)], keys: format.keys };
};

/** The layers put together, over built-in defaults. */
export const loadClusters = async (location: ClustersLocation): Promise<ClustersConfig> => {
  const { layers, keys } = await loadLayers(location);
  return combineClusters(layers, keys);
};

/** Reads the found and the named file only to report their problems now; the home's modules may bring their types. */
export const checkClustersFiles = async (location: ClustersLocation): Promise<void> => {
  const { own, found, named } = textsOf(location);
  const format = await formatOf([...own, ...found, ...named]);
  for (const { path, text } of [...found, ...named]) readClustersFile(text, path, format);
};
