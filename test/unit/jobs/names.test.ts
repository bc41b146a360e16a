import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultKey, directoryName, intentIn, intentOf, markOf } from "../../../src/jobs/names.ts";
import { PLAIN_NAMES, taskJobName } from "../../../src/managers/task-job-name.ts";

describe("names of tasks' jobs", () => {
  const mark = markOf("/home/me/.slipway", "token");

  it("rows 001-51 and 001-63: begin with the base name of the run's directory and a colon, where nothing else was said", () => {
    expect(defaultKey("/work/proj")).toBe("proj:");
    expect(taskJobName(PLAIN_NAMES, defaultKey("/work/proj"), "solve", intentOf(mark, 7))).toMatch(
      /^proj:solve-[0-9a-f]{12}$/,
    );
  });

  it("end with digits of the intent, whatever is in front of them; so does the name of the directory", () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ maxLength: 300 }), fc.nat(), (key, task, id) => {
        const intent = intentOf(mark, id);
        const name = taskJobName(PLAIN_NAMES, key, task, intent);
        expect(intentIn(name)).toBe(intent);
        const directory = directoryName(name);
        expect(intentIn(directory)).toBe(intent);
        expect(directory).toMatch(/^[\w.-]+$/);
        expect(Buffer.byteLength(directory)).toBeLessThan(256);
      }),
    );
  });

  it("are those of one home: its path and its token count", () => {
    const all = [markOf("/a", "t"), markOf("/a", "u"), markOf("/b", "t"), markOf("/at", "")].map((each) =>
      intentOf(each, 1),
    );
    expect(new Set(all).size).toBe(4);
    expect(intentOf(mark, 1)).not.toBe(intentOf(mark, 2));
    expect(intentIn("somebody's-job")).toBe(undefined);
  });
});
