import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Successes } from "../../../src/core/successes.ts";
import { absolute } from "../../../src/core/task-files.ts";

const print = (n: number) => ({ lo: n, hi: -n });

describe("what outputs came from", () => {
  it("is what the last attempt that began has made, if nobody else was at it", () => {
    const known = new Successes();
    known.begin("/a", 1);
    expect(known.of("/a")?.ended).toBe(0);
    known.succeed("/a", 1, print(7));
    expect(known.of("/a")).toMatchObject({ lo: 7, hi: -7, began: 1, ended: 2 });
    // two at once: the success of the first says nothing, and the end of either spoils that of the other
    known.begin("/a", 2);
    known.begin("/a", 3);
    known.over("/a", 2);
    known.succeed("/a", 2, print(8));
    expect(known.of("/a")?.ended).toBe(0);
    known.succeed("/a", 3, print(9));
    expect(known.of("/a")?.ended).toBeGreaterThan(0);
    known.over("/a", 2);
    expect(known.of("/a")?.ended).toBe(0);
    expect(known.of("/b")).toBe(undefined);
  });

  it("forgets the oldest, and goes through bytes unchanged, as a map of a naive model does", () => {
    const step = fc.record({ file: fc.nat(9), do: fc.constantFrom("begin", "succeed", "use"), owner: fc.nat(2) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const known = new Successes(5);
        /** The newest last. */
        const model = new Map<string, { owner: number; done: boolean }>();
        for (const { file, do: what, owner } of steps) {
          const path = `/${file}`;
          const old = model.get(path);
          if (what === "begin") {
            known.begin(path, owner);
            model.delete(path);
            if (model.size === 5) model.delete(model.keys().next().value!);
            model.set(path, { owner, done: false });
          } else if (what === "succeed") {
            known.succeed(path, owner, print(file + 1));
            if (old?.owner === owner) old.done = true;
          } else {
            known.use(path);
            if (old !== undefined) {
              model.delete(path);
              model.set(path, old);
            }
          }
        }
        const again = new Successes(5);
        for (const part of known.encode()) again.addPart(part);
        expect(again.digest()).toBe(known.digest());
        for (const each of [known, again])
          for (let file = 0; file <= 9; file += 1) {
            const found = each.of(`/${file}`);
            expect(found === undefined ? undefined : found.ended > 0).toBe(model.get(`/${file}`)?.done);
          }
      }),
    );
  });

  it("a file takes less than 90 bytes, and none next to nothing", () => {
    const known = new Successes();
    for (let i = 0; i < 300_000; i += 1) known.begin(`/data/${i}`, i);
    expect(known.bytes / known.size).toBeLessThan(90);
    expect(new Successes().bytes).toBeLessThan(20_000);
  });
});

it("one file has one name", () => {
  expect(["a/b", "./a//b", "x/../a/b/", "/w/a/./b"].map((path) => absolute("/w", path))).toEqual(
    Array.from({ length: 4 }, () => "/w/a/b"),
  );
  expect(absolute("/w", "../../..")).toBe("/");
  expect(absolute("/w", "..a/.b")).toBe("/w/..a/.b");
});
