import { describe, expect, it } from "vitest";
import { buildRun, type BuiltRun } from "../../../src/config/build-run.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { readRunBody } from "../../../src/config/run-file.ts";
import { requestBody } from "../../../src/config/request-body.ts";
import type { CommandOptions } from "../../../src/config/command-line.ts";
import { runFromCommand, withOptions } from "../../../src/config/run-from-command.ts";
import { refused } from "../../refusal.ts";

const build = (text: string): BuiltRun => buildRun(readRunFile(text, "f.yaml"), { cwd: "/w" });
const jobOf = (keys: string, defaults = "{}") => {
  const { spec } = build(`defaults: ${defaults}\ntasks: [{run: a, via: job, ${keys}}]`);
  return spec.groups[0]!;
};
const typed = (options: CommandOptions): BuiltRun => buildRun(runFromCommand(["x"], options), { cwd: "/w" });

describe("keys of tasks that are jobs of their own", () => {
  it("are texts, however they look, the task's own before the run's defaults", () => {
    const defaults = "{partition: 007, qos: low, features1: big}";
    expect(jobOf("qos: high, gres0: 'gpu:1', gres1: fpga, prio: -5", defaults).job).toEqual({
      keys: { partition: "007", qos: "high", features1: "big", gres0: "gpu:1", gres1: "fpga", prio: "-5" },
    });
    expect(jobOf("cpus: 2").job).toEqual({ keys: {} });
  });

  it("every manager's are known: Slurm's with an index too, Grid Engine's, PBS's and OAR's", () => {
    const texts = "features: a, licence: b, excludes: c, reserv: d, nodelist: e, reserv9: f, nodes1: g";
    const others = "hard: -q x, soft: a=1, select: 2:ncpus=1, place: scatter, properties: gpu='YES', types: besteffort";
    expect(Object.keys(jobOf(`${texts}, ${others}`).job!.keys)).toHaveLength(13);
  });

  it("row 001-75: nodes as a number is how many; a text that is none names nodes", () => {
    expect(jobOf("nodes: 4").ranks).toEqual({ count: 4, nodes: 4, by: "agents" });
    expect(jobOf("nodes: '4'").ranks).toEqual({ count: 4, nodes: 4, by: "agents" });
    const named = jobOf("nodes: 'n[1-4]'");
    expect([named.ranks, named.job]).toEqual([undefined, { keys: { nodes: "n[1-4]" } }]);
    const both = jobOf("nodes: 2, nodelist: 'n1,n2'");
    expect([both.ranks?.nodes, both.job?.keys]).toEqual([2, { nodelist: "n1,n2" }]);
    // the task's own count is not beside the names of the defaults
    expect(jobOf("nodes: 2", "{nodes: n1}").job).toEqual({ keys: {} });
  });

  it("rows 001-80 and 001-93: backend is a text for the manager, in a file and on the command line", () => {
    const { backends } = build("tasks: [{run: a}, {run: b, via: job, backend: -p long --mem 2G}]");
    expect([...backends]).toEqual([[1, "-p long --mem 2G"]]);
    expect([...typed({ via: "job", backend: "-5" }).backends]).toEqual([[0, "-5"]]);
    const file = withOptions(readRunFile("tasks: [{run: a, via: job, backend: -p x}]", "f.yaml"), { backend: "-p y" });
    expect([...buildRun(file, { cwd: "/w" }).backends]).toEqual([[0, "-p y"]]);
  });

  it("go to the server as they were written", () => {
    const document = readRunFile("tasks: [{run: a, via: job, partition: p, nodes: n1, backend: -q x}]", "f.yaml");
    const { spec, backends } = buildRun(document, { cwd: "/w" });
    const body: unknown = JSON.parse(JSON.stringify(requestBody(document, spec, crypto.randomUUID())));
    const there = buildRun(readRunBody(body), {});
    expect([there.spec.groups[0]!.job, there.backends]).toEqual([spec.groups[0]!.job, backends]);
  });

  it("defaults may be for some of the tasks only", () => {
    const { spec } = build("defaults: {partition: p, nodes: n1}\ntasks: [{run: a}, {run: b, via: job}]");
    expect(spec.groups.map(({ job, ranks }) => [job?.keys, ranks])).toEqual([
      [undefined, undefined],
      [{ partition: "p", nodes: "n1" }, undefined],
    ]);
  });

  it.each([
    ["tasks:\n  - run: a\n    partition: p", /^f\.yaml:3:16: partition: goes with via: job; tasks of pilots/],
    ["tasks:\n  - {run: a, via: pilot, gres1: x}", /gres1: goes with via: job/],
    ["tasks:\n  - {run: a, nodes: n1}", /^f\.yaml:2:21: nodes: goes with via: job/],
    ["tasks:\n  - {run: a, backend: -p x}", /backend: goes with via: job/],
    ["defaults: {qos: x}\ntasks: [{run: a}]", /^f\.yaml:1:17: qos: goes with via: job/],
    ["tasks: [{run: a, via: job, gres10: x}]", /gres10/],
    ["tasks: [{run: a, via: job, partitoin: x}]", /partitoin.*did you mean 'partition'/],
    ["tasks: [{run: a, via: job, partition: [x]}]", /partition: must be text/],
    ["tasks: [{run: a, via: job, qos: 'a\0b'}]", /qos/],
    ["tasks: [{run: a, via: job, nodes: 0}]", /nodes: must be between 1 and/],
  ])("%j is refused where it is written", (text, message) => {
    const error = refused(() => build(text));
    expect(error.message).toMatch(message);
    expect(error.row.exit).toBe(2);
    expect(error.hint).not.toMatch(/^\s*$/);
  });

  it.each<[CommandOptions, RegExp]>([
    [{ backend: "-q x" }, /^command line: --backend: goes with via: job/],
    [{ via: "job", nodes: "n1" }, /^command line: --nodes: must be a whole number/],
  ])("%j is refused on the command line", (options, message) => expect(() => typed(options)).toThrow(message));
});
