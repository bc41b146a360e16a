import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import type { ItemStream, RunDocument as RequestDocument } from "../client/index.ts";
import { buildRun, type BuiltRun } from "../config/build-run.ts";
import type { ClustersConfig } from "../config/clusters-file.ts";
import type { Overrides } from "../config/effective.ts";
import { findProject, type Searcher } from "../config/find-project.ts";
import type { Project } from "../config/load-project.ts";
import { requestBody } from "../config/request-body.ts";
import type { RunDocument } from "../config/run-file.ts";
import { optionsFrom, plainFromCommand } from "../config/command-line.ts";
import { SlipwayError } from "../errors.ts";
import type { Context } from "./context.ts";
import { itemStreams } from "../config/item-files.ts";

/** A run that is ready to be sent: everything that can be checked here was checked. */
export interface Submission {
  readonly document: RequestDocument;
  readonly items: readonly ItemStream[];
  /** Things the user should know although nothing is wrong. */
  readonly warnings: readonly string[];
  /** The clusters file for a server that is started for this run. */
  readonly clusters: string | undefined;
  /** Whether that file was named with --clusters. */
  readonly namesClusters: boolean;
  /** A clusters.yaml beside the run's file. */
  readonly foundClusters: string | undefined;
  /** What the project chose and overrides. */
  readonly project: ProjectUse;
}

/** A project's files and what they override where tasks of this run go. */
export interface ProjectUse extends Project {
  readonly overrides: Overrides;
  /** Clusters that the run's tasks name; undefined: the server's default. */
  readonly goesTo: readonly (string | undefined)[];
}

/** What was typed after the verb. */
export interface Typed {
  readonly args: readonly string[];
  /** Whether `--` stood before the first of them. */
  readonly separated: boolean;
  readonly options: Readonly<Record<string, unknown>>;
  readonly home: string;
  readonly cwd: string;
  readonly env: Readonly<NodeJS.ProcessEnv>;
  /** Whose files are looked for; without, those of a project are not. */
  readonly searcher?: Searcher;
}

const isYaml = (word: string): boolean => /\.ya?ml$/i.test(word);

/** A word is a run's file when it looks like one: *.yaml and *.yml always, *.json where such a file exists. */
export const isRunFile = (word: string, separated: boolean, cwd: string): boolean =>
  !separated && (isYaml(word) || (/\.json$/i.test(word) && existsSync(path.resolve(cwd, word))));

/** Node shows bytes that are not UTF-8 as U+FFFD: a program would receive different bytes from those typed. */
const refuseChangedText = (words: readonly string[]): void => {
  if (!words.some((word) => word.includes("\uFFFD"))) return;
  let raw: Buffer;
  try {
    raw = readFileSync("/proc/self/cmdline");
  } catch {
    // Without /proc there is no way to tell; a U+FFFD that was really typed is fine.
    return;
  }
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(raw);
  } catch (error) {
    throw new SlipwayError("usage", { detail: "an argument is not valid UTF-8 text" }, error);
  }
};

/** `--cwd` of a command can be checked now, unless it depends on the task or on what runs before. */
const checkDirectory = (options: Readonly<Record<string, unknown>>, cwd: string): void => {
  const wanted = options["cwd"];
  if (typeof wanted !== "string" || wanted === "" || /[{}\0]/.test(wanted) || options["after"] !== undefined) return;
  const stats = statSync(path.resolve(cwd, wanted), { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return;
  throw new SlipwayError("bad-value", {
    where: "command line",
    key: "--cwd",
    detail: stats === undefined ? `there is no directory ${wanted}` : `${wanted} is not a directory`,
    remedy: "Relative paths start in the directory where the command was typed.",
  });
};

/** The file named with --clusters, and the one beside the run's file. Read here only to report their problems now. */
const clustersFiles = async (
  beside: string | undefined,
  { options, home, cwd }: Typed,
): Promise<{ named: string | undefined; found: string | undefined }> => {
  const given = options["clusters"];
  const named = typeof given === "string" ? path.resolve(cwd, given) : undefined;
  const found = beside !== undefined && existsSync(beside) ? beside : undefined;
  if (named !== undefined || found !== undefined) {
    const { checkClustersFiles } = await import("../config/load-clusters.ts");
    await checkClustersFiles({ home, explicitPath: named, foundPath: found });
  }
  return { named, found };
};

const readDocument = async ({
  args,
  separated,
  options,
  cwd,
}: Typed): Promise<{ document: RunDocument; file?: string }> => {
  const given = optionsFrom(options);
  const [first] = args;
  if (first === undefined)
    throw new SlipwayError("usage", { detail: "nothing to run: give a file (run.yaml), or a command after --" });
  if (!isRunFile(first, separated, cwd)) {
    checkDirectory(options, cwd);
    const plain = plainFromCommand(args, given);
    if (plain !== undefined) return { document: plain };
    const { runFromCommand } = await import("../config/run-from-command.ts");
    return { document: runFromCommand(args, given) };
  }
  if (args.length > 1)
    throw new SlipwayError("usage", {
      detail: `${first} is a run file and takes no arguments ('${args[1]}'); to execute it, write -- before it`,
    });
  const { loadRunFile } = await import("../config/read-run-file.ts");
  const { withOptions } = await import("../config/run-from-command.ts");
  return { document: withOptions(loadRunFile(first), given), file: path.resolve(cwd, first) };
};

/** The project's files that the working directory belongs to, and what should be said about them. */
const readProject = async ({ options, cwd, searcher }: Typed) => {
  const { files, warnings } = searcher === undefined ? { files: [], warnings: [] } : findProject(cwd, searcher);
  const stage = typeof options["stage"] === "string" ? options["stage"] : undefined;
  // most work has no project, and what reads one is large
  if (files.length === 0 && stage === undefined) return { project: { files, stage, levels: [] }, warnings };
  const { loadProject } = await import("../config/load-project.ts");
  return { project: loadProject({ files, stage }), warnings };
};

/** A run with what its project chose behind its own. */
const withSettings = async (own: RunDocument, { levels }: Project): Promise<RunDocument> => {
  if (levels.length === 0) return own;
  const { settingsOf, withProject } = await import("../config/project-run.ts");
  return withProject(own, settingsOf(levels));
};

/** What a project overrides of its clusters. */
const overridesIn = async ({ levels }: Project): Promise<Overrides> => {
  if (levels.length === 0) return new Map();
  const { overridesOf } = await import("../config/effective.ts");
  const { overrideLayers } = await import("../config/project-file.ts");
  return overridesOf(overrideLayers(levels));
};

/** What was typed as a document, with the project's settings and the clusters files that go with it. */
const readTyped = async (typed: Typed) => {
  refuseChangedText([...typed.args, ...Object.values(typed.options).flat().map(String)]);
  const { document: own, file } = await readDocument(typed);
  const { project, warnings } = await readProject(typed);
  const document = await withSettings(own, project);
  const beside = file === undefined ? undefined : path.join(path.dirname(file), "clusters.yaml");
  return { document, project, warnings, ...(await clustersFiles(beside, typed)) };
};

/** A run that was checked as far as can be without its items, and the clusters it would find here. */
export interface Checked {
  readonly document: RunDocument;
  readonly built: BuiltRun;
  readonly clusters: ClustersConfig;
}

/** Reads what was typed, for looking at it only. */
export const readCheck = async (typed: Typed): Promise<Checked> => {
  const { document, project, named, found } = await readTyped(typed);
  const built = buildRun(document, { cwd: typed.cwd, env: typed.env });
  const { loadClusters } = await import("../config/load-clusters.ts");
  const clusters = await loadClusters({
    home: typed.home,
    explicitPath: named,
    foundPath: found,
    project: { files: project.files, stage: project.stage },
  });
  return { document, built, clusters };
};

/** Reads and checks what was typed. Nothing is sent. */
export const readSubmission = async (typed: Typed): Promise<Submission> => {
  const { document, project, warnings, named, found } = await readTyped(typed);
  const { spec, items, dropped } = buildRun(document, { cwd: typed.cwd, env: typed.env });
  return {
    document: requestBody(document, spec, randomUUID()),
    items: await itemStreams(spec.groups, items),
    warnings: [...warnings, ...dropped.map((name) => `the variable ${name} is not UTF-8 text and is not passed on`)],
    clusters: named ?? found,
    namesClusters: typed.options["clusters"] !== undefined,
    foundClusters: found,
    project: {
      ...project,
      overrides: await overridesIn(project),
      goesTo: [...new Set(spec.groups.map(({ cluster }) => cluster))],
    },
  };
};

/** Says what the user should know before a run is sent: files that were found rather than named have a part in it. */
export const tellOf = ({ note }: Pick<Context, "note">, { warnings, project }: Submission): void => {
  for (const warning of warnings) note(`warning: ${warning}`);
  const stage = project.stage === undefined ? "" : `, stage ${project.stage}`;
  if (project.files.length > 0) note(`with ${project.files.join(" and ")}${stage}`);
};

/** Who looks for a project's files, and how far up. */
export const searcherOf = (env: Readonly<NodeJS.ProcessEnv>): Searcher => ({
  home: env["HOME"] || undefined,
  uid: process.getuid?.() ?? 0,
});

export const currentDirectory = (): string => {
  try {
    return process.cwd();
  } catch (error) {
    throw new SlipwayError("usage", { detail: "the current directory no longer exists" }, error);
  }
};

/** `--` is not among a command's arguments; they are the end of what was typed, so it is the word before them. */
export const isSeparated = (raw: readonly string[], args: readonly string[]): boolean =>
  raw[raw.length - args.length - 1] === "--";

/** The command line of a `run` or `submit` that commander has parsed. */
export const prepareSubmission = (command: Command, home: string): Promise<Submission> =>
  readSubmission(typedOf(command, home));

/** The same for looking at it only. */
export const prepareCheck = (command: Command, home: string): Promise<Checked> => readCheck(typedOf(command, home));

const typedOf = (command: Command, home: string): Typed => {
  const raw = (command.parent as (Command & { readonly rawArgs: readonly string[] }) | null)?.rawArgs ?? [];
  return {
    args: command.args,
    // Options after a file were taken out of the arguments: then it was a file, and not separated.
    separated: isSeparated(raw, command.args),
    options: command.opts(),
    home,
    cwd: currentDirectory(),
    env: process.env,
    searcher: searcherOf(process.env),
  };
};
