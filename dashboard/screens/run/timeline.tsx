import { useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import type { TimelineView } from "../../../src/api/timeline.ts";
import { get, query } from "../../data/api.ts";
import { useFetched } from "../../data/fetched.ts";
import { COLOURS } from "../../format/bars.ts";
import { count, plural } from "../../format/numbers.ts";
import { isFinal } from "../../format/progress.ts";
import { traceOf } from "../../format/trace.ts";
import { Empty, Loaded } from "../../parts/blocks.tsx";
import { say, sayError } from "../../parts/said.tsx";
import { groupNames } from "./bar-text.tsx";
import { TimelineCanvas } from "./timeline-canvas.tsx";

/** When tasks ran, and where. What is folded when all of it is in sight opens as one looks closer. */

const exportTrace = async (run: RunView): Promise<void> => {
  const view = await get<TimelineView>(`runs/${run.id}/timeline`);
  const trace = JSON.stringify(traceOf(run.id, view, groupNames(run)));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([trace], { type: "application/json" }));
  link.download = `slipway-run-${run.id}.trace.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  say(`${plural(view.lane.length, "bar")} saved; open the file at ui.perfetto.dev or in chrome://tracing.`);
};

export const Timeline = ({ run }: { run: RunView }) => {
  const [range, setRange] = useState<{ from: number; to: number } | undefined>(undefined);
  const asked = range === undefined ? "" : query({ from: Math.floor(range.from), to: Math.ceil(range.to) });
  const every = isFinal(run.state) ? undefined : run.total > 20_000 ? 15_000 : 4000;
  const loaded = useFetched<TimelineView>(`runs/${run.id}/timeline${asked}`, every);
  const [last, setLast] = useState<TimelineView | undefined>(undefined);
  if (loaded.value !== undefined && loaded.value !== last) setLast(loaded.value);
  return (
    <Loaded from={{ ...loaded, value: loaded.value ?? last }}>
      {(view) =>
        view.began === null || (view.lane.length === 0 && range === undefined) ? (
          <Empty>Nothing has run yet.</Empty>
        ) : (
          <section class="card" aria-label="Timeline">
            <header>
              <span class="soft">
                {plural(view.bars, "attempt")} on {plural(view.lanes.length, "lane")}
                {view.folded && <span class="dim">, neighbours drawn as one: look closer to see each</span>}
              </span>
              <span class="row">
                <span class="dim hide-narrow">
                  drag to move, <kbd>Ctrl</kbd> and wheel or <kbd>+</kbd> <kbd>−</kbd> to zoom, <kbd>0</kbd> for all
                </span>
                <button type="button" class="button" onClick={() => void exportTrace(run).catch(sayError)}>
                  Export for Perfetto
                </button>
              </span>
            </header>
            <TimelineCanvas run={run} view={view} onRange={setRange} />
            <div class="legend pad">
              {COLOURS.filter((word) => word !== "waiting" && word !== "starting").map((word) => (
                <span key={word}>
                  <i class="swatch" data-state={word} /> {word}
                </span>
              ))}
            </div>
            <p class="visually-hidden">
              The same tasks are in the table, with their hosts, starts and durations. {count(view.lane.length)} bars
              are drawn.
            </p>
          </section>
        )
      }
    </Loaded>
  );
};
