import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shapeProblem } from "../../../src/core/event-shapes.ts";
import { mapHere } from "../../../src/core/redirect.ts";
import { FRACTION, type Resources } from "../../../src/core/resources.ts";
import { createShapeSet, keyOf, sameShape, shapeOf } from "../../../src/core/run.ts";
import { concurrency } from "../../../src/scheduler/capacity.ts";
import { group, spec } from "./model.ts";

const units = (amounts: Readonly<Record<string, number>>): Resources =>
  Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, amount * FRACTION]));

const HERE = { ...units({ cpus: 4, gpus: 1, licence: 2 }), mem: 2 ** 33 };

describe("row 001-24: what a task of another cluster asks for, on this machine", () => {
  it("stays as it is where there is enough of it", () => {
    const asked = { ...units({ cpus: 4, licence: 2 }), mem: 2 ** 33, tmp: 2 ** 45 };
    expect(mapHere(HERE, asked, undefined)).toEqual({ resources: asked, alone: false });
  });

  it.each([
    [units({ cpus: 64 }), units({ cpus: 4 })],
    [units({ cpus: 1, gpus: 8 }), units({ cpus: 1, gpus: 1 })],
    [units({ cpus: 1, matlab: 1 }), units({ cpus: 1 })],
    [units({ cpus: 1, licence: 3 }), units({ cpus: 1 })],
    [{ ...units({ cpus: 1 }), mem: 2 ** 40 }, units({ cpus: 1 })],
  ])("is alone with what there is where something lacks: %j", (asked, resources) => {
    expect(mapHere(HERE, asked, undefined)).toEqual({ resources, alone: true });
  });

  it("temporary space counts only where it was declared", () => {
    expect(mapHere({ ...HERE, tmp: 10 }, { tmp: 20 }, undefined)).toEqual({ resources: {}, alone: true });
  });

  it("all ranks find room together, however many they are", () => {
    const here = fc.record({ cpus: fc.integer({ min: 1, max: 8 }) }).map(units);
    fc.assert(
      fc.property(here, fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 16 }), (has, count, cpus) => {
        const { resources } = mapHere(has, units({ cpus }), { count, by: "agents" });
        expect(concurrency(has, resources)).toBeGreaterThanOrEqual(count);
        // a share of a core lies within one core
        const perCore = resources["cpus"]! < FRACTION ? Math.floor(FRACTION / resources["cpus"]!) : 1;
        expect(resources["cpus"]! < FRACTION ? perCore * (has["cpus"]! / FRACTION) : count).toBeGreaterThanOrEqual(
          count,
        );
      }),
    );
  });
});

describe("the shape of a redirected task", () => {
  const redirect = { from: "hpc", cause: "gone", here: HERE };

  it("is alone, and has a place of its own among shapes; a later attempt stays alone", () => {
    const of = group("t", 1, { cluster: "local", redirect });
    const alone = shapeOf(of, units({ cpus: 1, matlab: 1 }));
    expect(alone).toMatchObject({ alone: true, resources: units({ cpus: 1 }) });
    const plain = shapeOf(of, units({ cpus: 1 }));
    expect(plain.alone).toBeUndefined();
    expect(keyOf(plain)).not.toBe(keyOf(alone));
    expect(sameShape(plain, alone)).toBe(false);
    expect(sameShape(createShapeSet().of(of, alone.resources, alone.alone), alone)).toBe(true);
  });

  it("is part of the journal, and looked at before it is written", () => {
    const opened = (change: object): object => ({
      type: "run.opened",
      at: 1,
      run: 1,
      uuid: "u",
      digest: "",
      spec: spec([{ ...group("t", 1), redirect: { ...redirect, ...change } }]),
    });
    expect(shapeProblem(opened({}) as never)).toBeUndefined();
    expect(shapeProblem(opened({ here: { cpus: "many" } }) as never)).toMatch(/here\.cpus/);
  });
});
