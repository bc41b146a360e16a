import { useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import type { StagePage, StageView, StagesView } from "../../../src/api/stages.ts";
import { useFetched } from "../../data/fetched.ts";
import { liveRun } from "../../data/live.ts";
import { to } from "../../data/route.ts";
import { layers } from "../../format/layers.ts";
import { count, percent } from "../../format/numbers.ts";
import { endedOf } from "../../format/progress.ts";
import { Loaded } from "../../parts/blocks.tsx";
import { Bar, Legend } from "../../parts/state.tsx";
import { Fold } from "./fold.tsx";
import { StageFacts } from "./stage-facts.tsx";

/** The run's graph: a box for each stage with its counts, however many tasks it has. A click opens one. */

const BOX = { width: 220, height: 78, gapX: 56, gapY: 16 };

const place = (column: number, row: number) => ({
  x: column * (BOX.width + BOX.gapX),
  y: row * (BOX.height + BOX.gapY),
});

const Box = ({ stage, open, onOpen }: { stage: StageView; open: boolean; onOpen: () => void }) => (
  <button type="button" class="stage" aria-expanded={open} onClick={onOpen}>
    <span class="stage-name clip">{stage.name}</span>
    <Bar counts={stage.counts} total={stage.total} />
    <span class="stage-counts">
      <span>
        {count(endedOf(stage.counts))} / {count(stage.total)}
      </span>
      {(stage.counts["FAILED"] ?? 0) > 0 && <span class="bad">{count(stage.counts["FAILED"]!)} failed</span>}
      <span class="dim">{percent(endedOf(stage.counts), stage.total)}</span>
    </span>
  </button>
);

const Graph = ({ stages, open, onOpen }: GraphProps) => {
  const placed = layers(stages);
  const at = new Map(placed.map(({ index, column, row }) => [index, place(column, row)]));
  const byIndex = new Map(stages.map((stage) => [stage.index, stage]));
  const width = Math.max(...placed.map(({ column }) => place(column, 0).x)) + BOX.width;
  const height = Math.max(...placed.map(({ row }) => place(0, row).y)) + BOX.height;
  const lines = stages.flatMap(({ index, after }) =>
    after.flatMap((before) => {
      const [from, end] = [at.get(before), at.get(index)];
      if (from === undefined || end === undefined) return [];
      const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, end.x, end.y + BOX.height / 2];
      return [`M${x1} ${y1}C${x1 + BOX.gapX / 2} ${y1} ${x2 - BOX.gapX / 2} ${y2} ${x2} ${y2}`];
    }),
  );
  return (
    <div class="graph-scroll" role="region" aria-label="Stages" tabIndex={0}>
      <div class="graph" style={{ width: `${width}px`, height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          <path d={lines.join("")} />
        </svg>
        {/* read in the order of the columns */}
        {placed.map(({ index }) => {
          const { x, y } = at.get(index)!;
          return (
            <div key={index} class="graph-place" style={{ transform: `translate(${x}px, ${y}px)` }}>
              <Box stage={byIndex.get(index)!} open={open === index} onOpen={() => onOpen(index)} />
            </div>
          );
        })}
      </div>
    </div>
  );
};

interface GraphProps {
  readonly stages: readonly StageView[];
  readonly open: number | undefined;
  readonly onOpen: (index: number) => void;
}

/** What a click on a box shows. */
const Opened = ({ run, stage }: { run: RunView; stage: StageView }) => (
  <section class="card" aria-label={`Stage ${stage.name}`}>
    <header>
      <h2>{stage.name}</h2>
      {stage.kind === "group" && (
        <a href={`${to("runs", run.id, "tasks")}?group=${encodeURIComponent(stage.name)}`}>Its tasks in the table</a>
      )}
    </header>
    <div class="pad stack">
      <Legend
        counts={stage.counts}
        {...(stage.kind === "group"
          ? {
              href: (word: string) =>
                `${to("runs", run.id, "tasks")}?group=${encodeURIComponent(stage.name)}&state=${word}`,
            }
          : {})}
      />
      <StageFacts run={run} stage={stage} />
    </div>
    {stage.kind === "fold" && <Fold run={run} stage={stage} />}
  </section>
);

export const Stages = ({ run }: { run: RunView }) => {
  const [open, setOpen] = useState<number | undefined>(undefined);
  const loaded = useFetched<StagePage>(`runs/${run.id}/stages`);
  const told: StagesView | undefined = liveRun.value?.run.id === run.id ? liveRun.value : undefined;
  const value = told ?? loaded.value;
  return (
    <Loaded from={{ ...loaded, value }}>
      {({ stages, folded }) => {
        const chosen = stages.find(({ index }) => index === open) ?? (stages.length === 1 ? stages[0] : undefined);
        return (
          <div class="stack">
            {folded && (
              <p class="dim">
                {count(stages.reduce((sum, { groups }) => sum + groups, 0))} groups, folded by how far they are from the
                beginning. A click opens a fold.
              </p>
            )}
            <Graph
              stages={stages}
              open={chosen?.index}
              onOpen={(index) => setOpen(index === open ? undefined : index)}
            />
            {chosen !== undefined && <Opened run={run} stage={chosen} />}
          </div>
        );
      }}
    </Loaded>
  );
};
