import type { RunView } from "../../../src/api/schemas.ts";
import type { TimelineView } from "../../../src/api/timeline.ts";
import { stateWord } from "../../../src/core/state-words.ts";
import { serverNow } from "../../data/clock.ts";
import { liveRun } from "../../data/live.ts";
import { count } from "../../format/numbers.ts";
import { duration } from "../../format/time.ts";

/** What a bar of the timeline stands for, in words. */

export const groupNames = (run: RunView): ReadonlyMap<number, string> =>
  new Map([
    ...(run.groups ?? []).map(({ name }, i) => [i, name] as const),
    ...(liveRun.peek()?.stages ?? [])
      .filter(({ kind }) => kind === "group")
      .map(({ index, name }) => [index, name] as const),
  ]);

/** Until where what still runs is drawn. */
export const nowOf = (view: TimelineView): number =>
  view.began === null ? 0 : Math.max(view.until, Math.min(serverNow() - Date.parse(view.began), view.until + 5000));

export const BarText = ({ run, view, bar }: { run: RunView; view: TimelineView; bar: number }) => {
  const many = view.count?.[bar] ?? 1;
  const state = stateWord(view.states[view.state[bar]!]!);
  const running = view.end[bar]! < 0;
  const seconds = ((running ? nowOf(view) : view.end[bar]!) - view.start[bar]!) / 1000;
  return (
    <>
      <div class="row">
        <strong class="mono">
          {run.id}.{view.task[bar]}
        </strong>
        {many > 1 ? (
          <span>
            and {count(many - 1)} more{(view.failed?.[bar] ?? 0) > 0 && `, ${count(view.failed![bar]!)} failed`}
          </span>
        ) : (
          <span class="state" data-state={state}>
            {state}
          </span>
        )}
      </div>
      <div class="soft">
        {groupNames(run).get(view.group[bar]!) ?? ""} {running ? "for " : ""}
        {duration(seconds)}
        {view.attempt[bar]! > 1 && `, attempt ${view.attempt[bar]}`}
      </div>
      <div class="dim">
        {view.lanes[view.lane[bar]!]!.host}, from {duration(view.start[bar]! / 1000)} on
      </div>
    </>
  );
};
