import { clipped, columnsOf, padded, printable } from "./text.ts";

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly right?: boolean;
  /** Colours the padded text. */
  readonly paint?: (text: string, row: Row) => string;
  /** Gives way when the terminal is narrow, down to this width. */
  readonly shrinksTo?: number;
  /** Left out when the terminal is too narrow even so: the highest number first. */
  readonly drops?: number;
}

const GAP = 2;

const sum = (widths: readonly number[]): number => widths.reduce((all, each) => all + each + GAP, -GAP);

/** The columns that find room, each at its narrowest; those that matter least are left out first. */
const fitting = <Row>(
  columns: readonly Column<Row>[],
  widths: ReadonlyMap<Column<Row>, number>,
  width: number,
): Column<Row>[] => {
  const least = (column: Column<Row>): number => {
    const { title, shrinksTo } = column;
    const wanted = widths.get(column)!;
    return shrinksTo === undefined ? wanted : Math.min(wanted, Math.max(shrinksTo, columnsOf(title)));
  };
  let kept = [...columns];
  while (sum(kept.map(least)) > width) {
    const rank = Math.max(...kept.map(({ drops = 0 }) => drops));
    if (rank === 0) break;
    const last = kept.findLast(({ drops = 0 }) => drops === rank);
    kept = kept.filter((column) => column !== last);
  }
  return kept;
};

/** A table that is written piece by piece. */
export interface Layout<Row> {
  readonly head: string;
  lines(rows: readonly Row[]): string[];
}

/**
 * Widths by the first rows. Of those that come later, a cell that is wider is cut where `width` is that of a terminal,
 * and pushes its line to the right elsewhere: nothing is lost.
 */
export const layout = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], width = Infinity): Layout<Row> => {
  const wanted = new Map(
    columns.map((column) => [
      column,
      rows.reduce((most, row) => Math.max(most, columnsOf(printable(column.value(row)))), columnsOf(column.title)),
    ]),
  );
  const kept = fitting(columns, wanted, width);
  const widths = kept.map((column) => wanted.get(column)!);
  let excess = sum(widths) - width;
  kept.forEach((column, at) => {
    if (excess <= 0 || column.shrinksTo === undefined) return;
    const less = Math.min(excess, Math.max(0, widths[at]! - Math.max(column.shrinksTo, columnsOf(column.title))));
    widths[at]! -= less;
    excess -= less;
  });
  const line = (texts: readonly string[], row?: Row): string =>
    texts
      .map((text, at) => {
        const column = kept[at]!;
        const shown = width === Infinity ? text : clipped(text, widths[at]!);
        const cell = padded(shown, widths[at]!, column.right);
        const trimmed = at === texts.length - 1 ? cell.trimEnd() : cell;
        return row !== undefined && column.paint !== undefined ? column.paint(trimmed, row) : trimmed;
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  return {
    head: line(kept.map((column) => column.title)),
    lines: (more) =>
      more.map((row) =>
        line(
          kept.map((column) => printable(column.value(row))),
          row,
        ),
      ),
  };
};

/** Aligned columns under their titles, no trailing blanks; cells hold one line whatever the values hold. */
export const table = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], width = Infinity): string => {
  const { head, lines } = layout(rows, columns, width);
  return [head, ...lines(rows)].join("\n");
};

/** Lines of at most `width` columns, broken between words. */
const folded = (text: string, width: number): string[] => {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)!} ${word}`;
    if (lines.length > 0 && columnsOf(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(clipped(word, width));
  }
  return lines;
};

/** `name  value` lines, values aligned, folded where a terminal is narrow; entries without a value are left out. */
export const facts = (entries: readonly (readonly [string, string | undefined])[], width = Infinity): string => {
  const given = entries.filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
  const names = given.reduce((most, [name]) => Math.max(most, columnsOf(name)), 0);
  const room = width === Infinity ? Infinity : Math.max(20, width - names - GAP);
  return given
    .flatMap(([name, value]) =>
      (columnsOf(value) <= room ? [value] : folded(value, room)).map((line, i) =>
        `${padded(i === 0 ? name : "", names)}  ${line}`.trimEnd(),
      ),
    )
    .join("\n");
};
