import { describe, expect, it } from "vitest";
import type { PilotAsk } from "../../../../src/managers/manager.ts";
import type { SgeQueue } from "../../../../src/managers/sge/keys.ts";
import { sgeDirectives } from "../../../../src/managers/sge/directives.ts";
import { LEAST_ASK } from "../least-ask.ts";

const MiB = 1024 * 1024;
const lines = (change: Partial<PilotAsk<SgeQueue>>): string[] => sgeDirectives({ ...LEAST_ASK, ...change });

describe("sge.directives", () => {
  it("says the least for the least", () => {
    expect(lines({})).toEqual(["#$ -N slw-1", "#$ -o /l/out", "#$ -e /l/err", "#$ -cwd", "#$ -S /bin/bash", "#$ -r n"]);
  });

  it("asks for slots of the parallel environment, and for memory of each slot", () => {
    const sge = { parallelEnvironment: "mpi", memResource: "mem_mb", tmpResource: "tmp_mb", gpuResource: "gpu" };
    const asked = lines({ nodes: 2, cores: 4, memory: 1001 * MiB, tmp: 5 * MiB, gpus: 2, walltime: 90, own: sge });
    expect(asked.slice(6)).toEqual([
      "#$ -l h_rt=90",
      "#$ -pe mpi 8",
      "#$ -l mem_mb=251",
      "#$ -l tmp_mb=5",
      "#$ -l gpu=2",
    ]);
  });

  it("asks for cores by their resource where one is named: a node is one slot then", () => {
    const sge = { parallelEnvironment: "onepernode", cpuResource: "cpu_r", memResource: "mem_r" };
    expect(lines({ nodes: 3, cores: 4, memory: 100 * MiB, own: sge }).slice(6)).toEqual([
      "#$ -pe onepernode 3",
      "#$ -l cpu_r=4",
      "#$ -l mem_r=100",
    ]);
    expect(lines({ cores: 4, own: { cpuResource: "cpu_r" } }).slice(6)).toEqual(["#$ -l cpu_r=4"]);
  });

  it("puts queue, project, priority, hard, soft and further options where they belong", () => {
    const sge = { defaultPrio: -10, hard: ["arch=lx-amd64", "-q fast.q"], soft: ["fast=1"] };
    const asked = lines({
      partition: "all.q",
      account: "p",
      exclusive: true,
      own: sge,
      options: ["-m e"],
      skipOptions: ["-cwd", ""],
    });
    expect(asked.slice(5)).toEqual([
      "#$ -q all.q",
      "#$ -P p",
      "#$ -p -10",
      "#$ -l exclusive=true",
      "#$ -hard -l arch=lx-amd64",
      "#$ -hard -q fast.q",
      "#$ -soft -l fast=1 -hard",
      "#$ -m e",
    ]);
    expect(asked.join("\n")).not.toContain("-cwd");
  });

  it("quotes what has blanks, and refuses what cannot be said", () => {
    expect(lines({ stdout: "/a dir/out" })[1]).toBe('#$ -o "/a dir/out"');
    expect(() => lines({ cores: 2 })).toThrowError(expect.objectContaining({ code: "bad-value" }));
    expect(() => lines({ nodes: 2 })).toThrowError(expect.objectContaining({ code: "bad-value" }));
    for (const stdout of ["/it's", '/a"b', "/a\nb"])
      expect(() => lines({ stdout })).toThrowError(expect.objectContaining({ code: "bad-value" }));
    expect(() => lines({ options: ["-m e\nrm -rf ~"] })).toThrowError(expect.objectContaining({ code: "bad-value" }));
  });
});
