import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defineRun } from "../../../src/agent/templates.ts";
import type { AgentLink } from "../../../src/agent-links/agents.ts";
import { sendAssignments } from "../../../src/agent-links/assignments.ts";
import { packr } from "../../../src/core/codec.ts";
import { shapeKey } from "../../../src/core/resources.ts";
import { createRun } from "../../../src/core/run.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { createState } from "../../../src/core/state.ts";
import type { Define, ServerMessage } from "../../../src/protocol/messages.ts";
import { group, spec } from "../core/model.ts";

/** What an agent is told of these groups, and what it knows then. */
const told = (groups: readonly GroupSpec[], alike: boolean) => {
  const state = createState();
  const run = createRun(1, "u", spec([...groups]), 0, new Map());
  state.runs.set(1, run);
  const heard: Define[] = [];
  let bytes = 0;
  const sendFrame = (frame: Buffer): void => {
    bytes += frame.length;
    const message = packr.unpack(frame.subarray(4)) as ServerMessage;
    if (message.t === "define") heard.push(message);
  };
  const channel = { send: () => undefined, sendFrame };
  const limitsOf = () => ({ perTask: 1, perRun: 1, over: false });
  const link = { id: 1, channel, defined: new Map(), limitsOf, singles: true, alike } as unknown as AgentLink;
  sendAssignments(state, link, [{ run: 1, ranges: [0, run.total] }]);
  let template: ReturnType<typeof defineRun> | undefined;
  for (const message of heard) template = defineRun(template, message);
  const known = [...template!.groups].toSorted(([a], [b]) => a - b);
  return { bytes, heard, known: known.map(([index, { source }]) => ({ key: index, source })), template: template! };
};

const some = <T>(...values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined });

const drawnGroup = fc.record(
  {
    count: fc.constantFrom(1, 1, 1, 1, 3),
    executor: fc.constantFrom("process" as const, "null" as const),
    priority: fc.nat(1),
    command: fc.constantFrom("true", ["a", "b"]),
    env: some<Record<string, string>>({}, { A: "1" }, { A: "2" }, { A: "1", B: "1" }),
    cwd: some("/a", "/b"),
    stdout: some("out", "out.{task}"),
    stderr: some("err"),
    append: some(true),
    timeLimit: some(1, 2),
    pin: some(true),
    outputs: some(["o"]),
    colsep: some(","),
    resources: fc.constantFrom({ cpus: 10_000 }, { cpus: 20_000 }, { cpus: 10_000, mem: 1 }),
  },
  { requiredKeys: ["count", "executor", "priority", "command", "resources"] },
);

describe("groups that are alike", () => {
  it("are the same to an agent that takes them as columns, whatever they have in common", () => {
    fc.assert(
      fc.property(fc.array(drawnGroup, { minLength: 3, maxLength: 30 }), (drawn) => {
        const groups = drawn.map(({ count, ...more }, i) => group(`g${i}`, count, more as Partial<GroupSpec>));
        const [plain, columns] = [told(groups, false), told(groups, true)];
        expect(columns.known).toEqual(plain.known);
        for (const { shape, source } of columns.template.groups.values())
          if (shape !== undefined) expect(shape).toBe(shapeKey(source.resources));
        expect(plain.heard.every((message) => !("alike" in message))).toBe(true);
      }),
    );
  });

  it("say what they share once", () => {
    const env = () => ({ OMP_NUM_THREADS: "1" });
    const groups = Array.from({ length: 1000 }, (_, i) => group(`t${i}`, 1, { command: ["/bin/true"], env: env() }));
    expect(told(groups, true).bytes).toBeLessThan(told(groups, false).bytes / 4);
  });
});
