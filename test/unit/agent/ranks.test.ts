import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ending } from "../../../src/core/events.ts";
import { PeakBy } from "../../../src/core/peak.ts";
import type { RanksEndedMessage } from "../../../src/protocol/messages.ts";
import { endRank, NAME, RANKS, type RankNode, RESOURCES, startNode, take, write } from "./rank-nodes.ts";

describe("parts of a task on two agents", () => {
  it("is not over when the others are done and its own ranks still wait for slots", () => {
    const head = startNode();
    const foreign = head.pool.allocate(RESOURCES)!;
    take(head, 0);
    head.parts.serve();
    head.parts.othersDone({ t: "ranks-done", ...NAME, ending: Ending.EXIT, code: 0, detail: "" });
    expect([head.results, head.started]).toEqual([[], []]);
    head.pool.release(foreign);
    head.parts.serve();
    expect(head.started.length).toBe(2);
    for (const task of head.started) endRank(head, task);
    expect(head.results).toMatchObject([{ ending: Ending.EXIT, code: 0 }]);
    expect([head.parts.size, head.pool.size]).toEqual([0, 0]);
  });

  it("is not started any more when another's rank failed while its own waited", () => {
    const head = startNode();
    const foreign = head.pool.allocate(RESOURCES)!;
    take(head, 0);
    head.parts.othersDone({ t: "ranks-done", ...NAME, ending: Ending.EXIT, code: 3, detail: "rank 2 on b" });
    expect(head.results).toMatchObject([{ code: 3, detail: "rank 2 on b" }]);
    head.pool.release(foreign);
    head.parts.serve();
    expect([head.started, head.parts.size, head.pool.size]).toEqual([[], 0, 0]);
  });

  it.each([
    ["in its result", 0],
    ["to the server, which knows those of all nodes", 1],
  ])("reports the peak memory of its largest rank %s", (_where, node) => {
    const agent = startNode();
    take(agent, node);
    agent.parts.serve();
    agent.parts.othersDone({ t: "ranks-done", ...NAME, ending: Ending.EXIT, code: 0, detail: "" });
    const ok = { ending: Ending.EXIT, code: 0 };
    const largest = { bytes: 900, by: PeakBy.WATCH };
    endRank(agent, agent.started[0]!, { ...ok, peak: largest });
    endRank(agent, agent.started[1]!, { ...ok, peak: { bytes: 500, by: PeakBy.RUSAGE } });
    expect([...agent.results, ...agent.sent]).toMatchObject([{ ...ok, peak: largest }]);
  });

  it("is over and gives its slots to the next attempt, which came before its ranks had ended", () => {
    const other = startNode();
    take(other, 1);
    other.parts.serve();
    const first = [...other.started];
    other.parts.over(1, 0, 1);
    take(other, 1, 2);
    other.parts.serve();
    for (const task of first) endRank(other, task);
    expect(other.sent).toMatchObject([{ t: "ranks-ended", attempt: 1, ending: Ending.CANCELED }]);
    expect(other.started.length).toBe(2);
    other.parts.kept(1, 0, 1);
    expect(other.started.slice(2).map(({ attempt }) => attempt)).toEqual([2, 2]);
  });

  it("is not started any more when it was interrupted while it waited for slots", () => {
    const other = startNode();
    const foreign = other.pool.allocate(RESOURCES)!;
    take(other, 1);
    other.parts.drain(false, "its pilot is about to end");
    expect(other.sent).toMatchObject([{ t: "ranks-ended", ending: Ending.INTERRUPTED }]);
    other.pool.release(foreign);
    other.parts.serve();
    expect([other.started, other.parts.waiting, other.pool.size]).toEqual([[], false, 0]);
  });

  it("tells nothing of a result that was superseded while its output was being written", () => {
    const head = startNode();
    take(head, 0);
    head.parts.serve();
    write(head, head.started[0]!);
    head.parts.othersDone({ t: "ranks-done", ...NAME, ending: Ending.EXIT, code: 0, detail: "" });
    for (const task of head.started) endRank(head, task);
    head.parts.stop(1, 0, 1, true);
    for (const flush of head.flushes) flush();
    expect([head.results, head.parts.size, head.pool.size]).toEqual([[], 0, 0]);
  });

  it("ends once, well only if every rank on every agent ran and ended well, in whatever order things happen", () => {
    fc.assert(
      fc.property(
        fc.infiniteStream(fc.nat()),
        fc.array(fc.constantFrom(0, 0, 0, 7), { minLength: 4, maxLength: 4 }),
        fc.tuple(fc.nat(2), fc.nat(2)),
        (choices, codes, busy) => {
          const nodes = [startNode(), startNode()];
          const [head, other] = nodes as [RankNode, RankNode];
          const foreign = nodes.map(({ pool }, nth) =>
            Array.from({ length: busy[nth]! }, () => pool.allocate(RESOURCES)!),
          );
          // the server's side, one message at a time to each
          const toDo: (() => void)[][] = [[() => take(head, 0)], [() => take(other, 1)]];
          let told = 0;
          let isOver = false;
          for (;;) {
            const open: (() => void)[] = [];
            for (const [nth, node] of nodes.entries()) {
              const next = toDo[nth]![0];
              if (next !== undefined)
                open.push(() => {
                  toDo[nth]!.shift();
                  next();
                });
              const slot = foreign[nth]![0];
              if (slot !== undefined)
                open.push(() => {
                  foreign[nth]!.shift();
                  node.pool.release(slot);
                });
              if (node.parts.waiting && foreign[nth]!.length === 0) open.push(() => node.parts.serve());
              for (const [task, wanted] of node.live) {
                const code = codes[task.rank!.number]!;
                open.push(() =>
                  endRank(node, task, wanted.ending === Ending.EXIT ? { ending: Ending.EXIT, code } : wanted),
                );
              }
            }
            if (told < other.sent.length) {
              const message = other.sent[told]! as RanksEndedMessage;
              open.push(() => {
                told += 1;
                const { ending, code, detail } = message;
                toDo[1]!.push(() => other.parts.kept(1, 0, 1));
                toDo[0]!.push(() => head.parts.othersDone({ t: "ranks-done", ...NAME, ending, code, detail }));
              });
            }
            if (head.results.length > 0 && !isOver)
              open.push(() => {
                isOver = true;
                for (const [nth, { parts }] of nodes.entries()) toDo[nth]!.push(() => parts.over(1, 0, 1));
              });
            if (open.length === 0) break;
            open[choices.next().value! % open.length]!();
          }
          const wellDone = codes.every((code) => code === 0);
          expect(head.results.length).toBe(1);
          expect(head.results[0]).toMatchObject(
            wellDone ? { ending: Ending.EXIT, code: 0 } : { ending: Ending.EXIT, code: 7 },
          );
          if (wellDone) expect(nodes.map(({ started }) => started.length)).toEqual(RANKS);
          for (const { parts, pool } of nodes) expect([parts.size, pool.size]).toEqual([0, 0]);
        },
      ),
    );
  });
});
