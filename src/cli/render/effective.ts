import type { Effective, EffectiveValue } from "../../config/effective.ts";
import type { Style } from "./style.ts";
import { table } from "./table.ts";
import { printable } from "./text.ts";

export interface EffectiveView extends Effective {
  readonly stage: string | null;
}

const valuesTable = (values: readonly EffectiveValue[]): string =>
  table(values, [
    { title: "KEY", value: ({ key }) => key },
    { title: "VALUE", value: ({ value }) => (typeof value === "string" ? value : JSON.stringify(value)) },
    { title: "FROM", value: ({ file, line }) => (file === null ? "built-in" : `${file}:${line}`) },
  ]);

/** Each value of a cluster, then what tasks get, with file and line. */
export const effectiveScreen = ({ cluster, stage, values, tasks }: EffectiveView, style: Style): string =>
  [
    `${style.bold(printable(cluster))}${stage === null ? "" : `  stage ${printable(stage)}`}`,
    valuesTable(values),
    "",
    style.bold("tasks that do not say otherwise"),
    valuesTable(tasks),
  ].join("\n");
