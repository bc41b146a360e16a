import type { EfficiencyView, RunView } from "../../../src/api/schemas.ts";
import { useFetched } from "../../data/fetched.ts";
import { bytes, count } from "../../format/numbers.ts";
import { isFinal } from "../../format/progress.ts";
import { duration } from "../../format/time.ts";
import { Empty, Loaded } from "../../parts/blocks.tsx";

/** What tasks asked for, what they used, and what would have done. */

type Group = EfficiencyView["groups"][number];

const known = (value: number | null, text: (value: number) => string) => (value === null ? "–" : text(value));
const cores = (value: number): string => count(Math.round(value * 100) / 100);

const Compared = ({ of, text }: { of: Group["cores"]; text: (value: number) => string }) => (
  <>
    <td class="num">{known(of.requested, text)}</td>
    <td class="num">{known(of.used, text)}</td>
    <td class="num">
      <strong>{known(of.enough, text)}</strong>
    </td>
  </>
);

export const Efficiency = ({ run }: { run: RunView }) => {
  const efficiency = useFetched<EfficiencyView>(`runs/${run.id}/efficiency`, isFinal(run.state) ? undefined : 10_000);
  return (
    <Loaded from={efficiency}>
      {({ groups, groupsLeftOut }) =>
        groups.every(({ tasks }) => tasks === 0) ? (
          <Empty>No task has ended well yet.</Empty>
        ) : (
          <section class="card" aria-label="Efficiency">
            <div class="table-scroll" tabIndex={0} role="region" aria-label="Requested and used, group by group">
              <table class="plain">
                <thead>
                  <tr>
                    <th rowSpan={2}>Group</th>
                    <th rowSpan={2} class="num">
                      Ended well
                    </th>
                    <th colSpan={3} scope="colgroup" class="num">
                      Cores
                    </th>
                    <th colSpan={3} scope="colgroup" class="num">
                      Memory
                    </th>
                    <th colSpan={3} scope="colgroup" class="num">
                      Time
                    </th>
                    <th rowSpan={2} class="num">
                      Killed for memory
                    </th>
                  </tr>
                  <tr>
                    {["cores", "memory", "time"].flatMap((what) =>
                      ["asked", "used", "enough"].map((each) => (
                        <th key={what + each} class="num">
                          {each}
                        </th>
                      )),
                    )}
                  </tr>
                </thead>
                <tbody>
                  {groups.map((group) => (
                    <tr key={group.name}>
                      <td>{group.name}</td>
                      <td class="num">{count(group.tasks)}</td>
                      <Compared of={group.cores} text={cores} />
                      <Compared of={group.memory} text={bytes} />
                      <Compared of={group.time} text={duration} />
                      <td class="num">{count(group.killed)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            {groupsLeftOut > 0 && <p class="pad dim">And {count(groupsLeftOut)} more groups.</p>}
          </section>
        )
      }
    </Loaded>
  );
};
