/** A graph of stages in columns: each stands behind all that it waits for, and near them. Pure. */

export interface Node {
  readonly index: number;
  readonly after: readonly number[];
}

export interface Placed {
  readonly index: number;
  readonly column: number;
  readonly row: number;
}

/** How far each is from the beginning. A cycle, which no run has, ends the walk instead of turning in it. */
const depths = (nodes: readonly Node[]): Map<number, number> => {
  const byIndex = new Map(nodes.map((node) => [node.index, node]));
  const found = new Map<number, number>();
  const open = new Set<number>();
  const depth = (index: number): number => {
    const known = found.get(index);
    if (known !== undefined) return known;
    if (open.has(index)) return 0;
    open.add(index);
    const before = (byIndex.get(index)?.after ?? []).filter((each) => byIndex.has(each)).map(depth);
    open.delete(index);
    const own = before.length === 0 ? 0 : Math.max(...before) + 1;
    found.set(index, own);
    return own;
  };
  for (const { index } of nodes) depth(index);
  return found;
};

/** In each column those stand first whose predecessors stand first: lines cross little. */
export const layers = (nodes: readonly Node[]): readonly Placed[] => {
  const depth = depths(nodes);
  const columns: Node[][] = [];
  for (const node of nodes) (columns[depth.get(node.index)!] ??= []).push(node);
  const row = new Map<number, number>();
  const placed: Placed[] = [];
  columns.forEach((column, x) => {
    const middle = ({ after, index }: Node): number => {
      const rows = after.flatMap((each) => row.get(each) ?? []);
      return rows.length === 0 ? index : rows.reduce((sum, each) => sum + each, 0) / rows.length;
    };
    const sorted = column
      .map((node, i) => ({ node, i, middle: middle(node) }))
      .toSorted((a, b) => a.middle - b.middle || a.i - b.i);
    sorted.forEach(({ node }, y) => {
      row.set(node.index, y);
      placed.push({ index: node.index, column: x, row: y });
    });
  });
  return placed;
};
