import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEvent, encodeEvent } from "../../../src/core/codec.ts";
import { Ending } from "../../../src/core/events.ts";
import { countsOfGroup, countsOfGroups } from "../../../src/core/group-counts.ts";
import { Lost, lostOf } from "../../../src/core/output-lost.ts";
import { attemptsOf, droppedOf } from "../../../src/core/past-attempts.ts";
import { PeakBy } from "../../../src/core/peak.ts";
import { FRACTION } from "../../../src/core/resources.ts";
import { isSkipped, mayBeSkipped } from "../../../src/core/skipped.ts";
import { retriesOf, setOf } from "../../../src/core/retry-set.ts";
import { type Run, type Shape, groupOf, runState, shapeOfRow } from "../../../src/core/run.ts";
import type { StateRecord } from "../../../src/core/snapshot.ts";
import type { Dependency } from "../../../src/core/spec.ts";
import { TASK_STATES, Task, isFinalTask, mayAdvanceTask } from "../../../src/core/states.ts";
import { followerOf, mayGoBehind, oneBefore, rowsAfter } from "../../../src/core/ahead.ts";
import { isAhead } from "../../../src/core/held.ts";
import { Flag, isReady, peek } from "../../../src/core/table.ts";
import { carrierOf, carries, isOver, waits } from "../../../src/core/task-job.ts";
import { type Driver, after, createDriver, group, runToEnd, spec } from "./model.ts";
import { replayAll, same, snapshotOf } from "./replays.ts";

/** Random histories of submits, assignments, jobs of tasks, results, losses, cancellations, retries and restarts. */

/** A row as it was; `asks` while an agent has it. */
interface Seen {
  readonly state: number;
  readonly attempt: number;
  readonly asks: Shape | undefined;
}

/** A task waits in one place: here, or for one job. An agent in a job has its own task or none. */
const checkJobs = (driver: Driver): void => {
  const { state, ready } = driver;
  const carried = new Map<string, number>();
  for (const { run, row, agent } of heldBy(driver)) {
    const of = state.agents.get(agent)?.taskJob;
    const job = state.taskJobs.get(of?.id ?? 0);
    if (of !== undefined) expect([run, row]).toEqual([job?.run, job?.elements[of.element]?.row]);
  }
  for (const job of state.taskJobs.values())
    for (const element of job.elements) {
      const key = `${job.run}.${element.row}`;
      if (carries(element)) {
        expect(carried.get(key), `${key} has two jobs`).toBe(undefined);
        carried.set(key, job.id);
        expect(element.agent).toBe(0);
      }
    }
  expect(
    [...state.carried].flatMap(([run, rows]) => [...rows].map(([row, job]) => [`${run}.${row}`, job])).toSorted(),
  ).toEqual([...carried].toSorted());
  for (const run of state.runs.values())
    for (let row = 0; row < run.total; row += 1) {
      const key = `${run.id}.${row}`;
      if (!waits(run, row)) continue;
      const places = Number(ready.get(run.id)?.has(row) ?? false) + Number(carried.has(key));
      expect(places, `${key} waits in ${places} places`).toBe(1);
    }
};

/** The item of a row as this test has made it: a number, or `{"n": …, "k": …}`. */
const itemOfRow = (run: Run, row: number): { text: string; key: string | undefined } => {
  const { spec: of, items, first } = groupOf(run.groups, row);
  const text = items?.get(row - first) ?? (of.items.kind === "range" ? String(row - first) : "");
  return { text, key: text.startsWith("{") ? (JSON.parse(text) as { k: string }).k : undefined };
};

/** Looks at every task of the other group for each that waits by item. */
const checkLinks = (driver: Driver, run: Run): void => {
  const outcome = (row: number): "open" | "good" | "bad" => {
    const state = driver.stateOf(run, row);
    if (!isFinalTask(state)) return "open";
    const unneeded = ((peek(run.table, row)?.flags[row % run.table.pageRows] ?? 0) & Flag.UNNEEDED) !== 0;
    return TASK_STATES[state] === "DONE" || unneeded ? "good" : "bad";
  };
  for (const group of run.groups) {
    const links = group.spec.after.flatMap((each) => ("group" in each && each.items !== undefined ? [each] : []));
    if (links.length === 0) continue;
    for (let row = group.first; row < group.first + group.count; row += 1) {
      const own = itemOfRow(run, row);
      const verdicts = links.map(({ group: index, on, items }) => {
        const before = run.groups[index]!;
        const ends = Array.from({ length: before.count }, (_, i) => before.first + i)
          .filter((other) => {
            const item = itemOfRow(run, other);
            return items === "same" ? item.text === own.text : item.key === own.key;
          })
          .map(outcome);
        expect(ends.length, "each waits for something").toBeGreaterThan(0);
        const [bad, open] = [ends.includes("bad"), ends.includes("open")];
        if (on === "ok") return bad ? "never" : open ? "open" : "met";
        return open ? "open" : on === "any" || bad ? "met" : "never";
      });
      const state = driver.stateOf(run, row);
      const page = peek(run.table, row);
      const slot = row % run.table.pageRows;
      const isStopped = ((page?.flags[slot] ?? 0) & Flag.CANCEL) !== 0;
      const at = `${run.id}.${row} (${TASK_STATES[state]}): ${verdicts.join()}, waits ${group.waits}`;
      if (state > 0 && !isFinalTask(state))
        expect(
          verdicts.every((each) => each === "met"),
          at,
        ).toBe(true);
      if (state === 0 && !isStopped) {
        expect(verdicts.includes("never"), at).toBe(false);
        expect(group.waits === 0 && verdicts.every((each) => each === "met"), at).toBe(false);
      }
    }
  }
};

/** What must hold after every event. */
const check = (driver: Driver, before: Map<string, Seen>): void => {
  checkJobs(driver);
  for (const gang of driver.state.gangs.values()) {
    const run = driver.state.runs.get(gang.run)!;
    const page = peek(run.table, gang.row)!;
    const slot = gang.row % run.table.pageRows;
    expect([page.agent[slot], page.attempt[slot]]).toEqual([gang.agents[0], gang.attempt]);
    expect(isFinalTask(page.state[slot]!)).toBe(false);
    for (const agent of gang.agents)
      if (!gang.ended.has(agent)) expect(driver.state.agents.get(agent)?.ended, "a lost member").toBe(0);
  }
  for (const run of driver.state.runs.values()) {
    const counted = TASK_STATES.map(() => 0);
    for (let row = 0; row < run.total; row += 1) {
      const state = driver.stateOf(run, row);
      counted[state]! += 1;
      const attempt =
        (peek(run.table, row)?.attempt[row % run.table.pageRows] ?? 0) + (run.history.get(row)?.at(-1)?.n ?? 0) * 1000;
      const last = before.get(`${run.id}.${row}`);
      if (last !== undefined && last.attempt === attempt && last.state !== state)
        expect(
          mayAdvanceTask(last.state, state),
          `${run.id}.${row}: ${TASK_STATES[last.state]} to ${TASK_STATES[state]}`,
        ).toBe(true);
      const agent = peek(run.table, row)?.agent[row % run.table.pageRows] ?? 0;
      const asks = agent === 0 ? undefined : shapeOfRow(groupOf(run.groups, row), row);
      if (last?.attempt === attempt && last.asks !== undefined && asks !== undefined)
        expect(asks, "an attempt keeps its amounts").toBe(last.asks);
      before.set(`${run.id}.${row}`, { state, attempt, asks });
    }
    for (let row = 0; row < run.total; row += 1) {
      const { spec: of } = groupOf(run.groups, row);
      if (of.attemptResources === undefined) continue;
      const fails = peek(run.table, row)?.fails[row % run.table.pageRows] ?? 0;
      const asked = shapeOfRow(groupOf(run.groups, row), row).resources["mem"];
      const set = setOf(groupOf(run.groups, row), row);
      const retries = retriesOf(groupOf(run.groups, row), row);
      expect(asked, "mem of each attempt").toBe(set?.resources?.["mem"] ?? 4 * (Math.min(fails, retries) + 1));
    }
    for (const { spec: of, memory, laterShapes } of run.groups)
      for (const [row, { kills, mem }] of memory) {
        expect(kills, "tries with more memory").toBeLessThanOrEqual(of.memRetry!);
        expect(laterShapes.get(row)?.resources["mem"], "what it was given").toBe(mem);
      }
    for (const [row, past] of run.history) {
      const ns = past.map(({ n }) => n);
      expect(ns.length, "more earlier attempts than are kept").toBeLessThanOrEqual(8);
      expect(ns, "each earlier attempt once, in order").toEqual([...new Set(ns)].toSorted((a, b) => a - b));
      const total = attemptsOf(run, row).at(-1)?.n ?? 0;
      expect(attemptsOf(run, row).length + droppedOf(run, row)).toBe(total);
    }
    for (let row = 0; row < run.total; row += 1) {
      const page = peek(run.table, row);
      const slot = row % run.table.pageRows;
      const { waits } = groupOf(run.groups, row);
      const state = driver.stateOf(run, row);
      if (state > 0 && !isFinalTask(state)) expect(waits, "what began waits for nothing").toBe(0);
      if (page !== undefined && isAhead(page, slot) && (page.flags[slot]! & Flag.CANCEL) === 0)
        expect(oneBefore(run, groupOf(run.groups, row), row), "handed ahead behind one task").not.toBe(undefined);
      const carried = driver.state.carried.get(run.id)?.has(row) === true;
      expect(driver.ready.get(run.id)?.has(row) === true, `row ${row} is queued exactly while it may be placed`).toBe(
        isReady(state, page?.agent[slot] ?? 0) && !carried,
      );
    }
    checkLinks(driver, run);
    expect([...run.counts]).toEqual(counted);
    // counted at the first look, and from then on with every move
    const byGroup = countsOfGroups(run);
    for (const { index, first, count } of run.groups) {
      const states = TASK_STATES.map(() => 0);
      for (let row = first; row < first + count; row += 1) states[driver.stateOf(run, row)]! += 1;
      expect([...countsOfGroup(byGroup, index)], `group ${index}`).toEqual(states);
    }
    const skipped = Array.from({ length: run.total }, (_, row) => row).filter((row) => isSkipped(run, row));
    expect(run.skipped).toBe(skipped.length);
    for (const row of skipped) expect(driver.stateOf(run, row), "skipped is done").toBe(Task.DONE);
    for (const each of run.groups) expect(each.done + each.failed + each.canceled).toBeLessThanOrEqual(each.count);
    const lost = Array.from({ length: run.total }, (_, row) => lostOf(run, row)).filter((each) => each !== undefined);
    expect(run.lost.tasks).toBe(lost.length);
    expect(run.lost.bytes).toBe(lost.reduce((sum, { stdout, stderr }) => sum + stdout + stderr, 0));
    expect(run.finished > 0).toBe(
      counted.reduce((sum, n, code) => (isFinalTask(code) ? sum + n : sum), 0) === run.total,
    );
  }
};

const condition = fc.constantFrom("ok" as const, "any" as const, "failed" as const);

const groups = fc.array(
  fc.record({
    count: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 })),
    retries: fc.integer({ min: 0, max: 2 }),
    /** Its mem grows with each failure. */
    grows: fc.boolean(),
    /** A kill for memory is tried again with more. */
    /** What it asks for is learned. */
    auto: fc.boolean(),
    memRetry: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    ranks: fc.boolean(),
    /** Its tasks are jobs of their own. */
    job: fc.boolean(),
    /** One task behind the one before it: it may be handed ahead. */
    link: fc.boolean(),
    deps: fc.array(fc.tuple(fc.nat(), condition), { maxLength: 2 }),
    /** Its tasks wait one by one, each for those of its item in earlier groups. */
    byItem: fc.option(
      fc.record({
        to: fc.array(fc.tuple(fc.nat(), condition), { minLength: 1, maxLength: 2 }),
        how: fc.constantFrom("alike" as const, "reversed" as const, "keyed" as const),
      }),
      { nil: undefined },
    ),
    /** On earlier runs. */
    runs: fc.array(fc.tuple(fc.nat(3), condition), { maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 5 },
);

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("assign" as const), pick: fc.nat(), agent: fc.nat(2) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("end" as const), pick: fc.nat(), code: fc.constantFrom(0, 0, 0, 1, -9) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("ahead" as const), pick: fc.nat(), deep: fc.nat(3) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("link" as const),
      pick: fc.nat(),
      deep: fc.nat(3),
      code: fc.nat(1),
      ending: fc.constantFrom(Ending.EXIT, Ending.EXIT, Ending.MEMORY, Ending.INTERRUPTED, Ending.CUT_OFF),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("interrupt" as const), pick: fc.nat() }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("request" as const),
      pick: fc.nat(),
      tasks: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("job" as const),
      pick: fc.nat(),
      to: fc.constantFrom("queued" as const, "queued" as const, "ended" as const),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("begin" as const), pick: fc.nat(), again: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("learn" as const), pick: fc.nat(), mem: fc.integer({ min: 1, max: 30 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("kill" as const), pick: fc.nat() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("ranks" as const), pick: fc.nat(), agent: fc.nat(2), code: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), agent: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cut" as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unspawn" as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const), from: fc.nat(12), count: fc.nat(5) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("skip" as const), from: fc.nat(12), count: fc.nat(5), seen: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("return" as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), pick: fc.nat(), all: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("retry" as const),
      nth: fc.nat(),
      which: fc.constantFrom("failed" as const, "all" as const),
      rows: fc.oneof(fc.constant<number[]>([]), fc.array(fc.nat(30), { minLength: 1, maxLength: 5 })),
      set: fc.option(fc.constantFrom({ resources: { mem: 64, cpus: 10_000 } }, { retries: 2, timeLimit: 5 }), {
        nil: undefined,
      }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), losses: fc.integer({ min: 0, max: 6 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      groups,
      maxFails: fc.option(fc.nat(3)),
      skipped: fc.array(fc.nat(12), { maxLength: 4 }),
    }),
  },
);

const heldBy = (driver: Driver): { run: number; row: number; agent: number }[] =>
  [...driver.state.runs.values()].flatMap((run) =>
    Array.from({ length: run.total }, (_, row) => row).flatMap((row) => {
      const page = peek(run.table, row);
      const agent = page?.agent[row % run.table.pageRows] ?? 0;
      const state = driver.stateOf(run, row);
      return agent !== 0 && state !== 1 && !isFinalTask(state) ? [{ run: run.id, row, agent }] : [];
    }),
  );

/** The rows at an agent behind one, in order. */
const behind = (driver: Driver, { run: id, row, agent }: { run: number; row: number; agent: number }): number[] => {
  const run = driver.state.runs.get(id)!;
  const rows: number[] = [];
  for (let last = row; ;) {
    const next = followerOf(run, groupOf(run.groups, last), last, agent);
    if (next === undefined) return rows;
    rows.push(next);
    last = next;
  }
};

/** Hands tasks ahead, behind those that are there already. */
const handAhead = (driver: Driver, head: { run: number; row: number; agent: number }, deep: number): void => {
  const run = driver.state.runs.get(head.run)!;
  for (let nth = 0; nth <= deep; nth += 1) {
    const row = behind(driver, head).at(-1) ?? head.row;
    const last = groupOf(run.groups, row);
    const next = rowsAfter(run, last, row).find((each) => mayGoBehind(run, row, groupOf(run.groups, each), each));
    if (last.spec.ranks !== undefined || next === undefined) return;
    driver.ahead(head.agent, run.id, next);
  }
};

type Drawn = (typeof groups extends fc.Arbitrary<infer T> ? T : never)[number];

/** The items of each group, and which of them wait item by item: for groups with as many items, or the same keys. */
const drawItems = (list: readonly Drawn[]): { texts: (string[] | undefined)[]; links: Dependency[][] } => {
  const texts: (string[] | undefined)[] = [];
  const links: Dependency[][] = [];
  for (const [i, { byItem, link, count }] of list.entries()) {
    const counted = link || count === 1 ? undefined : Array.from({ length: count }, (_, n) => String(n));
    const earlier = new Map(
      (byItem?.to ?? []).map(([n, on]) => [n % Math.max(1, i), on] as const).filter(([n]) => texts[n] !== undefined),
    );
    const [first] = earlier.keys();
    if (link || byItem === undefined || first === undefined) {
      // items with keys, for others to wait by
      texts.push(
        count % 2 === 0 || byItem?.how === "keyed"
          ? counted?.map((n) => JSON.stringify({ n, k: `k${Number(n) % 3}` }))
          : counted,
      );
      links.push([]);
      continue;
    }
    const isKeyed = byItem.how === "keyed" && texts[first]![0]!.startsWith("{");
    const keys = texts[first]!.map((text) => (isKeyed ? (JSON.parse(text) as { k: string }).k : ""));
    const own = isKeyed
      ? Array.from({ length: count }, (_, n) => JSON.stringify({ m: n, k: keys[(n * 7) % keys.length] }))
      : byItem.how === "reversed"
        ? texts[first]!.toReversed()
        : [...texts[first]!];
    texts.push(own);
    const fits = (n: number): boolean =>
      n === first || (!isKeyed && texts[n]!.toSorted().join() === own.toSorted().join());
    links.push(
      [...earlier]
        .filter(([n]) => fits(n))
        .map(([n, on]): Dependency => ({ group: n, on, items: isKeyed ? { by: "k" } : "same" })),
    );
  }
  return { texts, links };
};

const play = (
  steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
  first: typeof groups extends fc.Arbitrary<infer T> ? T : never,
  format1: number | null,
): Driver => {
  const driver = createDriver(format1 === null ? {} : { format1 });
  const before = new Map<string, Seen>();
  const submit = (list: typeof first, maxFails: number | null, skipped: readonly number[] = []): void => {
    const { texts, links } = drawItems(list);
    const isCounted = (each: readonly string[]): boolean => each.every((text, n) => text === String(n));
    const lists = new Map(texts.flatMap((each, i) => (each === undefined || isCounted(each) ? [] : [[i, each]])));
    driver.submit(
      spec(
        list.map((each, i) => {
          // the newest runs first: they are the ones that are still open
          const newest = driver.state.nextRun - 1;
          const earlier = new Map(each.runs.filter(([back]) => back < newest).map(([back, on]) => [newest - back, on]));
          const runs = [...earlier].map(([run, on]): Dependency => ({ run, on }));
          const mine = links[i]!;
          const others = each.deps.filter(([n]) => i > 0 && mine.every((one) => "group" in one && one.group !== n % i));
          const seen = new Map(others.map(([n, on]) => [n % Math.max(1, i), on]));
          // few wait for whole groups as well, so that there are many that wait for their items alone
          const whole = mine.length > 0 && each.retries > 0 ? [] : [...after(...seen), ...runs];
          return group(`g${i}`, each.link ? 1 : (texts[i]?.length ?? each.count), {
            ...(lists.has(i) ? { items: { kind: "list", count: 0 } } : {}),
            retries: each.retries,
            after: each.link ? after(...(i === 0 ? [] : [i - 1])) : [...whole, ...mine],
            ...(each.grows
              ? { resources: { cpus: FRACTION, mem: 4 }, attemptResources: { mem: "{attempt * 4}B" } }
              : {}),
            ...(each.link || each.count % 3 === 0
              ? {}
              : { outputs: [`o${i % 2}-{name}`, "p{item}"].slice(each.count === 1 ? 0 : 1, each.count === 1 ? 1 : 2) }),
            ...(each.link || each.count % 3 === 0 ? {} : { skip: each.auto ? ("content" as const) : "newer" }),
            ...(each.auto ? { auto: { mem: true, timeRequest: true } } : {}),
            ...(each.memRetry === undefined || each.grows
              ? {}
              : { resources: { cpus: FRACTION, mem: 4 }, memRetry: each.memRetry }),
            ...(each.ranks && !each.job && !each.link ? { ranks: { count: 4, by: "agents" as const } } : {}),
            ...(each.job && !each.link ? { job: { keys: { partition: "p" } } } : {}),
          });
        }),
        maxFails === null ? {} : { maxFails },
      ),
      { skipped: skipped.flatMap((row) => [row, 1]), items: lists, json: true },
    );
  };
  submit(first, null);
  const agents = [driver.join(), driver.join(), driver.join()];
  for (const each of steps) {
    const list = heldBy(driver);
    const pick = "pick" in each ? list[each.pick % Math.max(1, list.length)] : undefined;
    switch (each.do) {
      case "assign": {
        const waiting = [...driver.ready].flatMap(([run, rows]) => [...rows].map((row) => [run, row] as const));
        const chosen = waiting[each.pick % Math.max(1, waiting.length)];
        if (chosen === undefined) break;
        const run = driver.state.runs.get(chosen[0])!;
        if (groupOf(run.groups, chosen[1]).spec.job !== undefined) break;
        const several = groupOf(run.groups, chosen[1]).spec.ranks !== undefined;
        driver.assign(agents[each.agent]!, ...chosen, several ? [agents[(each.agent + 1) % 3]!] : []);
        break;
      }
      case "end":
        if (pick !== undefined) driver.end(pick.agent, pick.run, [pick.row], each.code);
        break;
      case "ahead": {
        const heads = list.filter(({ run, row }) => {
          const held = driver.state.runs.get(run)!;
          const of = groupOf(held.groups, row);
          // nothing else comes to the agent of a task's own job
          return of.spec.job === undefined && rowsAfter(held, of, row).length > 0;
        });
        const head = heads[each.pick % Math.max(1, heads.length)];
        if (head !== undefined) handAhead(driver, head, each.deep);
        break;
      }
      case "link": {
        const heads = list.filter((one) => behind(driver, one).length > 0);
        const head = heads[each.pick % Math.max(1, heads.length)];
        if (head === undefined) break;
        const rows = [head.row, ...behind(driver, head)].slice(0, each.deep + 2);
        // the last of them may have ended otherwise
        driver.end(head.agent, head.run, rows, each.code, each.ending, rows.length - 1);
        break;
      }
      case "learn": {
        const run = [...driver.state.runs.values()][each.pick % driver.state.runs.size]!;
        const { index } = run.groups[each.pick % run.groups.length]!;
        const learned = each.pick % 3 === 0 ? { timeRequest: each.mem } : { mem: each.mem };
        // a formula for memory says itself what attempts get
        if (run.groups[index]!.spec.auto !== undefined && run.groups[index]!.spec.attemptResources === undefined)
          driver.send({ type: "run.requests", at: 7000, run: run.id, group: index, ...learned });
        break;
      }
      case "request": {
        const waiting = [...driver.ready].flatMap(([run, rows]) => [...rows].map((row) => [run, row] as const));
        const [run, row] = waiting[each.pick % Math.max(1, waiting.length)] ?? [0, 0];
        const of = driver.state.runs.get(run)?.groups;
        if (of === undefined || groupOf(of, row).spec.job === undefined) break;
        const rows = waiting.filter(([id, other]) => id === run && groupOf(of, other) === groupOf(of, row));
        driver.request(
          run,
          rows.slice(0, each.tasks).map(([, other]) => other),
        );
        break;
      }
      case "job": {
        const jobs = [...driver.state.taskJobs.values()].filter((job) => !isOver(job));
        const job = jobs[each.pick % Math.max(1, jobs.length)];
        if (job === undefined) break;
        const elements = [...job.elements.keys()].filter((i) => each.pick % 3 === 0 || (each.pick + i) % 2 === 0);
        // a job whose agent has its task ends with that agent: the server says so first
        const lost = elements.flatMap((i) => (job.elements[i]!.state === "spent" ? [job.elements[i]!.agent] : []));
        if (each.to === "ended" && lost.length > 0)
          driver.send({ type: "agents.lost", at: 7000, agents: lost, reason: "its job ended" });
        driver.change(job, elements, each.to);
        break;
      }
      case "begin": {
        const open = [...driver.state.taskJobs.values()].flatMap((job) =>
          [...job.elements.entries()]
            .filter(([, element]) => carries(element) || (each.again && element.state === "spent"))
            .map(([element]) => ({ job, element })),
        );
        const chosen = open[each.pick % Math.max(1, open.length)];
        if (chosen === undefined) break;
        const { job, element } = chosen;
        const { row } = job.elements[element]!;
        const run = driver.state.runs.get(job.run);
        const agent = driver.join({ id: job.id, element });
        const other = carrierOf(driver.state, job.run, row);
        if (run !== undefined && waits(run, row) && (other === undefined || other.job === job))
          driver.assign(agent, job.run, row);
        break;
      }
      case "kill":
        if (pick !== undefined) driver.end(pick.agent, pick.run, [pick.row], -9, Ending.MEMORY);
        break;
      case "interrupt":
        if (pick !== undefined) driver.end(pick.agent, pick.run, [pick.row], -15, Ending.INTERRUPTED);
        break;
      case "ranks":
        if (pick === undefined) break;
        driver.send({
          type: "ranks.ended",
          at: 7000,
          run: pick.run,
          row: pick.row,
          attempt: peek(driver.state.runs.get(pick.run)!.table, pick.row)!.attempt[pick.row]!,
          agent: agents[each.agent]!,
          ending: Ending.EXIT,
          code: each.code,
          detail: "",
          outAt: each.pick % 3 === 0 ? -1 : 64,
          outBytes: 5,
          errBytes: 0,
          ...(each.pick % 5 === 0 ? { peak: { bytes: each.pick * 4096, by: PeakBy.WATCH } } : {}),
          ...(each.pick % 2 === 0 ? { cpu: 1 + each.pick, system: each.pick % 2, read: each.pick % 3 } : {}),
          ...(each.pick % 4 === 0 ? { lost: { stdout: each.pick % 7, stderr: 1, reason: Lost.PER_TASK } } : {}),
        });
        break;
      case "lose":
        driver.send({ type: "agents.lost", at: 7000, agents: [agents[each.agent]!], reason: "gone" });
        agents[each.agent] = driver.join();
        break;
      case "cut":
        if (pick !== undefined) driver.end(pick.agent, pick.run, [pick.row], 0, Ending.CUT_OFF);
        break;
      case "unspawn":
        if (pick !== undefined) driver.end(pick.agent, pick.run, [pick.row], 0, Ending.SPAWNER_LOST);
        break;
      case "fail": {
        const parts = [...driver.state.runs.values()]
          .filter((run) => each.from < run.total)
          .map((run) => ({ run: run.id, ranges: [each.from, Math.min(each.count, run.total - each.from)] }));
        driver.send({ type: "tasks.failed", at: 7000, reason: "no pilot", parts });
        break;
      }
      case "return":
        if (pick !== undefined)
          driver.send({
            type: "tasks.returned",
            at: 7000,
            agent: pick.agent,
            parts: [{ run: pick.run, ranges: [pick.row, 1] }],
          });
        break;
      case "cancel": {
        const run = [...driver.state.runs.values()][each.pick % driver.state.runs.size]!;
        const held = list.filter((one) => one.run === run.id);
        driver.send({
          type: "run.canceled",
          at: 7000,
          run: run.id,
          reason: "test",
          ...(each.all ? {} : { rows: [each.pick % run.total] }),
        });
        for (const { row } of held)
          expect(isFinalTask(driver.stateOf(run, row)), "what an agent has ends with its word alone").toBe(false);
        break;
      }
      case "retry": {
        const all = [...driver.state.runs.values()].filter((run) => run.finished > 0);
        const ended = all[each.nth % Math.max(1, all.length)];
        // retry alone may reopen final tasks, also those that never had an attempt
        before.clear();
        if (ended === undefined) break;
        const rows = each.rows.map((row) => row % ended.total).toSorted((a, b) => a - b);
        const chosen = new Set(each.rows.length === 0 ? undefined : rows);
        const untouched = Array.from({ length: ended.total }, (_, row) => driver.stateOf(ended, row));
        driver.send({
          type: "run.retried",
          at: 7000,
          run: ended.id,
          which: each.which,
          ...(each.rows.length === 0 ? {} : { rows: rows.flatMap((row) => [row, 1]) }),
          ...(each.set === undefined ? {} : { set: each.set }),
        });
        if (chosen.size === 0) break;
        for (let row = 0; row < ended.total; row += 1) {
          if (!chosen.has(row)) expect(driver.stateOf(ended, row), "what was not chosen").toBe(untouched[row]);
          else expect(setOf(groupOf(ended.groups, row), row)).toEqual(each.set);
        }
        break;
      }
      case "skip": {
        const waiting = [...driver.ready].flatMap(([run, rows]) => [...rows].map((row) => ({ run, row })));
        const rows = waiting.slice(each.from, each.from + each.count + 1);
        for (const { run, row } of each.seen ? rows : [])
          driver.send({ type: "inputs.seen", at: 6000, run, rows: [row], contents: [row + 7] });
        if (each.seen) break;
        const may = rows.filter(({ run, row }) => mayBeSkipped(driver.state.runs.get(run)!, row));
        driver.send({
          type: "tasks.skipped",
          at: 6000,
          parts: rows.map(({ run, row }) => ({ run, ranges: [row, 1] })),
        });
        for (const { run, row } of rows) {
          const isDone = driver.stateOf(driver.state.runs.get(run)!, row) === Task.DONE;
          expect(isDone, "only what never began").toBe(may.some((one) => one.run === run && one.row === row));
        }
        break;
      }
      case "restart":
        driver.restart(each.losses);
        break;
      case "submit":
        submit(each.groups, each.maxFails, each.skipped);
    }
    check(driver, before);
  }
  // whatever was not decided is judged by the time anybody reads it
  driver.restart(5);
  return driver;
};

const limits = fc.integer({ min: 0, max: 6 });
const history = fc.record({
  first: groups,
  steps: fc.array(step, { minLength: 5, maxLength: 60 }),
  format1: fc.option(limits),
});

describe("any history", () => {
  it("keeps counts exact and states linear, and replays to the same state (rules 2 and 6)", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(history, limits, ({ first, steps, format1 }, losses) => {
        const driver = play(steps, first, format1);
        const records = driver.events.map((event) => encodeEvent(event));
        for (const [i, { type, payload }] of records.entries())
          expect(decodeEvent(type, payload)?.type).toBe(driver.events[i]!.type);
        same(replayAll(records, losses), driver.state);
      }),
      { numRuns: 150 },
    );
  });

  it(
    "survives snapshots at any point, whatever the limits of each start: the state is the same as without",
    { timeout: 60_000 },
    () => {
      const cuts = fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), limits), {
        minLength: 1,
        maxLength: 3,
      });
      fc.assert(
        fc.property(history, cuts, limits, ({ first, steps, format1 }, starts, losses) => {
          const { events, state } = play(steps, first, format1);
          const all = events.map((event) => encodeEvent(event));
          // a snapshot is written by a server that has judged what nobody decided
          const judged = events.findIndex(({ type }) => type === "losses.judged") + 1;
          let base: StateRecord[] = [];
          let from = 0;
          for (const [cut, limit] of starts.toSorted(([a], [b]) => a - b)) {
            const to = Math.max(judged, Math.floor(all.length * cut));
            base = snapshotOf(replayAll([...base, ...all.slice(from, to)], limit));
            from = to;
          }
          same(replayAll([...base, ...all.slice(from)], losses), state);
        }),
        { numRuns: 200 },
      );
    },
  );

  it("comes to an end when every task that may run does, and so does each retry", { timeout: 60_000 }, () => {
    const which = fc.array(fc.constantFrom("failed" as const, "all" as const), { maxLength: 3 });
    fc.assert(
      fc.property(groups, fc.array(step, { maxLength: 60 }), fc.nat(2), which, (first, steps, code, retries) => {
        const driver = play(steps, first, null);
        const runs = [...driver.state.runs.values()];
        for (const job of driver.state.taskJobs.values())
          driver.change(
            job,
            [...job.elements.keys()].filter((i) => carries(job.elements[i]!)),
            "ended",
          );
        for (const { run, row, agent } of heldBy(driver)) {
          // an agent gives back what lies behind a task that did not end well
          const held = driver.state.runs.get(run)!;
          if (isAhead(peek(held.table, row)!, row % held.table.pageRows))
            driver.send({ type: "tasks.returned", at: 8000, agent, parts: [{ run, ranges: [row, 1] }] });
          else driver.end(agent, run, [row], code);
        }
        runToEnd(driver, (_, row) => row % 2);
        for (const each of retries) {
          for (const run of runs) driver.send({ type: "run.retried", at: 9000, run: run.id, which: each });
          runToEnd(driver, (_, row) => row % 3);
        }
        for (const run of runs) expect(runState(run)).toMatch(/DONE|FAILED|CANCELED/);
      }),
      { numRuns: 200 },
    );
  });
});
