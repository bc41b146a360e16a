import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson, parseSize, parseText, parseWalltime } from "../../../../src/managers/pbs/driver/parse.ts";
import { hostsOf, statusOf } from "../../../../src/managers/pbs/driver/status.ts";

const sample = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../fixtures/pbs/${name}`, import.meta.url)), "utf8");

const jobs = (name: string): ReturnType<typeof statusOf>[] =>
  [...parseJson(sample(name), "Jobs")!.values()].map((attributes) => statusOf(attributes));

const job = (name: string, id: string): ReadonlyMap<string, string> => parseJson(sample(name), "Jobs")!.get(id)!;

describe("qstat's JSON", () => {
  it("keeps a name that looks like a number as it was written, quoted or not", () => {
    for (const name of ["relnum.json", "headnum.json"]) {
      expect(job(name, "470.pbshead").get("Job_Name")).toBe("1e5");
      expect(job(name, "470.pbshead").get("project")).toBe("007");
    }
  });

  it("reads a job whose environment is no UTF-8, and one whose empty value swallowed the next", () => {
    expect(statusOf(job("rel38.json", "38.pbshead"))).toMatchObject({ state: "ended", outcome: "done", exitCode: 0 });
    expect(job("rel38.json", "38.pbshead").get("Variable_List.B")).toBe("l1\nl2");
    expect(job("rel345.json", "4.pbshead").get("Exit_status")).toBe("3");
  });

  it.each([
    ["names that are no numbers of JSON", '{"Jobs":{"1.h":{"Job_Name":nan,"project":.5,"job_state":"Q"}}}'],
    ["quotes without a backslash", '{"Jobs":{"1.h":{"Submit_arguments":"-- "a" b",\n"job_state":"Q","x":"y"}}}'],
    ["control characters", `{"Jobs":{"1.h":{"a":"x${"\u0001"}y\nz","job_state":"Q"}}}`],
    ["a comma too many, and one too few", '{"Jobs":{"1.h":{"a":1,\n"b":"c"\n"job_state":"Q",},},}'],
  ])("reads %s", (_, text) => {
    expect(parseJson(text, "Jobs")?.get("1.h")?.get("job_state")).toBe("Q");
  });

  it("has no records when the section is missing, as after an error", () => {
    expect(parseJson('{"timestamp":1,"pbs_version":"23.06.06","pbs_server":"h"}', "Jobs")?.size).toBe(0);
  });

  it.each(["", "qstat: cannot connect", '{"Jobs":{"1.h":{"a":"b', '{"Jobs":{', '{"Jobs":{"1.h":{a:1}}}'])(
    "gives up on %j, so that the text form is asked for",
    (text) => {
      expect(parseJson(text, "Jobs")).toBeUndefined();
    },
  );

  it("agrees with JSON.parse about everything that is JSON, and never throws", () => {
    const attribute = fc.string().filter((name) => name !== "" && name !== "__proto__");
    const values = fc.dictionary(attribute, fc.string({ unit: "binary" }));
    fc.assert(
      fc.property(fc.dictionary(attribute, values), fc.constantFrom(0, 1, "\t"), (records, indent) => {
        const text = JSON.stringify({ Jobs: records }, null, indent);
        const read = parseJson(text, "Jobs")!;
        expect(Object.fromEntries([...read].map(([id, fields]) => [id, Object.fromEntries(fields)]))).toEqual(records);
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.constantFrom("{", "}", "[", '"', ":", ",", "\\", "a", "1", "\n", '"Jobs"')), (parts) => {
        parseJson(parts.join(""), "Jobs");
        parseText(parts.join(""));
      }),
    );
  });
});

describe("qstat's text", () => {
  const text = [
    "Job Id: 12.pbshead",
    "    Job_Name = a = b",
    "    job_state = F",
    "    Resource_List.select = 2:ncpus=1",
    "    Variable_List = PBS_O_HOME=/home/pbsuser,PBS_O_LANG=C,",
    "\tPBS_O_PATH=/bin",
    "    Exit_status = 271",
    "    substate = 91",
    "",
    "Job Id: 13.pbshead",
    "    Job_Name = other",
    "    job_state = Q",
    "",
  ].join("\n");

  it("has the same records, with lines that go on", () => {
    const records = parseText(text);
    expect([...records.keys()]).toEqual(["12.pbshead", "13.pbshead"]);
    expect(records.get("12.pbshead")!.get("Job_Name")).toBe("a = b");
    expect(records.get("12.pbshead")!.get("Variable_List")).toBe(
      "PBS_O_HOME=/home/pbsuser,PBS_O_LANG=C,PBS_O_PATH=/bin",
    );
    expect(statusOf(records.get("12.pbshead")!).outcome).toBe("cancelled");
  });
});

describe("a job's status", () => {
  const names = (file: string): Map<string, ReturnType<typeof statusOf>> =>
    new Map([...parseJson(sample(file), "Jobs")!.values()].map((a) => [a.get("Job_Name")!, statusOf(a)]));

  it("tells how each job of the history ended", () => {
    const history = names("samples-hist.json");
    const ended = (name: string): object => {
      const { outcome, exitCode, signal } = history.get(name)!;
      return { outcome, ...(exitCode === undefined ? {} : { exitCode }), ...(signal === undefined ? {} : { signal }) };
    };
    expect(ended("ok")).toEqual({ outcome: "done", exitCode: 0 });
    expect(ended("fail3")).toEqual({ outcome: "failed", exitCode: 3 });
    expect(ended("sig9")).toEqual({ outcome: "failed", exitCode: 137 });
    expect(ended("killrun")).toEqual({ outcome: "cancelled", signal: 15 });
    expect(ended("killtrap")).toEqual({ outcome: "cancelled", signal: 15 });
    expect(ended("killq2")).toEqual({ outcome: "cancelled" });
    expect(ended("wall")).toEqual({ outcome: "timeout" });
    expect(ended("notfound")).toEqual({ outcome: "failed", exitCode: 127 });
    expect(ended("depfail")).toEqual({ outcome: "start-failed" });
    expect(history.get("depfail")!.reason).toContain("afterok:4.pbshead");
    expect(history.get("wall")!.reason).toContain("exceeded resource walltime");
  });

  it("tells what living jobs do, with the manager's comment", () => {
    const live = names("samples-live.json");
    expect(live.get("killrun")).toMatchObject({ state: "active", raw: "R", hosts: ["n2"] });
    expect(live.get("hold")).toMatchObject({ state: "held", raw: "H" });
    expect(live.get("toobig")).toMatchObject({ state: "queued", reason: expect.stringContaining("Can Never Run") });
    // its script has ended, but its output cannot be copied back, and PBS keeps trying
    expect(live.get("badout")).toMatchObject({ state: "active", raw: "E" });
    expect(jobs("s-killing.json")).toMatchObject([{ state: "active" }]);
  });

  it("does not take the parent of an array for done when one of its jobs failed", () => {
    expect(statusOf(job("arrhist.json", "41[].pbshead"))).toMatchObject({ outcome: "failed" });
    expect(statusOf(job("arrhist.json", "41[2].pbshead"))).toMatchObject({ outcome: "failed", exitCode: 9 });
  });

  const status = (fields: Record<string, string>): ReturnType<typeof statusOf> =>
    statusOf(new Map(Object.entries(fields)));

  it.each([
    [
      { job_state: "F", substate: "93", Exit_status: "-20", stime: "x" },
      { state: "ended", outcome: "lost" },
    ],
    [{ job_state: "Q", substate: "10", Exit_status: "-20" }, { state: "queued" }],
    [{ job_state: "Q", substate: "10", Exit_status: "1" }, { state: "queued" }],
    [
      { job_state: "F", substate: "93", Exit_status: "-27" },
      { state: "ended", outcome: "out-of-memory" },
    ],
    [
      { job_state: "F", substate: "93", Exit_status: "-1" },
      { state: "ended", outcome: "start-failed" },
    ],
    [
      { job_state: "F", substate: "93", Exit_status: "265" },
      { state: "ended", outcome: "failed", signal: 9 },
    ],
    [{ job_state: "E", substate: "50" }, { state: "active" }],
    [{ job_state: "E", substate: "51", Exit_status: "0" }, { state: "active" }],
    [{ job_state: "E", substate: "51", Exit_status: "-20" }, { state: "active" }],
    [
      { job_state: "W", substate: "30" },
      { state: "queued", raw: "W" },
    ],
    [
      { job_state: "H", substate: "20", comment: "job held, too many failed attempts to run" },
      { state: "held", stuck: true },
    ],
    [{ job_state: "S", substate: "45" }, { state: "suspended" }],
    [{ job_state: "%" }, { state: "unknown", raw: "%" }],
    [{}, { state: "unknown", raw: "" }],
  ])("%j is %j", (fields, expected) => {
    expect(status(fields)).toMatchObject(expected);
    if (expected.state !== "ended") {
      expect(status(fields).outcome).toBeUndefined();
      expect(status(fields).exitCode).toBeUndefined();
    }
  });

  it("is never a crash, whatever the attributes", () => {
    const name = fc.constantFrom("job_state", "substate", "Exit_status", "comment", "exec_host", "depend", "stime");
    const value = fc.oneof(fc.constantFrom("F", "E", "Q", "0", "91", "92", "93", "-29", "constructor"), fc.string());
    fc.assert(
      fc.property(fc.dictionary(name, value), (fields) => {
        const { state, outcome } = status(fields);
        expect(outcome !== undefined).toBe(state === "ended");
      }),
    );
  });
});

describe("quantities of PBS", () => {
  it.each([
    ["4gb", 4 * 1024 ** 3],
    ["102400kb", 102400 * 1024],
    ["100mw", 800 * 1024 ** 2],
    ["17", 17],
    ["many", 0],
    [undefined, 0],
  ])("%s is %i bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it.each([
    ["24:00:00", 86_400],
    ["05:30", 330],
    ["90", 90],
    ["a day", undefined],
  ])("%s is %s seconds", (text, seconds) => expect(parseWalltime(text)).toBe(seconds));

  it("names each host once", () => expect(hostsOf("n1/0*2+n2/0*2+n1/1")).toEqual(["n1", "n2"]));
});
