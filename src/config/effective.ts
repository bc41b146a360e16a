import { createHash } from "node:crypto";
import { formatDuration } from "../core/quantities.ts";
import { clusterNamed, combineClusters } from "./clusters-file.ts";
import type { Layer } from "./clusters-layer.ts";
import type { Written } from "./key-table.ts";
import type { LoadedLayers } from "./load-clusters.ts";
import { DEFAULT_QUEUE, mergeLayers, NOTHING, withTemplates } from "./merge-layers.ts";
import { settingsOf } from "./project-run.ts";
import type { Level } from "./project-file.ts";
import { overlay } from "./queue-job.ts";

/** What counts after all layers were put together, value by value, with the place each comes from. */

export interface EffectiveValue {
  /** `grace`, `queues.cpu.walltime`, `queues.cpu.fleet.max`, `env.OMP_NUM_THREADS`. */
  readonly key: string;
  /** As it was written. */
  readonly value: unknown;
  /** Null: built in. */
  readonly file: string | null;
  readonly line: number | null;
}

export interface Effective {
  readonly cluster: string;
  readonly values: readonly EffectiveValue[];
  /** What tasks get that do not say otherwise. */
  readonly tasks: readonly EffectiveValue[];
}

/** `file.yaml:12:5` taken apart. */
const placeOf = ({ source, path }: Written): Pick<EffectiveValue, "file" | "line"> => {
  const [, file, line] = /^(.*):(\d+):\d+$/s.exec(source.locate(path, "key").where) ?? [];
  return { file: file ?? null, line: line === undefined ? null : Number(line) };
};

const byKey = (a: EffectiveValue, b: EffectiveValue): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

const rowsOf = (places: Readonly<Record<string, Written>>, prefix = ""): EffectiveValue[] => {
  // A map that is put together name by name has a row for each name.
  const maps = new Set(Object.keys(places).flatMap((key) => (key.includes(".") ? [key.split(".")[0]!] : [])));
  return Object.entries(places)
    .filter(([key]) => !maps.has(key))
    .map(([key, place]) => ({
      key: `${prefix}${key}`,
      value: place.source.written?.(place.path) ?? null,
      ...placeOf(place),
    }));
};

const dashed = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const builtIn = (values: object, known: readonly EffectiveValue[], prefix: string, times: readonly string[]) =>
  Object.entries(values)
    .map(([key, value]): EffectiveValue => {
      const text = times.includes(key) ? formatDuration(Number(value)) : (value as unknown);
      return { key: `${prefix}${dashed(key)}`, value: text, file: null, line: null };
    })
    .filter(({ key }) => !known.some((row) => row.key === key));

const TIMES = [
  "idle",
  "period",
  "unknownTaskDuration",
  "targetDuration",
  "lifetime",
  "stagger",
  "grace",
  "signalBefore",
];

/** Each value of a cluster and its queues, and what the project's settings give to tasks. */
export const effectiveCluster = (
  { layers, keys }: LoadedLayers,
  levels: readonly Level[],
  name: string | undefined,
): Effective => {
  const config = combineClusters(layers, keys);
  const settings = settingsOf(levels);
  const cluster = clusterNamed(config, name);
  const merged = mergeLayers(layers).get(cluster.name)!;
  const values = rowsOf(merged.own.places);
  const { grace, pin, executor, type } = cluster;
  values.push(...builtIn({ grace, pin, executor, type }, values, "", TIMES));
  const queues = merged.queues.size === 0 ? new Map([[DEFAULT_QUEUE, { ...merged, ...NOTHING }]]) : merged.queues;
  for (const queue of queues.keys()) {
    const layer = merged.queues.size === 0 ? NOTHING : withTemplates(queue, merged.queues);
    const prefix = `queues.${queue}.`;
    const rows = rowsOf(overlay(merged.shared, layer).places, prefix);
    const { nodes, signal, signalBefore, cleanup, fleet } = cluster.queues.get(queue)!;
    values.push(
      ...rows,
      ...builtIn({ nodes, signal, signalBefore, cleanup }, rows, prefix, TIMES),
      ...builtIn(fleet, rows, `${prefix}fleet.`, TIMES),
    );
  }
  const tasks = [...settings].map(([key, { value, ...place }]): EffectiveValue => ({ key, value, ...placeOf(place) }));
  const named = layers.findLast((layer) => layer.default !== undefined);
  if (!settings.has("cluster") && !settings.has("local")) {
    const place =
      named === undefined ? { file: null, line: null } : placeOf({ source: named.source, path: ["default"] });
    tasks.push({ key: "cluster", value: config.default, ...place });
  }
  return { cluster: cluster.name, values: values.sort(byKey), tasks: tasks.sort(byKey) };
};

/** What a project overrides, by cluster. */
export type Overrides = ReadonlyMap<string, readonly EffectiveValue[]>;

export const overridesOf = (layers: readonly Layer[]): Overrides => {
  // For themselves, as if they declared something: only what they say is of interest.
  const alone = layers
    .filter(({ overrides }) => overrides === true)
    .map((layer): Layer => ({ ...layer, overrides: false }));
  const merged = [...mergeLayers(alone)].filter(([name]) => alone.some(({ clusters }) => clusters.has(name)));
  return new Map(
    merged.map(([name, { own, shared, queues }]) => [
      name,
      [
        ...rowsOf(own.places),
        ...rowsOf(shared.places),
        ...[...queues].flatMap(([queue, { places }]) => rowsOf(places, `queues.${queue}.`)),
      ].sort(byKey),
    ]),
  );
};

/** By cluster, the same for the same overrides: a server tells with which ones it started. */
export const digestsOf = (overrides: Overrides): Record<string, string> =>
  Object.fromEntries(
    [...overrides]
      .filter(([, values]) => values.length > 0)
      .map(([name, values]) => {
        const text = JSON.stringify(values.map(({ key, value }) => [key, value]));
        return [name, createHash("sha256").update(text).digest("hex").slice(0, 16)];
      }),
  );
