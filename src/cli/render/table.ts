import { clipped, columnsOf, padded, printable } from "./text.ts";

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  readonly right?: boolean;
  /** Colours the padded text. */
  readonly paint?: (text: string, row: Row) => string;
  /** Gives way when the terminal is narrow, down to this width. */
  readonly shrinksTo?: number;
}

const GAP = 2;

/** Aligned columns under their titles, no trailing blanks; cells hold one line whatever the values hold. */
export const table = <Row>(rows: readonly Row[], columns: readonly Column<Row>[], width = Infinity): string => {
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const widths = columns.map((column, at) =>
    cells.reduce((most, line) => Math.max(most, columnsOf(line[at]!)), columnsOf(column.title)),
  );
  let excess = widths.reduce((sum, each) => sum + each + GAP, -GAP) - width;
  columns.forEach((column, at) => {
    if (excess <= 0 || column.shrinksTo === undefined) return;
    const less = Math.min(excess, Math.max(0, widths[at]! - Math.max(column.shrinksTo, columnsOf(column.title))));
    widths[at]! -= less;
    excess -= less;
  });
  const line = (texts: readonly string[], row?: Row): string =>
    texts
      .map((text, at) => {
        const column = columns[at]!;
        const cell = padded(clipped(text, widths[at]!), widths[at]!, column.right);
        const trimmed = at === texts.length - 1 ? cell.trimEnd() : cell;
        return row !== undefined && column.paint !== undefined ? column.paint(trimmed, row) : trimmed;
      })
      .join(" ".repeat(GAP))
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...cells.map((texts, at) => line(texts, rows[at]))].join("\n");
};

/** `name  value` lines, values aligned; entries without a value are left out. */
export const facts = (entries: readonly (readonly [string, string | undefined])[]): string => {
  const given = entries.filter((entry): entry is readonly [string, string] => entry[1] !== undefined);
  const width = given.reduce((most, [name]) => Math.max(most, columnsOf(name)), 0);
  return given.map(([name, value]) => `${padded(name, width)}  ${value}`.trimEnd()).join("\n");
};
