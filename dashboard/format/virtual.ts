/**
 * Which rows are in sight of a table of any length. Browsers cap an element's height (some below 17 million pixels), so a long
 * table scrolls over a shorter spacer: positions are scaled, rows keep their height. Pure.
 */

export const MOST_PIXELS = 16_000_000;

export interface Table {
  readonly rows: number;
  readonly rowHeight: number;
  /** Of what is in sight. */
  readonly view: number;
}

export const spacerHeight = ({ rows, rowHeight }: Table): number => Math.min(rows * rowHeight, MOST_PIXELS);

/** Pixels of the table for a pixel of the spacer. */
const scale = (table: Table): number => {
  const spacer = spacerHeight(table) - table.view;
  return spacer <= 0 ? 1 : (table.rows * table.rowHeight - table.view) / spacer;
};

/** The first row in sight, how far it has gone above the edge, and how many rows there are to draw. */
export const inSight = (table: Table, scrollTop: number) => {
  const last = Math.max(0, table.rows * table.rowHeight - table.view);
  const offset = Math.min(last, Math.max(0, scrollTop) * scale(table));
  const first = Math.floor(offset / table.rowHeight);
  const shift = offset - first * table.rowHeight;
  const count = Math.min(table.rows - first, Math.ceil((table.view + shift) / table.rowHeight));
  return { first, shift, count: Math.max(0, count) };
};

/** Where to scroll so that a row is in sight; undefined when it is already. */
export const scrollTo = (table: Table, scrollTop: number, row: number): number | undefined => {
  const offset = Math.max(0, scrollTop) * scale(table);
  const top = row * table.rowHeight;
  if (top < offset) return top / scale(table);
  if (top + table.rowHeight > offset + table.view) return (top + table.rowHeight - table.view) / scale(table);
  return undefined;
};
