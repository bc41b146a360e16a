import type { StagesView, StageView } from "../../../api/stages.ts";
import type { TimelineView } from "../../../api/timeline.ts";
import { stateWord as peopleState } from "../../../core/state-words.ts";
import { type Html, html } from "./html.ts";
import { formatDuration } from "../../../core/quantities.ts";
import { count } from "../text.ts";

/** The graph and the timeline of a report, as pictures in the page itself. */

const WIDTH = 960;
const BOX = { width: 190, height: 52, gapX: 40, gapY: 14 } as const;
/** Boxes in one column of the graph; the rest of a level is counted. */
const MOST_IN_A_LEVEL = 12;

const SHARES = ["DONE", "FAILED", "CANCELED", "AGENT_EXECUTING"] as const;

/** A bar in the box: how much of it is done, failed, cancelled, running. */
const shares = ({ counts, total }: StageView, x: number, y: number): readonly Html[] => {
  let from = 0;
  return SHARES.flatMap((state) => {
    const part = ((counts[state] ?? 0) / Math.max(1, total)) * (BOX.width - 16);
    const bar = html`<rect
      class="${peopleState(state)}"
      x="${x + 8 + from}"
      y="${y + 36}"
      width="${part}"
      height="8"
    />`;
    from += part;
    return part > 0 ? [bar] : [];
  });
};

const short = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

interface Placed {
  readonly stage: StageView;
  readonly x: number;
  readonly y: number;
}

/** Stages side by side by how far from the beginning they are. */
const place = (stages: readonly StageView[]): { placed: Placed[]; left: number; columns: number; rows: number } => {
  const levels = [...new Set(stages.map(({ level }) => level))].toSorted((a, b) => a - b);
  const placed: Placed[] = [];
  let left = 0;
  let rows = 0;
  for (const [column, level] of levels.entries()) {
    const mine = stages.filter((stage) => stage.level === level);
    left += Math.max(0, mine.length - MOST_IN_A_LEVEL);
    rows = Math.max(rows, Math.min(mine.length, MOST_IN_A_LEVEL));
    for (const [row, stage] of mine.slice(0, MOST_IN_A_LEVEL).entries())
      placed.push({ stage, x: column * (BOX.width + BOX.gapX) + 1, y: row * (BOX.height + BOX.gapY) + 1 });
  }
  return { placed, left, columns: levels.length, rows };
};

export const graph = ({ stages }: StagesView): Html => {
  const { placed, left, columns, rows } = place(stages);
  const byIndex = new Map(placed.map((each) => [each.stage.index, each]));
  const edges = placed.flatMap((to) =>
    to.stage.after.flatMap((index) => {
      const from = byIndex.get(index);
      if (from === undefined) return [];
      const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
      const [x2, y2] = [to.x, to.y + BOX.height / 2];
      return [html`<path class="edge" d="M${x1} ${y1} C${x1 + 20} ${y1} ${x2 - 20} ${y2} ${x2} ${y2}" />`];
    }),
  );
  const boxes = placed.map(({ stage, x, y }) => {
    const { name, total, counts } = stage;
    const failed = counts["FAILED"] ?? 0;
    const said = `${count(counts["DONE"] ?? 0)} of ${count(total)} done${failed > 0 ? `, ${count(failed)} failed` : ""}`;
    return html`<g>
      <title>${name}: ${said}</title>
      <rect class="box" x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="4" />
      <text x="${x + 8}" y="${y + 16}" class="name">${short(name, 26)}</text>
      <text x="${x + 8}" y="${y + 30}">${said}</text>
      ${shares(stage, x, y)}
    </g> `;
  });
  const width = Math.max(1, columns * (BOX.width + BOX.gapX) - BOX.gapX + 2);
  const height = Math.max(1, rows * (BOX.height + BOX.gapY) - BOX.gapY + 2);
  return html`<div class="wide">
      <svg role="img" aria-label="the stages of the run" width="${width}" height="${height}">${edges}${boxes}</svg>
    </div>
    ${left > 0 ? html`<p>${count(left)} more stages are not drawn.</p>` : null}`;
};

const LANE = 9;
/** Lanes that are drawn: more are drawn thinner, together. */
const MOST_LANES = 120;

export const timeline = (view: TimelineView): Html => {
  if (view.lane.length === 0) return html`<p>Nothing has run.</p>`;
  const rows = Math.min(view.lanes.length, MOST_LANES);
  const rowOf = (lane: number): number => Math.floor((lane * rows) / view.lanes.length);
  const scale = (WIDTH - 2) / Math.max(1, view.to - view.from);
  const bars = view.lane.map((lane, i) => {
    const start = Math.max(view.from, view.start[i]!);
    const end = view.end[i] === -1 ? view.to : view.end[i]!;
    const state = peopleState(view.states[view.state[i]!] ?? "");
    const [x, width] = [1 + (start - view.from) * scale, Math.max(0.6, (end - start) * scale)];
    return html`<rect
      class="${state}"
      x="${Number(x.toFixed(2))}"
      y="${rowOf(lane) * LANE + 1}"
      width="${Number(width.toFixed(2))}"
      height="${LANE - 2}"
    />`;
  });
  const hosts = new Set(view.lanes.map(({ host }) => host));
  return html`<div class="wide">
      <svg role="img" aria-label="when tasks ran" width="${WIDTH}" height="${rows * LANE + 2}">${bars}</svg>
    </div>
    <p>
      ${formatDuration(Math.round(view.to / 1000))} on ${count(hosts.size)} ${hosts.size === 1 ? "host" : "hosts"}, up
      to ${count(view.lanes.reduce((sum, { of }) => sum + of, 0))} tasks at once;
      ${view.folded ? html`${count(view.bars)} attempts, neighbours drawn as one.` : html`${count(view.bars)} attempts.`}
    </p>`;
};
