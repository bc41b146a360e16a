import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isOarAnswer,
  parseNodes,
  parseOarstat,
  parseSubmitted,
  refusalOf,
  statusOfJob,
} from "../../../../src/managers/oar/driver/parse.ts";

const fixture = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../../../fixtures/oar", name), "utf8");

describe("oar.parse", () => {
  it("reads how jobs are and how they ended", () => {
    const statuses = new Map(parseOarstat(fixture("oarstat.json")).map((job) => [job.id, statusOfJob(job)]));
    const expected: Record<string, object> = {
      "5": { state: "ended", raw: "Error", outcome: "timeout", reason: expect.stringContaining("(Elapsed)") },
      "6": { outcome: "start-failed", reason: expect.stringContaining("Cannot create .stdout and .stderr files") },
      "7": { outcome: "start-failed", reason: expect.stringContaining("/nonexistent") },
      "8": { outcome: "failed", exitCode: 127 },
      "9": { outcome: "failed", signal: 11 },
      "10": { outcome: "cancelled", reason: "User alice requested to frag the job 10" },
      "11": { outcome: "done", exitCode: 0 },
      "12": { outcome: "cancelled" },
      "13": { state: "active", raw: "Running", hosts: ["n1", "n3"] },
      "14": { outcome: "cancelled" },
    };
    for (const [id, status] of Object.entries(expected)) expect([id, statuses.get(id)]).toMatchObject([id, status]);
    expect(statuses.size).toBe(10);
  });

  it("maps every state; one that it does not know keeps its word", () => {
    const state = (raw: string): string => statusOfJob({ ...parseOarstat('{"1":{}}')[0]!, state: raw }).state;
    expect(["Waiting", "toLaunch", "toAckReservation"].map(state)).toEqual(["queued", "queued", "queued"]);
    expect(["Hold", "Launching", "Running", "Finishing"].map(state)).toEqual(["held", "active", "active", "active"]);
    expect(["Suspended", "Resuming", "Terminated", "Error"].map(state)).toEqual([
      "suspended",
      "suspended",
      "ended",
      "ended",
    ]);
    expect(statusOfJob({ ...parseOarstat('{"1":{}}')[0]!, state: "Dreaming" })).toEqual({
      state: "unknown",
      raw: "Dreaming",
    });
  });

  it("knows that a node was lost and which job goes on in its place", () => {
    const events = [
      { type: "PING_CHECKER_NODE_SUSPECTED", description: "n1 does not answer" },
      { type: "RESUBMIT_JOB_AUTOMATICALLY", description: "Resubmit job 4 => 5 (type idempotent)" },
    ];
    const text = JSON.stringify({ 4: { state: "Error", events }, 5: { state: "Waiting", resubmit_job_id: 4 } });
    const [lost, next] = parseOarstat(text);
    expect(next?.repeats).toBe("4");
    expect(statusOfJob(lost!, "5")).toMatchObject({ outcome: "lost", reason: "n1 does not answer", successor: "5" });
  });

  it("tells nothing from what is no answer", () => {
    expect([isOarAnswer(""), isOarAnswer('{"1":{}}'), isOarAnswer("DB connection error"), isOarAnswer("[]")]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("reads the id of a submission; a negative one is a refusal", () => {
    expect(parseSubmitted(fixture("oarsub.txt"))).toEqual(["3"]);
    expect(parseSubmitted("OAR_JOB_ID=-5\n")).toEqual([]);
    const stderr =
      "There are not enough resources for your request\n[ERROR] Oarsub failed, please verify your request syntax.\n";
    expect(refusalOf(stderr, "[ADMISSION RULE] Set default walltime to 7200.\nOAR_JOB_ID=-5\n")).toBe(
      "There are not enough resources for your request",
    );
    expect(refusalOf("[ERROR] Oarsub failed, please verify your request syntax.\n", "")).toContain("Oarsub failed");
  });

  it("reads the ids of an array, and which place each of its jobs has; another job has none", () => {
    expect(parseSubmitted("OAR_JOB_ID=1\nOAR_JOB_ID=2\nOAR_ARRAY_ID=1\n")).toEqual(["1", "2"]);
    const job = (id: number, array: number, index: number, asked: string): object => ({
      [id]: { array_id: array, array_index: index, initial_request: asked, name: "x", state: "Waiting" },
    });
    const text = JSON.stringify({
      ...job(4, 4, 1, "oarsub -S --array 2 /s.sh; #OAR -n x"),
      ...job(5, 4, 2, "oarsub -S --array 2 /s.sh; #OAR -n x"),
      ...job(6, 6, 1, "oarsub -S /s.sh; #OAR -n --array 2"),
    });
    expect(parseOarstat(text).map(({ id, array }) => [id, array])).toEqual([
      ["4", { nativeId: "4", element: 0 }],
      ["5", { nativeId: "4", element: 1 }],
      ["6", undefined],
    ]);
  });

  it("reads nodes from their resources", () => {
    const nodes = parseNodes(fixture("oarnodes.json"), "memcore");
    expect(nodes.map(({ name }) => name).toSorted()).toEqual(["n1", "n2", "n3", "n4"]);
    expect(nodes[0]).toMatchObject({ cores: 4, isAlive: true, memory: 8192 * 2 ** 20, gpus: 0 });
  });

  it("never throws, whatever is printed", () => {
    const some = fc.oneof(fc.string(), fc.json());
    const job = fc.dictionary(
      fc.constantFrom("state", "events", "exit_code", "name", "message", "assigned_network_address", "resubmit_job_id"),
      fc.jsonValue(),
    );
    const jobs = fc.dictionary(fc.string(), job).map((value) => JSON.stringify(value));
    fc.assert(
      fc.property(fc.oneof(some, jobs), (text) => {
        for (const one of parseOarstat(text)) statusOfJob(one);
        parseNodes(text, "memcore");
        parseSubmitted(text);
        refusalOf(text, text);
        isOarAnswer(text);
      }),
    );
  });
});
