import { describe, expect, it } from "vitest";
import { MOST_STAGES } from "../../../src/api/stages.ts";
import { type Medians, medianOf, stagePage, stageViews } from "../../../src/views/stages.ts";
import { after, createDriver, group, spec } from "../core/model.ts";

const NONE: Medians = () => null;

describe("stages", () => {
  it("are the groups, with counts and what they wait for", () => {
    const driver = createDriver();
    const run = driver.submit(
      spec([group("<b>a</b>", 3), group("b", 1, { after: after(0) }), group("c", 2, { after: after(0, 1) })]),
    );
    const agent = driver.join();
    for (const row of [0, 1]) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0], 0);
    const { stages, folded } = stageViews(run, NONE);
    expect(folded).toBe(false);
    expect(
      stages.map(({ name, level, after, total, first, last }) => [name, level, after, total, first, last]),
    ).toEqual([
      ["<b>a</b>", 1, [], 3, 0, 2],
      ["b", 2, [0], 1, 3, 3],
      ["c", 3, [0, 1], 2, 4, 5],
    ]);
    expect(stages[0]!.counts).toEqual({ DONE: 1, TMGR_SCHEDULING: 1, TMGR_SCHEDULING_PENDING: 1 });
    expect(stages[2]!.counts).toEqual({ NEW: 2 });
  });

  it("the middle of what they took comes from tasks that are done, of many from some", () => {
    const driver = createDriver();
    const run = driver.submit(spec([group("a", 2000)]));
    const agent = driver.join();
    expect(medianOf(run, run.groups)).toBe(null);
    for (let row = 0; row < 2000; row += 1) {
      driver.assign(agent, run.id, row);
      driver.end(agent, run.id, [row], 0);
      const page = run.table.pages[0]!;
      page.started[row] = 1000;
      page.finished[row] = 1000 + (row % 2 === 0 ? 4000 : 4002);
    }
    expect(medianOf(run, run.groups)).toBeCloseTo(4, 1);
  });

  it("a chain of more groups than are shown is folded by level, and every group is in one fold", () => {
    const chain = Array.from({ length: 1234 }, (_, i) => group(`t${i}`, 1, i === 0 ? {} : { after: after(i - 1) }));
    const run = createDriver().submit(spec(chain));
    const { stages, folded } = stageViews(run, NONE);
    expect([folded, stages.length]).toEqual([true, MOST_STAGES]);
    expect(stages.reduce((sum, { total }) => sum + total, 0)).toBe(1234);
    expect(stages[5]).toMatchObject({ kind: "fold", after: [4], level: 1 + stages[4]!.level + stages[4]!.total - 1 });
    const found = stages.flatMap(({ index }) => {
      const names: string[] = [];
      for (let cursor: number | null = 0; cursor !== null;) {
        const page = stagePage(run, { level: index, cursor, limit: 4 }, NONE);
        names.push(...page.stages.map(({ name }) => name));
        cursor = page.next;
      }
      return names;
    });
    expect(found).toEqual(chain.map(({ name }) => name));
  });

  it("a wide graph is a few levels; a level that is not there is empty", () => {
    const wide = [
      ...Array.from({ length: 300 }, (_, i) => group(`w${i}`, 2)),
      group("end", 1, { after: after(0, 299) }),
    ];
    const run = createDriver().submit(spec(wide));
    expect(stageViews(run, NONE).stages).toMatchObject([
      { name: "level 1", total: 600, groups: 300, after: [] },
      { name: "level 2", total: 1, groups: 1, after: [0] },
    ]);
    expect(stagePage(run, { level: 7, cursor: undefined, limit: 10 }, NONE)).toEqual({
      stages: [],
      folded: false,
      next: null,
    });
  });
});
