import type { CheckView } from "../../api/schemas.ts";
import type { Style } from "./style.ts";
import { printable } from "./text.ts";

const WIDTH = 12;

/** What was checked, one line each; under each fault, what to do. */
export const checkScreen = ({ cluster, type, checks }: CheckView, style: Style, unicode: boolean): string => {
  const marks = unicode ? { good: "✓", bad: "✗", next: "→" } : { good: "ok", bad: "no", next: "->" };
  const lines = [`${style.bold(printable(cluster))}  ${printable(type)}`];
  let queue: string | null = null;
  for (const check of checks) {
    if (check.queue !== queue && check.queue !== null) lines.push(`queue ${style.bold(printable(check.queue))}`);
    queue = check.queue;
    const mark = check.ok ? style.green(marks.good) : style.red(marks.bad);
    lines.push(`${mark} ${check.what.padEnd(WIDTH)}${printable(check.detail)}`);
    if (check.remedy !== null) lines.push(`  ${" ".repeat(WIDTH)}${marks.next} ${printable(check.remedy)}`);
  }
  return lines.join("\n");
};
