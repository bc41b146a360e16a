import type { ReloadView, ServerView } from "../../api/schemas.ts";
import type { Style } from "./style.ts";
import { printable } from "./text.ts";

/** clusters.yaml as a running server has it. */

const listed = (texts: readonly string[]): string[] => texts.map((text) => `  ${printable(text)}`);

/** What reading it again has changed. */
export const reloadScreen = ({ files, changes, later, warnings }: ReloadView, style: Style): string => {
  const read = files.length === 0 ? "there is no clusters.yaml" : `read ${files.map(printable).join(", ")}`;
  return [
    `${read}: ${changes.length === 0 ? "nothing changed" : "changed"}`,
    ...listed(changes),
    ...(later.length === 0 ? [] : [style.yellow("from the server's next start on:"), ...listed(later)]),
    ...warnings.map((text) => `${style.yellow("warning:")} ${printable(text)}`),
  ].join("\n");
};

/** What `status` says of it; nothing if all is well. */
export const clustersFileNote = (
  { clustersFile }: Pick<ServerView, "clustersFile">,
  style: Style,
): string | undefined => {
  if (clustersFile === undefined) return undefined;
  const { problem, later } = clustersFile;
  const lines = [
    ...(problem === null
      ? []
      : [`${style.red("clusters.yaml as it is now is not used, the one before it stays:")} ${printable(problem)}`]),
    ...(later.length === 0 ? [] : [style.yellow("clusters.yaml: from the server's next start on:"), ...listed(later)]),
  ];
  return lines.length === 0 ? undefined : lines.join("\n");
};
