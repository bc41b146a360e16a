import type { GroupPreview, Preview } from "../../preview/preview.ts";
import { formatDuration } from "../../core/quantities.ts";
import type { Style } from "./style.ts";
import { table } from "./table.ts";
import { resourcesText } from "./task.ts";
import { clipped, commandLine, count, plural, printable } from "./text.ts";

/** Of a file with very many entries, the first are shown. */
const MOST_GROUPS = 40;

const whereText = ({ cluster, queues, via }: GroupPreview): string => {
  const queue =
    queues.length === 0 ? "" : queues.length <= 3 ? `/${queues.join("|")}` : `/any of ${queues.length} queues`;
  return `${cluster}${queue}${via === "job" ? " (its own job)" : ""}`;
};

const asksText = ({ resources, formulas, ranks, timeLimit }: GroupPreview): string => {
  const plain = Object.fromEntries(Object.entries(resources).filter(([name]) => formulas[name] === undefined));
  const parts = [resourcesText(plain), ...Object.entries(formulas).map(([name, text]) => `${name} ${text}`)];
  if (ranks !== null) parts.push(`${ranks} ranks`);
  if (timeLimit !== null) parts.push(`at most ${formatDuration(timeLimit)}`);
  return parts.filter((part) => part !== "").join(", ");
};

/** A text command as it was written, its placeholders filled in. */
const shellText = ([shell, flag, text, ...more]: readonly string[]): string | undefined =>
  shell === "/bin/sh" && flag === "-c" && more.length === 0 ? text : undefined;

/** Which of them need not run, and why the others do. */
const skipsText = (name: string, { skipped, runs }: NonNullable<GroupPreview["skips"]>): string => {
  const sum = runs.reduce((all, { tasks }) => all + tasks, 0);
  const head = `${printable(name)}: ${count(skipped)} would be skipped, ${count(sum)} would run`;
  const lines = runs.map(({ tasks, task, reason }) => {
    const others = tasks === 1 ? "" : ` (and ${count(tasks - 1)} more like it)`;
    return `  ${task}  ${printable(reason)}${others}`;
  });
  return [head, ...lines].join("\n");
};

/** What a run would be. */
export const previewText = (preview: Preview, style: Style, width?: number): string => {
  const { name, tasks, groups, notices } = preview;
  const shown = groups.slice(0, MOST_GROUPS);
  const total = tasks === null ? "as many tasks as there are items" : plural(tasks, "task");
  const sections = [
    `${style.bold(printable(name))}: ${total}; nothing was submitted`,
    table(
      shown,
      [
        { title: "NAME", value: (group) => group.name, shrinksTo: 12 },
        { title: "TASKS", value: (group) => (group.tasks === null ? "?" : count(group.tasks)), right: true },
        { title: "ASKS FOR", value: asksText, shrinksTo: 16 },
        { title: "WHERE", value: whereText, shrinksTo: 12 },
        { title: "AFTER", value: (group) => group.after.join(", "), shrinksTo: 8 },
      ],
      width,
    ) +
      (groups.length > shown.length
        ? `\n… and ${plural(groups.length - shown.length, "more entr")}`.replace(/entrs?$/, "entries")
        : ""),
    ...shown
      .filter(({ first }) => first.length > 0)
      .map(({ name: group, first, tasks: of }) => {
        const lines = first.map(({ task, command }) => {
          const text = printable(shellText(command) ?? commandLine(command));
          return `  ${task}  ${width === undefined ? text : clipped(text, Math.max(20, width - 6))}`;
        });
        const more =
          of === null || of > first.length ? `\n  …${of === null ? "" : ` ${count(of - first.length)} more`}` : "";
        return `${printable(group)}\n${lines.join("\n")}${more}`;
      }),
    ...shown.flatMap((group) => (group.skips === undefined ? [] : [skipsText(group.name, group.skips)])),
    ...notices.map((notice) => `note: ${printable(notice)}`),
  ];
  return sections.join("\n\n");
};
