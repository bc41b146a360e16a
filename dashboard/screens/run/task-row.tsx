import type { TaskRowView } from "../../../src/api/task-table.ts";
import { now } from "../../data/clock.ts";
import { to } from "../../data/route.ts";
import { bytes, count } from "../../format/numbers.ts";
import { commandText, oneLine } from "../../format/text.ts";
import { duration, exact, moment } from "../../format/time.ts";
import { State } from "../../parts/state.tsx";

/** One task as a row. */

interface Column {
  readonly title: string;
  readonly sort?: "index" | "duration";
  readonly right?: true;
}

export const COLUMNS: readonly Column[] = [
  { title: "Task", sort: "index" },
  { title: "Name" },
  { title: "Item" },
  { title: "State" },
  { title: "Exit", right: true },
  { title: "Duration", sort: "duration", right: true },
  { title: "Host" },
  { title: "Started", right: true },
  { title: "Attempts", right: true },
  { title: "Peak mem", right: true },
];

interface RowProps {
  readonly at: number;
  readonly row: TaskRowView | undefined;
  readonly run: number;
  readonly chosen: boolean;
  readonly onChoose: (row: number) => void;
}

const Cells = ({ row, run }: { row: TaskRowView; run: number }) => (
  <>
    <div role="gridcell">
      <a class="mono" tabIndex={-1} href={to("runs", run, "task", row.index)} title={oneLine(commandText(row.command))}>
        {row.id}
      </a>
    </div>
    <div role="gridcell">{oneLine(row.name, 200)}</div>
    <div role="gridcell" class="soft">
      {row.item === null ? "" : oneLine(row.item, 200)}
    </div>
    <div role="gridcell">
      <State of={row.state} />
    </div>
    <div role="gridcell" class="num" title={row.reason ?? undefined}>
      {row.signal ?? row.exitCode ?? ""}
    </div>
    <div role="gridcell" class="num">
      {row.wall === null ? "" : duration(row.wall)}
    </div>
    <div role="gridcell" class="soft">
      {row.host ?? ""}
    </div>
    <div role="gridcell" class="num soft" title={exact(row.started)}>
      {row.started === null ? "" : moment(row.started, now.peek())}
    </div>
    <div role="gridcell" class="num">
      {row.attempts > 0 ? count(row.attempts) : ""}
    </div>
    <div role="gridcell" class="num">
      {row.peakMemory === null ? "" : bytes(row.peakMemory)}
    </div>
  </>
);

export const TaskRow = ({ at, row, run, chosen, onChoose }: RowProps) => (
  <div
    id={`row-${at}`}
    class="grid-row"
    role="row"
    aria-rowindex={at + 2}
    aria-selected={chosen}
    onClick={() => onChoose(at)}
  >
    {row === undefined ? (
      <div role="gridcell" class="dim">
        …
      </div>
    ) : (
      <Cells row={row} run={run} />
    )}
  </div>
);
