import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  parseHosts,
  parseQacct,
  parseQstat,
  parseQueueLimits,
  parseReasons,
  parseSubmitted,
  partitionsOf,
  refusalOf,
  statusOfRecord,
  statusOfRow,
  type SgeRecord,
} from "../../../../src/managers/sge/driver/parse.ts";

const fixture = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../../../fixtures/sge", name), "utf8");

describe("sge.parse", () => {
  it("reads qstat's XML", () => {
    const rows = parseQstat(fixture("qstat.xml"));
    expect(rows.map(({ id, state }) => `${id} ${state}`)).toEqual([
      "909 r",
      "912 r",
      "912 r",
      "912 r",
      "911 Eqw",
      "916 qw",
      "910 hqw",
    ]);
    expect(rows[0]).toEqual({ id: "909", name: "run", owner: "alice", state: "r", host: "n4" });
  });

  it("reads as far as a listing that was cut short goes", () => {
    expect(parseQstat(fixture("qstat-finished-cut.xml")).map(({ id, state }) => id + state)).toEqual([
      "1z",
      "2z",
      "3z",
    ]);
  });

  it("reads names as they were given, also those that Grid Engine writes wrongly", () => {
    const xml =
      "<job_list state='x'><JB_job_number>1</JB_job_number><JB_name>a&apos;b%lt;c&gt;&amp;lt;</JB_name></job_list>";
    expect(parseQstat(xml)[0]?.name).toBe("a'b<c>&lt;");
  });

  it("maps every state", () => {
    const cases: [string, string][] = [
      ["qw", "queued"],
      ["Rq", "queued"],
      ["hqw", "held"],
      ["hRwq", "held"],
      ["Eqw", "held"],
      ["t", "active"],
      ["r", "active"],
      ["dr", "active"],
      ["Rr", "active"],
      ["hr", "active"],
      ["s", "suspended"],
      ["S", "suspended"],
      ["T", "suspended"],
      ["tS", "suspended"],
      ["z", "ended"],
      ["", "unknown"],
      ["?!", "unknown"],
    ];
    for (const [state, expected] of cases)
      expect([state, statusOfRow({ id: "1", name: "", owner: "", state }).state]).toEqual([state, expected]);
  });

  it("reads why a job is in error, and why it waits", () => {
    const text = fixture("qstat-j-error.txt") + fixture("qstat-j-waiting.txt");
    const reasons = parseReasons(text);
    expect(reasons.get("911")).toMatch(/^error: can't chdir to .*: No such file or directory$/);
    expect(reasons.get("916")).toBe(
      '(-l mem_mb=99999) cannot run at host "n4" because it offers only hc:mem_mb=7992.000000 (and 3 more)',
    );
  });

  it("reads the accounting: `failed` goes before `exit_status`", () => {
    const ends = [...parseQacct(fixture("qacct.txt")).values()].map((record) => statusOfRecord(record, false));
    expect(ends).toMatchObject([
      { outcome: "start-failed", reason: "changing into working directory" },
      { outcome: "failed", exitCode: 3 },
      { outcome: "timeout", signal: 9 },
      { outcome: "cancelled", signal: 9, reason: "assumedly after job", hosts: ["n4"] },
    ]);
    expect(ends[0]).not.toHaveProperty("exitCode");
  });

  it("knows the other ends of a job", () => {
    const record: SgeRecord = { id: "1", failed: 0, what: "", exitStatus: 0, wallclock: 1, category: "" };
    const outcome = (change: Partial<SgeRecord>, dying = false): string | undefined =>
      statusOfRecord({ ...record, ...change }, dying).outcome;
    expect(outcome({})).toBe("done");
    expect(outcome({}, true)).toBe("cancelled");
    expect(outcome({ exitStatus: 137 })).toBe("failed");
    expect(statusOfRecord({ ...record, failed: 100, exitStatus: 139 }, false)).toMatchObject({
      outcome: "failed",
      signal: 11,
    });
    expect(outcome({ failed: 19 })).toBe("lost");
    expect(outcome({ failed: 26 })).toBe("start-failed");
    expect(outcome({ failed: 37, wallclock: 60, category: "-l h_rt=0:1:0,h_vmem=1G" })).toBe("timeout");
    expect(outcome({ failed: 37, wallclock: 59, category: "-l h_rt=60,h_vmem=1G" })).toBe("out-of-memory");
    expect(outcome({ failed: 4711 })).toBe("failed");
  });

  it("takes the last record of a job: those of its parts come before", () => {
    const block = (host: string, status: number): string =>
      `${"=".repeat(62)}\nhostname     ${host}\njobnumber    7\nfailed       0    \nexit_status  ${status}\n`;
    expect(parseQacct(block("n2", 4) + block("n3", 5) + block("n1", 0)).get("7")).toMatchObject({
      host: "n1",
      exitStatus: 0,
    });
  });

  it("reads the id of a submission beside what else is said", () => {
    expect(parseSubmitted("12\n")).toEqual({ nativeId: "12", note: "" });
    expect(parseSubmitted("warning: no such thing\n601.1-500:1\n")).toEqual({
      nativeId: "601",
      note: "warning: no such thing",
    });
    expect(parseSubmitted("Unable to run job")).toBeUndefined();
    expect(refusalOf("Unable to run job: error: no suitable queues\nExiting.\n", "")).toBe("error: no suitable queues");
  });

  it("reads hosts and queues", () => {
    const hosts = parseHosts(fixture("qhost.xml"));
    expect(hosts.map(({ name }) => name)).toEqual(["n1", "n2", "n3", "n4"]);
    const limits = parseQueueLimits("qname  all.q\nh_rt   01:00:00\nqname other.q\nh_rt INFINITY\n");
    expect(partitionsOf(hosts, limits)).toEqual([
      {
        name: "all.q",
        isDefault: false,
        isUp: true,
        nodes: 4,
        cpusPerNode: 100,
        memoryPerNode: Math.floor(23.5 * 2 ** 30),
        gpusPerNode: 0,
        gpuTypes: [],
        maxWalltime: 3600,
      },
    ]);
  });

  it("never throws, whatever is printed", () => {
    const whole = ["qstat.xml", "qacct.txt", "qhost.xml", "qstat-j-error.txt"].map(fixture);
    const cut = fc
      .tuple(fc.constantFrom(...whole), fc.nat(6000), fc.nat(6000), fc.string())
      .map(([text, from, length, put]) => text.slice(0, from) + put + text.slice(from + length));
    fc.assert(
      fc.property(fc.oneof(fc.string(), cut), fc.boolean(), (text, dying) => {
        for (const row of parseQstat(text)) statusOfRow(row);
        for (const record of parseQacct(text).values()) statusOfRecord(record, dying);
        partitionsOf(parseHosts(text), parseQueueLimits(text));
        parseReasons(text);
        parseSubmitted(text);
        refusalOf(text, text);
      }),
    );
  });
});
