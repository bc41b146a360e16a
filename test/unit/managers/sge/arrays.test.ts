import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseMostInArray, parseQacct, parseQstat, rowsOf } from "../../../../src/managers/sge/driver/parse.ts";

const job = (state: string, tasks: string): string =>
  `<job_list state="x"><JB_job_number>1</JB_job_number><JB_name>arr;x</JB_name><JB_owner>root</JB_owner>` +
  `<state>${state}</state><queue_name>${state === "r" ? "all.q@n1" : ""}</queue_name>${tasks}</job_list>`;

describe("arrays of Grid Engine", () => {
  it("qstat: those that run have rows of their own, those that wait share one", () => {
    const text = job("r", "<tasks>2</tasks>") + job("qw", "<tasks>4-8:2,9</tasks>") + job("z", "<tasks>1,3</tasks>");
    const rows = parseQstat(text).flatMap(rowsOf);
    expect(rows.map(({ id, state }) => `${id} ${state}`)).toEqual([
      "1.2 r",
      "1.4 qw",
      "1.6 qw",
      "1.8 qw",
      "1.9 qw",
      "1.1 z",
      "1.3 z",
    ]);
    expect(rows[0]).toMatchObject({ host: "n1", array: { nativeId: "1", element: 1 } });
    expect(rowsOf(parseQstat(job("qw", ""))[0]!)).toMatchObject([{ id: "1" }]);
  });

  it("qacct: a record for each element", () => {
    const record = (task: string, failed: string): string =>
      `====\njobname      a\njobnumber    1\ntaskid       ${task}\nfailed       ${failed}\nexit_status  0\n`;
    const records = parseQacct(record("1", "100 : assumedly after job") + record("2", "0") + record("undefined", "0"));
    expect([...records.keys()]).toEqual(["1.1", "1.2", "1"]);
    expect(records.get("1.1")).toMatchObject({ failed: 100 });
  });

  it("says how many elements one may have; 0 is no limit", () => {
    expect(parseMostInArray("max_aj_instances             2000\nmax_aj_tasks                 75000\n")).toBe(75_000);
    expect(parseMostInArray("max_aj_tasks 0\n")).toBeUndefined();
    expect(parseMostInArray("")).toBeUndefined();
  });

  it("any ranges are read, and any text is taken", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 500 }), fc.nat(9)), { minLength: 1 }), (ranges) => {
        const text = ranges.map(([low, more]) => (more === 0 ? `${low}` : `${low}-${low + more}:1`)).join(",");
        const wanted = ranges.flatMap(([low, more]) => Array.from({ length: more + 1 }, (_, i) => `1.${low + i}`));
        expect(
          parseQstat(job("qw", `<tasks>${text}</tasks>`))
            .flatMap(rowsOf)
            .map(({ id }) => id),
        ).toEqual(wanted);
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const { id } of parseQstat(job("qw", `<tasks>${text}</tasks>`)).flatMap(rowsOf))
          expect(id).toMatch(/^1(\.\d+)?$/);
      }),
    );
  });
});
