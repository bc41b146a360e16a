import { useEffect, useRef, useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import { go, refine, to } from "../../data/route.ts";
import { type TableFilter, useTaskPages } from "../../data/task-pages.ts";
import { plural } from "../../format/numbers.ts";
import { isFinal } from "../../format/progress.ts";
import { inSight, scrollTo, spacerHeight } from "../../format/virtual.ts";
import { Empty, Problem } from "../../parts/blocks.tsx";
import { useSize } from "../../parts/width.ts";
import { COLUMNS, TaskRow } from "./task-row.tsx";

/** Rows of one height, of which only those in sight exist: a million scroll like ten. */

const ROW = 28;
const HEAD = 32;

const order = (filter: TableFilter, sort: "index" | "duration"): void =>
  refine({
    sort: sort === "index" ? undefined : sort,
    // the longest first, unless it is turned round
    reverse: (filter.sort === sort ? !filter.reverse : sort === "duration") ? "true" : undefined,
  });

const SortButton = ({ filter, sort, title }: { filter: TableFilter; sort: "index" | "duration"; title: string }) => (
  <button type="button" aria-pressed={filter.sort === sort} onClick={() => order(filter, sort)}>
    {title}
    <span aria-hidden="true">{filter.sort === sort ? (filter.reverse ? " ↓" : " ↑") : " ↕"}</span>
    <span class="visually-hidden">, sort</span>
  </button>
);

const Head = ({ filter }: { filter: TableFilter }) => (
  <div class="grid-head" role="row" aria-rowindex={1}>
    {COLUMNS.map(({ title, sort, right }) => (
      <div
        key={title}
        role="columnheader"
        class={right === true ? "num" : undefined}
        aria-sort={
          sort !== undefined && filter.sort === sort ? (filter.reverse ? "descending" : "ascending") : undefined
        }
      >
        {sort === undefined ? title : <SortButton filter={filter} sort={sort} title={title} />}
      </div>
    ))}
  </div>
);

/** Which row the keyboard is on after a key; undefined: the key means nothing here. */
const moved = (key: string, row: number, rows: number, page: number): number | undefined => {
  const steps: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -rows,
    End: rows,
  };
  const step = steps[key];
  return step === undefined ? undefined : Math.max(0, Math.min(rows - 1, row + step));
};

export const TaskGrid = ({ run, filter }: { run: RunView; filter: TableFilter }) => {
  const box = useRef<HTMLDivElement>(null);
  const { height } = useSize(box);
  const [top, setTop] = useState(0);
  const [chosen, setChosen] = useState(-1);
  const known = useRef(run.total);
  const table = { rows: known.current, rowHeight: ROW, view: Math.max(ROW, height - HEAD) };
  const { first, shift, count } = inSight(table, top);
  const pages = useTaskPages(run.id, filter, first, count, isFinal(run.state) ? undefined : 2000);
  known.current = pages.total ?? known.current;
  const shape = JSON.stringify(filter);
  useEffect(() => {
    box.current!.scrollTop = 0;
    setTop(0);
    setChosen(-1);
  }, [shape]);
  const onKey = (event: KeyboardEvent): void => {
    if (event.target !== box.current) return;
    if (event.key === "Enter" && chosen >= 0) {
      const row = pages.row(chosen);
      if (row !== undefined) go(to("runs", run.id, "task", row.index));
      return;
    }
    const next = moved(event.key, chosen, table.rows, Math.max(1, count - 2));
    if (next === undefined) return;
    event.preventDefault();
    setChosen(next);
    const goal = scrollTo(table, box.current!.scrollTop, next);
    if (goal !== undefined) box.current!.scrollTop = goal;
  };
  if (pages.error !== undefined) return <Problem error={pages.error} />;
  return (
    <>
      <div
        ref={box}
        class="grid-table"
        role="grid"
        tabIndex={0}
        aria-label="Tasks"
        aria-rowcount={(pages.total ?? -2) + 1}
        aria-activedescendant={chosen >= first && chosen < first + count ? `row-${chosen}` : undefined}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={onKey}
      >
        <Head filter={filter} />
        <div
          class="grid-window"
          role="rowgroup"
          style={{ height: `${table.view}px`, marginBottom: `-${table.view}px` }}
        >
          <div class="grid-rows" role="presentation" style={{ transform: `translateY(${-shift}px)` }}>
            {pages.total !== 0 &&
              Array.from({ length: count }, (_, i) => (
                <TaskRow
                  key={(first + i) % (count + 1)}
                  at={first + i}
                  row={pages.row(first + i)}
                  run={run.id}
                  chosen={chosen === first + i}
                  onChoose={setChosen}
                />
              ))}
          </div>
        </div>
        <div class="spacer" style={{ height: `${spacerHeight(table)}px` }} />
        {pages.total === 0 && <Empty>No such tasks.</Empty>}
      </div>
      <p class="grid-foot dim">
        {pages.total === undefined ? "Loading …" : plural(pages.total, "task")}
        {!isFinal(run.state) && ", as of the last 2 s"}
      </p>
    </>
  );
};
