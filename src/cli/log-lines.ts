/** Pieces of output as whole lines, each with the task it belongs to. */
export interface TaskLine {
  readonly task: string;
  /** Without its newline. */
  readonly line: Buffer;
}

/** Unfinished lines are kept in memory up to this; then they are shown as they are. */
const HELD_LIMIT = 4 * 1024 * 1024;

/**
 * Joins pieces of output to lines, per task: pieces of several tasks may come mixed and may end anywhere. What is held
 * is bounded; `end` gives the last lines that had no newline.
 */
export const lineJoiner = (limit = HELD_LIMIT) => {
  const held = new Map<string, Buffer[]>();
  let heldBytes = 0;

  const flush = (): TaskLine[] => {
    const lines = [...held].map(([task, parts]) => ({ task, line: Buffer.concat(parts) }));
    held.clear();
    heldBytes = 0;
    return lines;
  };
  const add = (task: string, data: Buffer): TaskLine[] => {
    const lines: TaskLine[] = [];
    let from = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, from)) {
      const parts = held.get(task);
      const end = data.subarray(from, at);
      from = at + 1;
      if (parts === undefined) lines.push({ task, line: end });
      else {
        held.delete(task);
        heldBytes -= parts.reduce((sum, part) => sum + part.length, 0);
        lines.push({ task, line: Buffer.concat([...parts, end]) });
      }
    }
    if (from < data.length) {
      const rest = data.subarray(from);
      const parts = held.get(task);
      if (parts === undefined) held.set(task, [rest]);
      else parts.push(rest);
      heldBytes += rest.length;
      if (heldBytes > limit) lines.push(...flush());
    }
    return lines;
  };
  return { add, end: flush };
};
