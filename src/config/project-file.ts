import { z } from "zod";
import { SlipwayError } from "../errors.ts";
import { BUILT_IN } from "./cluster-keys.ts";
import { readCluster, type Layer } from "./clusters-layer.ts";
import { BUILT_IN_FORMAT, type ClusterInput } from "./clusters-schema.ts";
import { checkShape, type KeysAt } from "./check-shape.ts";
import { FleetInput } from "./fleet-keys.ts";
import { suggest } from "./nearest.ts";
import {
  CLUSTER_LEVEL_KEYS,
  LEVEL_KEYS,
  QUEUE_LEVEL_KEYS,
  refuseUntrusted,
  RUN_SETTINGS,
  TASK_SETTINGS,
} from "./project-keys.ts";
import { DefaultsInput, RUN_PLAN, RunInput } from "./run-schema.ts";
import { badValue, type Path, type Source } from "./source.ts";
import { checkName } from "./text-rules.ts";
import { readYaml, type TextPlan } from "./yaml-document.ts";

/** slipway.yaml and .slipway.yaml: what a project chooses and overrides, in all of it and in stages. */

type Shape = Readonly<Record<string, z.ZodType>>;
type TaskSettings = Pick<DefaultsInput, (typeof TASK_SETTINGS)[number]>;
type RunSettings = Pick<RunInput, (typeof RUN_SETTINGS)[number]>;

/** The top of a file, or a stage. */
export interface LevelInput extends TaskSettings, RunSettings {
  readonly clusters?: Readonly<Record<string, ClusterInput>>;
  readonly stages?: Readonly<Record<string, LevelInput>>;
}

const map = { error: "must be a map of keys and values" };
const pick = (shape: Shape, keys: readonly string[]): Shape =>
  Object.fromEntries(Object.entries(shape).filter(([key]) => keys.includes(key)));

const QueueOverrides = z.strictObject(pick(BUILT_IN_FORMAT.QueueInput.shape, QUEUE_LEVEL_KEYS), map);
const ClusterOverrides = z.strictObject(
  {
    ...pick(BUILT_IN_FORMAT.ClusterInput.shape, CLUSTER_LEVEL_KEYS),
    queues: z.record(z.string(), QueueOverrides, map).optional(),
  },
  map,
);

const Level: z.ZodType = z.strictObject(
  {
    ...pick(DefaultsInput.shape, TASK_SETTINGS),
    ...pick(RunInput.shape, RUN_SETTINGS),
    clusters: z.record(z.string(), ClusterOverrides, map).optional(),
    stages: z
      .record(
        z.string(),
        z.lazy(() => Level),
        map,
      )
      .optional(),
  },
  map,
);

const keysAt: KeysAt = (path) => {
  const inner = path.slice(path.lastIndexOf("stages") + (path.includes("stages") ? 2 : 0));
  if (inner.at(-1) === "fleet") return Object.keys(FleetInput.shape);
  if (inner[0] === "clusters") return inner.length === 2 ? CLUSTER_LEVEL_KEYS : QUEUE_LEVEL_KEYS;
  return LEVEL_KEYS;
};

const MOST_STAGES_DEEP = 16;

/** How its scalars are taken: as in a run's `defaults`, and as in clusters.yaml. */
const planOf = (depth: number): TextPlan => ({
  keys: {
    ...RUN_PLAN.keys!["defaults"]!.keys,
    clusters: BUILT_IN_FORMAT.plan.keys!["clusters"]!,
    ...(depth === 0 ? {} : { stages: { rest: planOf(depth - 1) } }),
  },
});
const PLAN = planOf(MOST_STAGES_DEEP);

export interface ProjectFile {
  readonly file: string;
  readonly source: Source;
  readonly value: LevelInput;
}

const refuseStageNames = (source: Source, path: Path, { stages = {} }: LevelInput): void => {
  for (const [name, stage] of Object.entries(stages)) {
    const at = [...path, "stages", name];
    checkName(source, at, name);
    if (/^-|[.\s]/.test(name))
      badValue(
        source,
        at,
        "a stage's name holds no dots and no blanks, and does not begin with -",
        "Give it another name.",
      );
    if (at.length > 2 * MOST_STAGES_DEEP)
      badValue(source, at, `stages are nested more than ${MOST_STAGES_DEEP} deep`, "Take some of them out.");
    refuseStageNames(source, at, stage);
  }
};

/** Reads the text of a project's file. All of it is checked, also the stages that nobody asked for. */
export const readProjectFile = (text: string, file: string): ProjectFile => {
  const yaml = readYaml(text, file, PLAN);
  refuseUntrusted(yaml, [], yaml.value);
  const value = checkShape(Level, yaml.value ?? {}, yaml, keysAt) as LevelInput;
  refuseStageNames(yaml, [], value);
  checkOverrides({ file, source: yaml, path: [], input: value });
  return { file, source: yaml, value };
};

/** Works out all overrides of a level and its stages, so that what is wrong in them is told. */
const checkOverrides = (level: Level): void => {
  overrideLayers([level]);
  for (const [name, input] of Object.entries(level.input.stages ?? {}))
    checkOverrides({ ...level, path: [...level.path, "stages", name], input });
};

/** The top of one file, or one of its stages. */
export interface Level {
  readonly file: string;
  readonly source: Source;
  /** Where it begins in its file. */
  readonly path: Path;
  readonly input: LevelInput;
}

/** `a`, `a.b`, … */
const stagesOf = ({ stages = {} }: LevelInput): string[] =>
  Object.entries(stages).flatMap(([name, stage]) => [name, ...stagesOf(stage).map((inner) => `${name}.${inner}`)]);

const levelsOf = (files: readonly ProjectFile[], stage: string): Level[] =>
  files.flatMap(({ file, source, value }) => {
    const levels: Level[] = [{ file, source, path: [], input: value }];
    for (const name of stage === "" ? [] : stage.split(".")) {
      const { path, input } = levels.at(-1)!;
      if (!Object.hasOwn(input.stages ?? {}, name)) break;
      levels.push({ file, source, path: [...path, "stages", name], input: input.stages![name]! });
    }
    return levels;
  });

/** What counts in a stage, weakest first: file by file, and in each from the top down to the stage. */
export const chooseStage = (files: readonly ProjectFile[], stage?: string): readonly Level[] => {
  if (stage === undefined) return levelsOf(files, "");
  const known = [...new Set(files.flatMap(({ value }) => stagesOf(value)))];
  if (!known.includes(stage)) {
    const where =
      files.length === 0
        ? "there is no slipway.yaml or .slipway.yaml here"
        : `${files.map(({ file }) => file).join(" and ")} ${files.length > 1 ? "have" : "has"} none of that name`;
    throw new SlipwayError("usage", { detail: `--stage ${stage.slice(0, 200)}: ${where}${suggest(stage, known)}` });
  }
  return levelsOf(files, stage);
};

/** The levels' overrides of clusters, as layers that declare nothing. */
export const overrideLayers = (levels: readonly Level[]): Layer[] =>
  levels
    .filter(({ input }) => input.clusters !== undefined)
    .map(({ file, source, path, input }) => ({
      file,
      source,
      overrides: true,
      clusters: new Map(
        Object.entries(input.clusters!).map(([name, cluster]) => {
          const at = [...path, "clusters", name];
          checkName(source, at, name);
          return [name, readCluster(BUILT_IN, source, at, cluster)];
        }),
      ),
    }));
