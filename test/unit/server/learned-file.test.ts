import fc from "fast-check";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeLearned, encodeLearned } from "../../../src/learned/codec.ts";
import { type Learned, createLearned } from "../../../src/learned/learned.ts";
import { learnedPath, loadLearned, saveLearned } from "../../../src/server/learned-file.ts";

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "slipway-learned-"));
});
afterAll(() => rm(home, { recursive: true, force: true }));

const lessons = fc.array(
  fc.record({
    template: fc.nat(5),
    lo: fc.nat(50),
    took: fc.double({ min: 0, max: 1e9, noNaN: true }),
    peak: fc.option(fc.nat(1e9)),
    at: fc.nat(1e9),
  }),
  { maxLength: 300 },
);

const taught = (all: readonly { template: number; lo: number; took: number; peak: number | null; at: number }[]) => {
  const learned = createLearned();
  for (const { template, lo, took, peak, at } of all) learned.record(template, { lo, hi: lo }, took, peak, at);
  return learned;
};

/** All that a store says, in order. */
const contents = ({ identities, templates }: Learned): unknown => [
  [...identities.oldestFirst()].map((entry) => [
    identities.hashOf(entry),
    identities.tookMs(entry),
    identities.peak(entry),
    identities.at(entry),
  ]),
  [...templates.oldestFirst()].map(({ key, took, peaks }) => [key, [...took.values()], [...(peaks?.values() ?? [])]]),
];

describe("what was learned, saved", () => {
  it("is the same when it is read again, in the same order", () => {
    fc.assert(
      fc.property(lessons, (all) => {
        const learned = taught(all);
        const again = createLearned();
        expect(decodeLearned(encodeLearned(learned, 77), again)).toBe(77);
        expect(contents(again)).toEqual(contents(learned));
      }),
    );
  });

  it("bytes that were cut or changed are refused, or read as sound amounts, and never break anything", () => {
    fc.assert(
      fc.property(lessons, fc.nat(), fc.nat(255), fc.boolean(), (all, at, byte, cut) => {
        const bytes = encodeLearned(taught(all), 77);
        const broken = cut ? bytes.subarray(0, at % bytes.length) : bytes.slice();
        if (!cut) broken[at % broken.length] = byte;
        const again = createLearned();
        try {
          decodeLearned(broken, again);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
        for (const { took } of again.templates.oldestFirst()) expect(took.mean).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("goes to one file of the home, and comes back with its time", async () => {
    const learned = taught([{ template: 1, lo: 2, took: 3, peak: 4, at: 5 }]);
    await saveLearned(home, learned, 1234);
    const said: string[] = [];
    const loaded = await loadLearned(home, (text) => said.push(text));
    expect([loaded.saved, contents(loaded.learned)]).toEqual([1234, contents(learned)]);
    expect(said).toEqual([]);
    expect(await readdir(home)).toEqual(["learned.bin"]);
  });

  it("a damaged, foreign or newer file is set aside with one warning; learning starts again", async () => {
    await saveLearned(home, taught([{ template: 1, lo: 2, took: 3, peak: 4, at: 5 }]), 1234);
    const sound = await readFile(learnedPath(home));
    const flipped = Buffer.from(sound);
    flipped[sound.length - 1]! ^= 1;
    const newer = Buffer.from(sound);
    newer.writeUInt32LE(99, 8);
    for (const bytes of [flipped, newer, sound.subarray(0, 20), Buffer.from("hello"), Buffer.alloc(0)]) {
      await writeFile(learnedPath(home), bytes);
      const said: string[] = [];
      const { learned, saved } = await loadLearned(home, (text) => said.push(text));
      expect([said.length, saved, learned.identities.size]).toEqual([1, 0, 0]);
      expect(await readdir(home)).toEqual(["learned.bin.unreadable"]);
      expect(await readFile(`${learnedPath(home)}.unreadable`)).toEqual(bytes);
    }
    const said: string[] = [];
    await loadLearned(home, (text) => said.push(text));
    expect(said, "nothing was learned yet: no warning").toEqual([]);
  });
});
