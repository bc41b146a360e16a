import { expect, test } from "vitest";
import { lineJoiner, type TaskLine } from "../../../src/cli/log-lines.ts";

const text = (lines: readonly TaskLine[]): string[] => lines.map(({ task, line }) => `${task}: ${line}`);

test("pieces of several tasks become whole lines", () => {
  const lines = lineJoiner();
  expect(text(lines.add("3.0", Buffer.from("one\ntw")))).toEqual(["3.0: one"]);
  expect(text(lines.add("3.1", Buffer.from("other")))).toEqual([]);
  expect(text(lines.add("3.0", Buffer.from("o\n\nlast")))).toEqual(["3.0: two", "3.0: "]);
  expect(text(lines.end())).toEqual(["3.1: other", "3.0: last"]);
  expect(lines.end()).toEqual([]);
});

test("a line that never ends is shown in pieces instead of filling the memory", () => {
  const lines = lineJoiner(10);
  expect(lines.add("3.0", Buffer.from("12345"))).toEqual([]);
  expect(text(lines.add("3.0", Buffer.from("678901")))).toEqual(["3.0: 12345678901"]);
  expect(text(lines.add("3.0", Buffer.from("23\n")))).toEqual(["3.0: 23"]);
});
