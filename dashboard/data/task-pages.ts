import { useEffect, useRef, useState } from "preact/hooks";
import type { TaskRowView } from "../../src/api/task-table.ts";
import { ApiError, ask, lines, query } from "./api.ts";
import { generation } from "./live.ts";

/** The rows of a run's table, page by page, where somebody looks; the rest stays at the server. */

export interface TableFilter {
  readonly state: readonly string[];
  readonly name: readonly string[];
  readonly host: readonly string[];
  readonly exitCode: readonly string[];
  readonly sort: "index" | "duration";
  readonly reverse: boolean;
}

const A_PAGE = 100;
const MOST_PAGES = 60;
/** Who drags the scroll bar passes many pages: only where it rests for a moment are they loaded. */
const REST = 40;

interface Pages {
  readonly total: number | undefined;
  readonly error: ApiError | undefined;
  readonly row: (index: number) => TaskRowView | undefined;
}

interface PageEnd {
  readonly next: string | null;
  readonly total?: number;
}

/** Rows `first` to `first + count` are kept loaded; `every` loads those in sight again. */
export const useTaskPages = (
  run: number,
  filter: TableFilter,
  first: number,
  count: number,
  every: number | undefined,
): Pages => {
  const kept = useRef(new Map<number, readonly TaskRowView[]>());
  const asked = useRef(new Set<number>());
  const control = useRef(new AbortController());
  const [total, setTotal] = useState<number | undefined>(undefined);
  const [error, setError] = useState<ApiError | undefined>(undefined);
  const [, redraw] = useState(0);
  const where = `runs/${run}/task-table${query({ ...filter })}`;

  const load = async (page: number): Promise<void> => {
    if (asked.current.has(page)) return;
    asked.current.add(page);
    const { signal } = control.current;
    try {
      const found: TaskRowView[] = [];
      let end: PageEnd | undefined;
      const answer = await ask(`${where}${where.includes("?") ? "&" : "?"}offset=${page * A_PAGE}&limit=${A_PAGE}`, {
        signal,
      });
      for await (const line of lines<TaskRowView | PageEnd>(answer)) {
        if ("next" in line) end = line;
        else found.push(line);
      }
      if (signal.aborted) return;
      kept.current.delete(page);
      kept.current.set(page, found);
      for (const old of kept.current.keys()) {
        if (kept.current.size <= MOST_PAGES) break;
        kept.current.delete(old);
      }
      if (end?.total !== undefined) setTotal(end.total);
      setError(undefined);
      redraw((n) => n + 1);
    } catch (problem) {
      if (problem instanceof ApiError && !signal.aborted) setError(problem);
    } finally {
      asked.current.delete(page);
    }
  };

  // another table: nothing of the old one counts
  useEffect(() => {
    control.current = new AbortController();
    kept.current.clear();
    asked.current.clear();
    setTotal(undefined);
    void load(0);
    return () => control.current.abort();
  }, [where, generation.value]);

  const [from, until] = [Math.floor(first / A_PAGE), Math.floor(Math.max(first, first + count - 1) / A_PAGE)];
  useEffect(() => {
    const timer = setTimeout(() => {
      for (let page = from; page <= until; page++) if (!kept.current.has(page)) void load(page);
    }, REST);
    return () => clearTimeout(timer);
  }, [where, from, until]);
  useEffect(() => {
    if (every === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) for (let page = from; page <= until; page++) void load(page);
    }, every);
    return () => clearInterval(timer);
  }, [where, from, until, every]);

  return { total, error, row: (index) => kept.current.get(Math.floor(index / A_PAGE))?.[index % A_PAGE] };
};
