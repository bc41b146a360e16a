import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { compileTask, expandTask, itemAt, type TaskTemplate } from "../../../src/core/task-template.ts";

const facts = { run: 7, task: 3, attempt: 2, item: { text: "it's", json: false }, cwd: "/work" };
const expanded = (template: Partial<TaskTemplate>, more: Partial<typeof facts> = {}) =>
  expandTask(compileTask({ name: "n", command: ["true"], ...template }), { ...facts, ...more }, posix.resolve);

describe("a task's template comes to", () => {
  it("the words of a list, each on its own", () => {
    expect(expanded({ command: ["echo", "{item}", "{run}.{task}:{attempt}", "{name}", "{cwd}"] }).argv).toEqual([
      "echo",
      "it's",
      "7.3:2",
      "n",
      "/work",
    ]);
  });

  it("a shell's command with its values quoted for the place", () => {
    expect(expanded({ command: "echo {item}" }).argv).toEqual(["/bin/sh", "-c", "echo 'it'\\''s'"]);
    expect(expanded({ command: "{item}" }).argv).toEqual(["/bin/sh", "-c", "it's"]);
    expect(expanded({ command: "-c" }).argv).toEqual(["/bin/sh", "-c", "-c"]);
  });

  it("paths from the run's directory; {cwd} is the run's in the directory itself, elsewhere the task's", () => {
    const paths = expanded({
      cwd: "{cwd}/{task}",
      stdout: "{cwd}/../out",
      stderr: "logs/{item}.err",
      env: { D: "{cwd}" },
    });
    expect(paths).toMatchObject({
      cwd: "/work/3",
      stdout: "/work/out",
      stderr: "/work/logs/it's.err",
      env: ["D=/work/3"],
    });
    expect(expanded({})).toMatchObject({ cwd: "/work", stdout: null, stderr: null, env: [] });
  });

  it("an error that says why, where a value cannot be placed, unless it is only to be shown", () => {
    const template = { name: "n", command: ["echo", "{item.x}", "{run}"] };
    const task = compileTask(template);
    expect(() => expandTask(task, facts, posix.resolve)).toThrow(RangeError);
    const shown = expandTask(task, facts, posix.resolve, (part) => part.text);
    expect(shown.argv).toEqual(template.command);
  });
});

it("an item is what was stored, else the number at its place", () => {
  expect(itemAt(0, "line", false, undefined)).toEqual({ text: "line", json: false });
  expect(itemAt(0, '"text"', true, undefined)).toEqual({ text: "text", json: false });
  expect(itemAt(0, '{"a":1}', true, undefined)).toEqual({ text: '{"a":1}', json: true });
  expect(itemAt(4, undefined, false, { from: 10, step: 5 })).toEqual({ text: "30", json: false });
  expect(itemAt(4, undefined, false, undefined)).toBeUndefined();
});
