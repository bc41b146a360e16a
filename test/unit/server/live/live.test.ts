import { afterEach, describe, expect, it } from "vitest";
import type { LiveViewer } from "../../../../src/api/live-service.ts";
import type { LiveRun } from "../../../../src/api/live.ts";
import type { OverviewView } from "../../../../src/api/overview.ts";
import { SlipwayError } from "../../../../src/errors.ts";
import { type Feed, createFeed } from "../../../../src/server/feed.ts";
import { type Live, MOST_BEHIND, MOST_VIEWERS, createLive } from "../../../../src/server/live/live.ts";
import { until } from "../../../until.ts";

/** What viewers are told, in which order, and what happens to those who do not listen. */

interface Told {
  readonly id: string;
  readonly event: string;
  readonly data: { readonly seq?: number; readonly [name: string]: unknown };
}

/** A viewer that keeps the frames it was given, and may stop to read. */
const createViewer = () => {
  const frames: Uint8Array[] = [];
  let gone: () => void = () => undefined;
  const viewer = { dropped: false, unread: 0 };
  const take: LiveViewer = {
    take: (frame) => void frames.push(frame),
    behind: () => viewer.unread,
    drop: () => {
      viewer.dropped = true;
      gone();
    },
    onGone: (action) => (gone = action),
  };
  const told = (): Told[] =>
    Buffer.concat(frames)
      .toString()
      .split("\n\n")
      .flatMap((text) => {
        const [, id, event, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(text) ?? [];
        return data === undefined ? [] : [{ id: id!, event: event!, data: JSON.parse(data) as Told["data"] }];
      });
  return Object.assign(viewer, { take, frames, told, leave: () => gone() });
};

const seqs = (told: readonly Told[]): (number | undefined)[] =>
  told.filter(({ event }) => event === "event").map(({ data }) => data.seq);

const publish = (feed: Feed, count: number): void => {
  for (let i = 0; i < count; i += 1) feed.publish({ event: "test", run: 1 }, 1000);
};

const opened: Live[] = [];
afterEach(() => {
  for (const live of opened.splice(0)) live.close();
});

const setUp = ({ epoch = 1, feed = createFeed(), waitMs = 5000 } = {}) => {
  const world = { done: 0, looks: 0, stages: 0 };
  const overview = (): OverviewView => {
    world.looks += 1;
    return { ended: { done: world.done, failed: 0, cancelled: 0 }, runs: [{ id: 1, eta: world.looks }] } as never;
  };
  const runNow = (id: number): LiveRun | undefined => {
    world.stages += 1;
    return id === 1 ? ({ run: { id }, stages: [], folded: false, done: world.done } as never) : undefined;
  };
  const live = createLive({
    feed,
    epoch,
    overview,
    run: async (id) => {
      if (id > 2) throw new SlipwayError("no-such-run", { run: id });
      return runNow(id) ?? ({ run: { id }, stages: [], folded: false } as never);
    },
    runNow,
    runStamp: (id) => (id === 1 ? String(world.done) : ""),
    lookMs: 5,
    waitMs,
  });
  opened.push(live);
  /** Until at least two looks have ended. */
  const looks = async (): Promise<void> => {
    const from = world.looks;
    await until("two looks", () => world.looks >= from + 2);
  };
  return { live, feed, world, looks };
};

const nobody = new AbortController().signal;

describe("viewers", () => {
  it("are told how things are, then what changes, once, in the very same bytes for all of them", async () => {
    const { live, feed, world, looks } = setUp();
    const [a, b] = [createViewer(), createViewer()];
    await live.open({ after: undefined, run: undefined }, a.take);
    await live.open({ after: undefined, run: undefined }, b.take);
    expect(a.told().map(({ event }) => event)).toEqual(["overview"]);
    await looks();
    // only what is expected has moved
    expect(a.told()).toHaveLength(1);
    world.done = 5;
    publish(feed, 3);
    await until("they are told", () => a.told().length === 5);
    expect(seqs(a.told())).toEqual([1, 2, 3]);
    expect(a.told().at(-1)).toMatchObject({ event: "overview", data: { ended: { done: 5 } } });
    expect(b.frames.at(-1)).toBe(a.frames.at(-1));
    a.leave();
    b.leave();
    await until("nobody is looked for any more", () => live.viewers === 0);
  });

  it("cause no event: a success is not published because somebody looks", async () => {
    const { live, feed } = setUp();
    await live.open({ after: undefined, run: undefined }, createViewer().take);
    const neverAsked = new Proxy({} as never, {
      get: () => {
        throw new Error("a success was looked at");
      },
    });
    const run = { id: 1, table: { pages: [{ state: Uint8Array.of(15) }], pageRows: 8 } };
    feed.taskEnded(run as never, 0, neverAsked);
    expect(feed.seq).toBe(0);
  });

  it("go on after their last id without gap or repeat, wherever they stopped", async () => {
    const { live, feed } = setUp();
    const first = createViewer();
    await live.open({ after: undefined, run: undefined }, first.take);
    publish(feed, 20);
    await until("all are told", () => seqs(first.told()).length === 20);
    for (const cut of [0, 7, 19]) {
      const id = first.told().filter(({ event }) => event === "event")[cut]!.id;
      const second = createViewer();
      await live.open({ after: id, run: undefined }, second.take);
      expect(seqs(second.told())).toEqual(Array.from({ length: 19 - cut }, (_, i) => cut + 2 + i));
      expect(second.told().some(({ event }) => event === "reset")).toBe(false);
    }
    // an overview's id counts as well: nothing is told twice
    const third = createViewer();
    await live.open({ after: first.told().at(-1)!.id, run: undefined }, third.take);
    publish(feed, 2);
    await until("the new ones", () => seqs(third.told()).length === 2);
    expect(seqs(third.told())).toEqual([21, 22]);
  });

  it("of another server, or too far behind, are told to load everything again", async () => {
    const { live, feed } = setUp({ epoch: 2 });
    publish(feed, 12_000);
    const reasonFor = async (after: string): Promise<unknown> => {
      const viewer = createViewer();
      await live.open({ after, run: undefined }, viewer.take);
      const [first, second] = viewer.told();
      expect(second?.event).toBe(first?.event === "reset" ? "overview" : undefined);
      return first?.data["reason"];
    };
    expect(await reasonFor("1-12000-4")).toBe("another-server");
    expect(await reasonFor("2-99999-4")).toBe("another-server");
    expect(await reasonFor("2-1999-4")).toBe("too-far-behind");
    const viewer = createViewer();
    await live.open({ after: "2-2000-4", run: undefined }, viewer.take);
    expect([seqs(viewer.told())[0], seqs(viewer.told()).length]).toEqual([2001, 10_000]);
  });

  it("a flood is told in portions, and what nobody remembers is a reset", async () => {
    const { live, feed } = setUp();
    const viewer = createViewer();
    await live.open({ after: undefined, run: undefined }, viewer.take);
    publish(feed, 1300);
    await until("all of it", () => seqs(viewer.told()).length === 1300);
    expect(viewer.frames.filter((frame) => frame.length > 1000).length).toBeGreaterThanOrEqual(3);
    publish(feed, 20_000);
    const reset = await until("a reset", () => viewer.told().find(({ event }) => event === "reset"));
    expect(reset.data).toEqual({ reason: "too-far-behind" });
    publish(feed, 1);
    await until("the next one", () => seqs(viewer.told()).at(-1) === 21_301);
    expect(seqs(viewer.told())).toHaveLength(1301);
  });

  it("rule 11: one that does not read is dropped, and the others hear on", async () => {
    const { live, feed, looks } = setUp();
    const [slow, quick] = [createViewer(), createViewer()];
    await live.open({ after: undefined, run: undefined }, slow.take);
    await live.open({ after: undefined, run: undefined }, quick.take);
    slow.unread = MOST_BEHIND + 1;
    await until("it is dropped", () => slow.dropped);
    expect([quick.dropped, live.viewers]).toEqual([false, 1]);
    publish(feed, 1);
    await looks();
    expect([seqs(slow.told()).length, seqs(quick.told()).length]).toEqual([0, 1]);
  });

  it("are so many and no more", async () => {
    const { live } = setUp();
    for (let i = 0; i < MOST_VIEWERS; i += 1)
      await live.open({ after: undefined, run: undefined }, createViewer().take);
    await expect(live.open({ after: undefined, run: undefined }, createViewer().take)).rejects.toMatchObject({
      code: "too-many-viewers",
    });
    await expect(live.next({ after: undefined, run: undefined }, nobody)).rejects.toMatchObject({
      code: "too-many-viewers",
    });
  });
});

describe("a run that is watched", () => {
  it("is told to those who watch it, when it has changed", async () => {
    const { live, world, looks } = setUp();
    const [watcher, other] = [createViewer(), createViewer()];
    await live.open({ after: undefined, run: 1 }, watcher.take);
    await live.open({ after: undefined, run: undefined }, other.take);
    expect(watcher.told().map(({ event }) => event)).toEqual(["overview", "run"]);
    const made = world.stages;
    await looks();
    expect(world.stages, "nothing is made while nothing changes").toBe(made);
    world.done = 9;
    await until("it is told", () => watcher.told().length === 4);
    expect(watcher.told().at(-1)).toMatchObject({ event: "run", data: { done: 9 } });
    expect(other.told().some(({ event }) => event === "run")).toBe(false);
  });

  it("may be in the archive, and must be there", async () => {
    const { live } = setUp();
    const viewer = createViewer();
    await live.open({ after: undefined, run: 2 }, viewer.take);
    expect(viewer.told().at(-1)).toMatchObject({ event: "run", data: { run: { id: 2 } } });
    await expect(live.open({ after: undefined, run: 3 }, createViewer().take)).rejects.toMatchObject({
      code: "no-such-run",
    });
    expect(live.viewers).toBe(1);
  });
});

describe("asking again and again", () => {
  it("gets the present first, then each change, without gap or repeat", async () => {
    const { live, feed, world } = setUp();
    let { id, events } = await live.next({ after: undefined, run: 1 }, nobody);
    expect(events.map(({ event }) => event)).toEqual(["overview", "run"]);
    const seen: number[] = [];
    const follow = (async () => {
      while (seen.length < 30) {
        ({ id, events } = await live.next({ after: id, run: 1 }, nobody));
        for (const each of events) if (each.event === "event") seen.push(each.data.seq);
      }
    })();
    for (let i = 0; i < 30; i += 1) {
      publish(feed, 1);
      world.done += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await follow;
    expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
  });

  it("a change between two questions is in the answer to the second", async () => {
    const { live, world, looks } = setUp();
    const { id } = await live.next({ after: undefined, run: 1 }, nobody);
    world.done = 3;
    await looks();
    const { events } = await live.next({ after: id, run: 1 }, nobody);
    expect(events.at(-1)).toMatchObject({ event: "run", data: { done: 3 } });
  });

  it("answers with nothing after a while, and at once when whoever asks has gone", async () => {
    const { live } = setUp({ waitMs: 20 });
    const { id } = await live.next({ after: undefined, run: undefined }, nobody);
    const settled = await live.next({ after: id, run: undefined }, nobody);
    expect(settled).toEqual({ id: settled.id, events: [] });
    const gone = new AbortController();
    const answer = setUp().live.next({ after: id, run: undefined }, gone.signal);
    gone.abort();
    expect((await answer).events.every(({ event }) => event !== "event")).toBe(true);
    expect(live.viewers).toBe(0);
  });

  it("of another server: a reset and the present", async () => {
    const { live } = setUp({ epoch: 3 });
    const { id, events } = await live.next({ after: "2-5-5", run: undefined }, nobody);
    expect(events.map(({ event }) => event)).toEqual(["reset", "overview"]);
    expect(id.startsWith("3-")).toBe(true);
  });
});
