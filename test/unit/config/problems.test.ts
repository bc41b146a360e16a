import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { quoteThis } from "../../../src/config/excerpt.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { errorText } from "../../../src/cli/render/error.ts";
import { PLAIN } from "../../../src/cli/render/style.ts";
import { SlipwayError, SlipwayErrors, errorFromJSON } from "../../../src/errors.ts";

const problemsOf = (text: string): readonly SlipwayError[] => {
  try {
    buildRun(readRunFile(text, "f.yaml"), { cwd: "/work", env: {} });
  } catch (error) {
    if (error instanceof SlipwayErrors) return error.all;
    if (error instanceof SlipwayError) return [error];
    throw error;
  }
  return [];
};

const lines = (...text: string[]): string => `${text.join("\n")}\n`;

describe("all errors of a file are told at once", () => {
  it("of shape, keys, values, placeholders and names, in the order of the file, each with its line", () => {
    const found = problemsOf(
      lines(
        "defaults: { cpus: many }",
        "tasks:",
        "  - name: dock",
        "    each: { aray: 1-3 }",
        "    run: ./dock {itme}",
        "    mem: 2X",
        "    retrys: 3",
        "  - name: dock",
        "    after: nope",
        "    env: { A: '{foo}' }",
        "    mem: 1G",
        "    mem: 2G",
      ),
    );
    expect(found.map(({ message }) => message.slice(0, 44))).toEqual([
      expect.stringMatching(/^f\.yaml:1:19: cpus: must be a number/),
      expect.stringMatching(/^f\.yaml:4:13: unknown key 'aray'/),
      expect.stringMatching(/^f\.yaml:5:10: run: unknown placeholder/),
      expect.stringMatching(/^f\.yaml:6:10: mem: "2X" is not/),
      expect.stringMatching(/^f\.yaml:7:5: unknown key 'retrys'/),
      expect.stringMatching(/^f\.yaml:8:5: run: is missing/),
      expect.stringMatching(/^f\.yaml:8:11: name: 'dock' is already/),
      expect.stringMatching(/^f\.yaml:9:12: after: no task is named/),
      expect.stringMatching(/^f\.yaml:10:15: env\.A: unknown place/),
      expect.stringMatching(/^f\.yaml:12:5: the key 'mem' appears/),
    ]);
    const text = errorText(new SlipwayErrors(found), PLAIN);
    expect(text).toContain("  6 |     mem: 2X\n    |          ^\n");
    expect(text).toMatch(/10 errors$/);
    const answered = errorFromJSON(JSON.parse(JSON.stringify(new SlipwayErrors(found))));
    expect((answered as SlipwayErrors).all.map(({ message }) => message)).toEqual(found.map(({ message }) => message));
  });

  it.each([
    ["    run: {item} --flag", 'Quote this: "{item} --flag"'],
    ["    run: {item}", 'Quote this: "{item}"'],
    ["    run: {item} # the item", 'Quote this: "{item}"'],
    ["  - run: [ -f x ] && touch y", 'Quote this: "[ -f x ] && touch y"'],
    ["    run: echo a: b", 'Quote this: "echo a: b"'],
    ['    run: {item} "x"', "Quote this: '{item} \"x\"'"],
    ["  - { run: {item} }", 'Quote this: "{item}"'],
    ['    run: "{item} --flag"', undefined],
    ["    run: echo hello", undefined],
    ["    each: { array: 1-3 }", undefined],
    ["  - name: x", undefined],
  ])("%s", (line, wanted) => expect(quoteThis(line)).toBe(wanted));

  it("syntax that YAML refuses says what to write", () => {
    const hints = (text: string): string[] => problemsOf(text).map(({ hint }) => hint);
    expect(hints("tasks:\n  - run: {item} --flag\n")).toEqual(['Quote this: "{item} --flag"']);
    expect(hints("tasks:\n  - run: {item}\n    each: {array: 1-2}\n")).toEqual(['Quote this: "{item}"']);
    expect(hints("tasks:\n  - run: x\n\tmem: 1G\n")[0]).toMatch(/spaces/);
    expect(hints('tasks:\n  - run: "x\n')[0]).toMatch(/quotes/);
  });

  it("whatever is written: problems have a place in the file, and reading twice finds the same", () => {
    const word = fc.constantFrom("tasks:", "  - run: x", "    mem: 1G", "    each: {array: 1-2}", "    foo: {item} x", "\t- a", "    run: '", "name: [", "    after: y", "  - {run: {item}}", "    cpus: -1"); // prettier-ignore
    fc.assert(
      fc.property(fc.array(word, { maxLength: 8 }), (text) => {
        const found = problemsOf(text.join("\n"));
        expect(found.map(String)).toEqual(problemsOf(text.join("\n")).map(String));
        for (const { facts } of found)
          if (facts["at"] !== undefined) {
            const { line, column, text: shown } = facts["at"] as { line: number; column: number; text: string };
            expect(text.join("\n").split("\n")[line - 1] ?? "").toBe(shown);
            expect(column).toBeLessThanOrEqual(shown.length + 1);
          }
      }),
      { numRuns: 300 },
    );
  });
});
