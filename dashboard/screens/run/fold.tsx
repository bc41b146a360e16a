import { useEffect, useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import type { StagePage, StageView } from "../../../src/api/stages.ts";
import { get, query } from "../../data/api.ts";
import { to } from "../../data/route.ts";
import { count } from "../../format/numbers.ts";
import { duration } from "../../format/time.ts";
import { sayError } from "../../parts/said.tsx";
import { Bar } from "../../parts/state.tsx";

/** The groups of a fold, page by page. */
export const Fold = ({ run, stage }: { run: RunView; stage: StageView }) => {
  const [groups, setGroups] = useState<readonly StageView[]>([]);
  const [next, setNext] = useState<number | null>(null);
  const load = async (cursor: number | undefined): Promise<void> => {
    const page = await get<StagePage>(`runs/${run.id}/stages${query({ level: stage.index, cursor, limit: 100 })}`);
    setGroups((before) => (cursor === undefined ? page.stages : [...before, ...page.stages]));
    setNext(page.next);
  };
  useEffect(() => void load(undefined).catch(sayError), [run.id, stage.index]);
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`Groups of ${stage.name}`}>
        <table class="plain">
          <thead>
            <tr>
              <th>Group</th>
              <th class="wide">Progress</th>
              <th class="num">Tasks</th>
              <th class="num">Failed</th>
              <th class="num">In the middle</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <tr key={group.index}>
                <td>
                  <a href={`${to("runs", run.id, "tasks")}?group=${encodeURIComponent(group.name)}`}>{group.name}</a>
                </td>
                <td class="wide">
                  <Bar counts={group.counts} total={group.total} />
                </td>
                <td class="num">{count(group.total)}</td>
                <td class="num">{count(group.counts["FAILED"] ?? 0)}</td>
                <td class="num">{duration(group.seconds.p50)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {next !== null && (
        <div class="pad">
          <button type="button" class="button" onClick={() => void load(next).catch(sayError)}>
            Load more
          </button>
        </div>
      )}
    </>
  );
};
