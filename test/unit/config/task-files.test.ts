import { describe, expect, it } from "vitest";
import { buildRun, type BuiltRun } from "../../../src/config/build-run.ts";
import { requestBody } from "../../../src/config/request-body.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { readRunBody } from "../../../src/config/run-file.ts";
import type { CommandOptions } from "../../../src/config/command-line.ts";
import { runFromCommand, withOptions } from "../../../src/config/run-from-command.ts";
import { refused } from "../../refusal.ts";

const build = (text: string, options: CommandOptions = {}): BuiltRun =>
  buildRun(withOptions(readRunFile(text, "f.yaml"), options), { cwd: "/w" });
const groupOf = (keys: string, defaults = "{}") =>
  build(`defaults: ${defaults}\ntasks: [{run: a, each: {array: 1-2}, ${keys}}]`).spec.groups[0]!;

describe("outputs, inputs and skip", () => {
  it("are one path or several; newer is the default, and goes with outputs alone", () => {
    expect(groupOf("outputs: a")).toMatchObject({ outputs: ["a"], skip: "newer" });
    expect(groupOf('outputs: ["a/{item}", b], inputs: "{item}", skip: content')).toMatchObject({
      outputs: ["a/{item}", "b"],
      inputs: ["{item}"],
      skip: "content",
    });
    const plain = groupOf("cpus: 1", "{skip: present}");
    expect([plain.outputs, plain.inputs, plain.skip]).toEqual([undefined, undefined, undefined]);
    expect(groupOf("outputs: a", "{skip: present}").skip).toBe("present");
  });

  it("refuse patterns, attempts, unknown placeholders, and what needs outputs, each at its place", () => {
    const places = [
      ["outputs: 'a*'", "outputs"],
      ["outputs: [a, 'b?']", "outputs[1]"],
      ["outputs: ''", "outputs"],
      ["outputs: '{attempt}'", "outputs"],
      ["outputs: a, inputs: '{item.x}'", "inputs"],
      ["inputs: a", "inputs"],
      ["skip: newer", "skip"],
      ["outputs: a, skip: always", "skip"],
      ["outputs: 3", "outputs"],
    ] as const;
    for (const [keys, key] of places) expect(refused(() => groupOf(keys)).facts["key"], keys).toBe(key);
    expect(refused(() => groupOf("outputs: '{itm}'")).code).toBe("unknown-placeholder");
    const many = JSON.stringify(Array.from({ length: 1001 }, (_, i) => `f${i}`));
    expect(refused(() => groupOf(`outputs: ${many}`)).message).toContain("1001");
  });

  it("can be typed: --outputs with a command, --skip and --force with a file too, and they are part of the request", () => {
    const typed = buildRun(runFromCommand(["x"], { outputs: ["a", "b"], inputs: "c", force: true }), { cwd: "/w" });
    expect(typed.spec).toMatchObject({ force: true, groups: [{ outputs: ["a", "b"], inputs: ["c"], skip: "newer" }] });
    const file = "tasks: [{name: a, run: a, outputs: o}, {name: b, run: b}]";
    const { spec } = build(file, { skip: "present", force: true });
    expect(spec.groups.map(({ skip }) => skip)).toEqual(["present", undefined]);
    expect(spec.force).toBe(true);
    expect(refused(() => build(file, { outputs: ["x"] })).message).toContain("goes with a command");
    const document = withOptions(readRunFile(file, "f.yaml"), { force: true });
    const body = requestBody(document, spec, "c0ffee00-0000-4000-8000-000000000000");
    expect(buildRun(readRunBody(JSON.parse(JSON.stringify(body))), { cwd: "/w" }).spec.force).toBe(true);
  });

  it("a path with braces in a list is told to be quoted", () => {
    const error = refused(() => build("tasks:\n  - run: a\n    outputs: [bam/{item}.bam]\n"));
    expect(error.hint).toBe('Quote this: "bam/{item}.bam"');
  });
});
