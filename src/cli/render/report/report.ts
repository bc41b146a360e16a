import type { FailuresView } from "../../../api/failures.ts";
import type { EfficiencyView, RunView } from "../../../api/schemas.ts";
import type { StagesView } from "../../../api/stages.ts";
import type { TimelineView } from "../../../api/timeline.ts";
import { formatDuration, formatSize } from "../../../core/quantities.ts";
import { stateWord } from "../../../core/state-words.ts";
import { count } from "../text.ts";
import { type Html, html } from "./html.ts";
import { graph, timeline } from "./pictures.ts";

/** A run as one page to mail or keep: it loads nothing, runs no script, and holds everything it shows. */
export interface Report {
  readonly run: RunView;
  readonly stages: StagesView;
  readonly timeline: TimelineView;
  readonly failures: FailuresView;
  readonly efficiency: EfficiencyView;
}

const STYLE = `
:root { color-scheme: light dark; --text: #1c2430; --back: #fff; --line: #c5ccd6; --soft: #f3f5f8; --done: #2f7d4f;
  --failed: #b3261e; --cancelled: #8a6d00; --running: #1f5fbf; --other: #6b7482; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ee; --back: #14181e; --line: #3b4450; --soft: #1d232b;
  --done: #5bbd84; --failed: #f0766d; --cancelled: #d9b83f; --running: #6ea8ff; --other: #9aa4b2; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 64rem;
  margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.25; } h1 { overflow-wrap: anywhere; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
code { font: .92em ui-monospace, monospace; background: var(--soft); padding: .05rem .25rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } svg { background: var(--soft); } svg text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .name { font-weight: 600; } .box { fill: var(--back); stroke: var(--line); } .edge { fill: none; stroke: var(--other); }
rect { fill: var(--other); } .done { fill: var(--done); color: var(--done); } .failed { fill: var(--failed); color: var(--failed); }
.cancelled { fill: var(--cancelled); color: var(--cancelled); } .running { fill: var(--running); color: var(--running); }
rect.box { fill: var(--back); }
`;

const secondsBetween = (from: string | null, to: string | null): string =>
  from === null || to === null
    ? "–"
    : formatDuration(Math.max(0, Math.round((Date.parse(to) - Date.parse(from)) / 100) / 10));

/** `2026-11-18 07:21:06 UTC` */
const time = (text: string | null): string => (text === null ? "–" : `${text.slice(0, 19).replace("T", " ")} UTC`);

const row = (name: string, value: string | Html): Html =>
  html`<tr>
    <th scope="row">${name}</th>
    <td>${value}</td>
  </tr>`;

const facts = ({ run }: Report): Html => {
  const counts = Object.entries(run.counts)
    .map(([state, tasks]) => `${count(tasks)} ${stateWord(state)}`)
    .join(", ");
  const rows = [
    row("state", html`<strong class="${stateWord(run.state)}">${stateWord(run.state)}</strong>`),
    row("tasks", `${count(run.total)}: ${counts}`),
    row("submitted", time(run.submitted)),
    row("began", time(run.started)),
    row("ended", time(run.finished)),
    row("took", secondsBetween(run.started, run.finished)),
    ...(run.retries + run.losses > 0
      ? [row("again", `${count(run.retries)} retries, ${count(run.losses)} losses`)]
      : []),
    ...(run.reason === null ? [] : [row("cancelled", run.reason)]),
  ];
  return html`<table>
    ${rows}
  </table>`;
};

const stageTable = ({ stages: { stages, folded } }: Report): Html => {
  const rows = stages.map(
    ({ name, total, counts, seconds }) =>
      html`<tr>
        <td>${name}</td>
        <td class="n">${count(total)}</td>
        <td class="n">${count(counts["DONE"] ?? 0)}</td>
        <td class="n">${count(counts["FAILED"] ?? 0)}</td>
        <td class="n">${count(counts["CANCELED"] ?? 0)}</td>
        <td class="n">${seconds.p50 === null ? "–" : formatDuration(seconds.p50)}</td>
      </tr>`,
  );
  return html`<table>
    <thead>
      <tr>
        <th scope="col">${folded ? "level" : "stage"}</th>
        <th scope="col" class="n">tasks</th>
        <th scope="col" class="n">done</th>
        <th scope="col" class="n">failed</th>
        <th scope="col" class="n">cancelled</th>
        <th scope="col" class="n">took, in the middle</th>
      </tr>
    </thead>
    <tbody>
      ${rows}
    </tbody>
  </table>`;
};

const failureTable = ({ failures: { failed, groups, more } }: Report): Html => {
  if (failed === 0) return html`<p>No task failed.</p>`;
  const rows = groups.map(
    ({ count: tasks, tasks: first, lastLine, why }) =>
      html`<tr>
        <td class="n">${count(tasks)}</td>
        <td>${why.detail}${lastLine === null ? null : html`<br /><code>${lastLine}</code>`}<br />${why.remedy}</td>
        <td>${first.map(({ id }) => id).join(", ")}${tasks > first.length ? " …" : ""}</td>
      </tr>`,
  );
  return html`<table>
      <thead>
        <tr>
          <th scope="col" class="n">tasks</th>
          <th scope="col">why the first of them failed</th>
          <th scope="col">which</th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
    ${more.groups === 0 ? null : html`<p>${count(more.tasks)} more tasks failed in ${count(more.groups)} other ways.</p>`}`;
};

const amount = (value: number | null, text: (value: number) => string): string => (value === null ? "–" : text(value));

const efficiencyTable = ({ efficiency: { groups, groupsLeftOut } }: Report): Html => {
  const known = groups.filter(({ tasks }) => tasks > 0);
  if (known.length === 0) return html`<p>No task has ended well.</p>`;
  const cells = (
    { requested, used, enough }: (typeof known)[number]["cores"],
    text: (value: number) => string,
  ): readonly Html[] => [
    html`<td class="n">${amount(used, text)} of ${amount(requested, text)}</td>`,
    html`<td class="n">${amount(enough, text)}</td>`,
  ];
  const rows = known.map(
    ({ name, tasks, cores, memory, time: took }) =>
      html`<tr>
        <td>${name}</td>
        <td class="n">${count(tasks)}</td>
        ${cells(cores, String)}${cells(memory, formatSize)}${cells(took, (value) => formatDuration(Math.round(value * 10) / 10))}
      </tr>`,
  );
  return html`<div class="wide">
      <table>
        <thead>
          <tr>
            <th scope="col">stage</th>
            <th scope="col" class="n">tasks</th>
            <th scope="col" class="n">cores</th>
            <th scope="col" class="n">enough</th>
            <th scope="col" class="n">memory</th>
            <th scope="col" class="n">enough</th>
            <th scope="col" class="n">time</th>
            <th scope="col" class="n">enough</th>
          </tr>
        </thead>
        <tbody>
          ${rows}
        </tbody>
      </table>
    </div>
    <p>
      Used of requested, in the mean of tasks that ended well; enough is the request that would have done for all of
      them. ${groupsLeftOut > 0 ? `${count(groupsLeftOut)} more stages are not shown.` : ""}
    </p>`;
};

/** The whole page. Its policy lets a browser load and run nothing, whatever it holds. */
export const reportPage = (report: Report): string => {
  const { run } = report;
  const title = `${run.name}: run ${run.id}`;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        <style>
          ${{ html: STYLE }}
        </style>
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${facts(report)}
          <h2>Graph</h2>
          ${graph(report.stages)} ${stageTable(report)}
          <h2>Timeline</h2>
          ${timeline(report.timeline)}
          <h2>Failures</h2>
          ${failureTable(report)}
          <h2>Efficiency</h2>
          ${efficiencyTable(report)}
          <p>Made by slipway report.</p>
        </main>
      </body>
    </html> `.html;
};
