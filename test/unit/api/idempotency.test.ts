import { describe, expect, it } from "vitest";
import { createAnswers, firstWithKey, keyOf, withKey } from "../../../src/api/idempotency.ts";
import { problemOf } from "../../../src/api/problem.ts";
import { ERRORS, type ErrorCode, SlipwayError, errorFromJSON } from "../../../src/errors.ts";

const KEY = "0d9c1c1e-9c1a-4a63-9d9d-0f5b8a0c2f11";

describe("the header Idempotency-Key", () => {
  it("the same key and request are made once, also at the same time; other callers and routes are apart", async () => {
    const answers = createAnswers(() => 0);
    let made = 0;
    const make = async (): Promise<number> => (made += 1);
    const both = [answers.once(KEY, "pilots a", { count: 1 }, make), answers.once(KEY, "pilots a", { count: 1 }, make)];
    expect(await Promise.all(both)).toEqual([1, 1]);
    expect(await answers.once(KEY, "tokens a", { count: 1 }, make)).toBe(2);
    expect(await answers.once(KEY, "pilots b", { count: 1 }, make)).toBe(3);
    expect(await answers.once(undefined, "pilots a", { count: 1 }, make)).toBe(4);
  });

  it("with another request it is refused, and a refusal is not kept", async () => {
    const answers = createAnswers(() => 0);
    const fails = async (): Promise<never> => {
      throw new SlipwayError("stopping");
    };
    await expect(answers.once(KEY, "p", 1, fails)).rejects.toMatchObject({ code: "stopping" });
    expect(await answers.once(KEY, "p", 1, async () => "now")).toBe("now");
    await expect(answers.once(KEY, "p", 2, async () => "other")).rejects.toMatchObject({ code: "key-reused" });
  });

  it("is kept for 24 hours, and never more than so many", async () => {
    let now = 0;
    const answers = createAnswers(() => now);
    let made = 0;
    const make = async (): Promise<number> => (made += 1);
    await answers.once(KEY, "p", 1, make);
    now = 24 * 3_600_000 - 1;
    expect(await answers.once(KEY, "p", 1, make)).toBe(1);
    now += 2;
    expect(await answers.once(KEY, "p", 1, make)).toBe(2);
    for (let i = 0; i < 10_100; i += 1) await answers.once(KEY, `p${i}`, 1, make);
    expect(await answers.once(KEY, "p", 1, make)).toBe(made);
  });

  it("is the uuid of a document, and only a UUID is one", async () => {
    expect(keyOf(undefined)).toBeUndefined();
    expect(keyOf(KEY)).toBe(KEY);
    for (const wrong of ["", "1", `${KEY}x`, "x".repeat(8000)]) expect(() => keyOf(wrong)).toThrow(/must be a UUID/);
    expect(withKey({ tasks: [] }, KEY)).toEqual({ tasks: [], uuid: KEY });
    expect(withKey({ uuid: KEY }, KEY)).toEqual({ uuid: KEY });
    expect(() => withKey({ uuid: "another" }, KEY)).toThrow(/differ/);
    for (const other of [null, 3, [1]]) expect(withKey(other, KEY)).toBe(other);
    const lines = async function* () {
      yield { tasks: [] };
      yield { end: true };
    };
    const seen: unknown[] = [];
    for await (const value of firstWithKey(lines(), KEY)) seen.push(value);
    expect(seen).toEqual([{ tasks: [], uuid: KEY }, { end: true }]);
  });
});

describe("errors as problems (RFC 9457)", () => {
  it("every error has a type, a title that does not vary, its status, and the member `error` of v1", () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[]) {
      const problem = problemOf(new SlipwayError(code, { run: 7, detail: "x" }));
      expect(problem).toMatchObject({
        type: `urn:slipway:error:${code}`,
        status: ERRORS[code].http,
        code,
        facts: { run: 7 },
        error: { code, message: problem.detail, hint: problem.hint },
      });
      expect(problem.title).toBe(problemOf(new SlipwayError(code, {})).title);
      expect(errorFromJSON(JSON.parse(JSON.stringify(problem)))).toMatchObject({ code, message: problem.detail });
    }
  });
});
