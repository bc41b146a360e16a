import { describe, expect, it } from "vitest";
import { packResults, unpackResults } from "../../../src/core/columns.ts";
import { cpuUnits } from "../../../src/core/cpu-time.ts";
import { encodeEvent } from "../../../src/core/codec.ts";
import { Ending, type ResultColumns } from "../../../src/core/events.ts";
import { PeakBy, peakPages } from "../../../src/core/peak.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { efficiencyScreen } from "../../../src/cli/render/efficiency.ts";
import { efficiencyView } from "../../../src/views/efficiency.ts";
import { createDriver, group, spec } from "../core/model.ts";
import { replayAll, same, snapshotOf } from "../core/replays.ts";

const MIB = 2 ** 20;

const results = (row: number, more: Partial<ResultColumns>): ResultColumns => ({
  run: 1,
  rows: Uint32Array.of(row),
  attempt: 1,
  ending: Ending.EXIT,
  code: 0,
  started: 10_000,
  finished: 20_000,
  outAt: -1,
  outBytes: 0,
  errBytes: 0,
  details: [],
  ...more,
});

/** A run of one group, and results as agents would send them. */
const begin = (count: number, more: Partial<GroupSpec>) => {
  const driver = createDriver();
  const run = driver.submit(spec([group("a", count, more)]));
  const agents = [driver.join(), driver.join()] as const;
  let seq = 0;
  return {
    driver,
    run,
    agents,
    end: (row: number, more_: Partial<ResultColumns> = {}): void => {
      // over the wire and through the journal
      const parts = [unpackResults(packResults(results(row, more_)))];
      driver.send({ type: "tasks.ended", at: 20_000, agent: agents[0], seq: (seq += 1), parts });
    },
    seen: () => efficiencyView(run).groups[0]!,
  };
};

describe("efficiency", () => {
  it("compares what tasks that ended well asked for with what they used, and says what would have done", () => {
    const { driver, run, agents, end, seen } = begin(4, {
      resources: { cpus: 4 * FRACTION, mem: 1000 * MIB },
      timeRequest: 60,
    });
    for (const row of [0, 1, 2, 3]) driver.assign(agents[0], run.id, row);
    expect(seen()).toMatchObject({ tasks: 0, cores: { requested: null, used: null, enough: null } });
    end(0, { cpu: cpuUnits(10_000), peak: peakPages(100 * MIB), peakBy: PeakBy.CGROUP });
    end(1, { cpu: cpuUnits(25_000), peak: peakPages(300 * MIB), peakBy: PeakBy.RUSAGE, finished: 30_000 });
    // nobody could tell, and one that failed teaches nothing
    end(2);
    end(3, { code: 1, cpu: cpuUnits(90_000), peak: peakPages(900 * MIB), peakBy: PeakBy.CGROUP });
    expect(seen()).toEqual({
      name: "a",
      tasks: 3,
      ranks: 1,
      cores: { requested: 4, used: 1.17, enough: 2 },
      memory: { requested: 1000 * MIB, used: 200 * MIB, enough: 300 * MIB },
      time: { requested: 60, used: 13.33, enough: 20 },
      killed: 0,
    });
    expect(efficiencyScreen(efficiencyView(run))).toMatch(
      /GROUP +TASKS +CORES +ENOUGH +MEMORY +ENOUGH +TIME +ENOUGH\na +3 +1\.17 of 4 +2 +200M of 1000M +300M +13\.3s of 1m +20s/,
    );
  });

  it("suggests no more cores than a task asked for that used less, and as many as one used that took more", () => {
    const half = begin(1, { resources: { cpus: FRACTION / 2 } });
    half.driver.assign(half.agents[0], half.run.id, 0);
    half.end(0, { cpu: cpuUnits(400) });
    expect(half.seen().cores).toEqual({ requested: 0.5, used: 0.04, enough: 0.5 });
    const more = begin(1, { resources: { cpus: FRACTION / 2 } });
    more.driver.assign(more.agents[0], more.run.id, 0);
    more.end(0, { cpu: cpuUnits(13_000) });
    expect(more.seen().cores).toEqual({ requested: 0.5, used: 1.3, enough: 2 });
  });

  it("says of which groups it knows nothing, what is counted for each rank, and how much it left out", () => {
    const one = { requested: 1, used: 1, enough: 1 };
    const known = { name: "a", tasks: 1, ranks: 2, cores: one, memory: one, time: one, killed: 0 };
    const empty = Array.from({ length: 7 }, (_, i) => ({ ...known, name: `e${i}`, tasks: 0 }));
    const screen = efficiencyScreen({ run: 1, groups: [known, ...empty], groupsLeftOut: 12 });
    expect(screen.split("\n").slice(-4)).toEqual([
      expect.stringContaining("ENOUGH is the request that would have done"),
      "with ranks: CORES are those of all ranks together, MEMORY and ENOUGH are for each rank",
      "no task has ended well of e0, e1, e2, e3, e4 and 2 more",
      "12 more groups are not shown",
    ]);
    expect(efficiencyScreen({ run: 1, groups: [{ ...known, ranks: 1 }], groupsLeftOut: 0 }).split("\n")).toHaveLength(
      4,
    );
  });

  it("counts all ranks of a task on all its nodes; what to ask for is for each rank", () => {
    const ranks = { count: 4, nodes: 2, by: "agents" as const };
    const { driver, run, agents, end, seen } = begin(1, { resources: { cpus: 2 * FRACTION, mem: 500 * MIB }, ranks });
    driver.assign(agents[0], run.id, 0, [agents[1]]);
    const other = { run: run.id, row: 0, attempt: 1, agent: agents[1], ending: Ending.EXIT, code: 0, detail: "" };
    const told = { ...other, outAt: -1, outBytes: 0, errBytes: 0, peak: { bytes: 400 * MIB, by: PeakBy.CGROUP } };
    for (let twice = 0; twice < 2; twice += 1)
      driver.send({ type: "ranks.ended", at: 1, ...told, cpu: cpuUnits(20_000) });
    end(0, { cpu: cpuUnits(30_000), peak: peakPages(100 * MIB), peakBy: PeakBy.CGROUP });
    expect(seen()).toMatchObject({
      ranks: 4,
      cores: { requested: 8, used: 5, enough: 2 },
      memory: { requested: 500 * MIB, used: 400 * MIB, enough: 400 * MIB },
    });
    const records = driver.events.map((event) => encodeEvent(event));
    same(replayAll(records, 5), driver.state);
    same(replayAll(snapshotOf(driver.state), 5), driver.state);
  });

  it("where nothing was measured, nothing is claimed", () => {
    const { driver, run, agents, end, seen } = begin(1, {});
    driver.assign(agents[0], run.id, 0);
    end(0);
    expect(seen()).toMatchObject({
      cores: { requested: 1, used: null, enough: null },
      memory: { requested: null, used: null, enough: null },
      time: { requested: null, used: 10, enough: 10 },
    });
  });
});
