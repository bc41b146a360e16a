import { describe, expect, it } from "vitest";
import { oarDirectives } from "../../../../src/managers/oar/directives.ts";
import type { PilotAsk } from "../../../../src/managers/manager.ts";
import type { OarQueue } from "../../../../src/managers/oar/keys.ts";
import { LEAST_ASK } from "../least-ask.ts";

const MiB = 1024 * 1024;
const lines = (change: Partial<PilotAsk<OarQueue>>): string[] => oarDirectives({ ...LEAST_ASK, ...change });

describe("oar.directives", () => {
  it("asks for whole nodes where no cores are named", () => {
    expect(lines({ nodes: 2 })).toEqual(["#OAR -n slw-1", "#OAR -l /nodes=2", "#OAR -O /l/out", "#OAR -E /l/err"]);
    expect(lines({ cores: 4, exclusive: true })[1]).toBe("#OAR -l /nodes=1");
  });

  it("asks for cores of each node, and writes times as OAR reads them", () => {
    expect(lines({ nodes: 2, cores: 4, walltime: 100 * 3600 + 61.2 })[1]).toBe(
      "#OAR -l /nodes=2/core=4,walltime=100:01:02",
    );
  });

  it("takes the resources as they were written, with a walltime of theirs", () => {
    const spec = (resourceSpec: string): string => lines({ cores: 9, walltime: 60, own: { resourceSpec } })[1]!;
    expect(spec("/nodes=1/gpu=2")).toBe("#OAR -l /nodes=1/gpu=2,walltime=0:01:00");
    expect(spec("/nodes=1,walltime=2:00:00")).toBe("#OAR -l /nodes=1,walltime=2:00:00");
  });

  it("asks for memory as a property of cores, together with a given one", () => {
    const memory = { cores: 3, memory: 1000 * MiB };
    const property = (oar: OarQueue | undefined): string | undefined =>
      lines({ ...memory, ...(oar === undefined ? {} : { own: oar }) }).find((line) => line.startsWith("#OAR -p"));
    expect(property({ memoryPerCorePropertyName: "memcore" })).toBe("#OAR -p memcore >= 334");
    expect(property({ memoryPerCorePropertyName: "memcore", property: "a = 'x' OR b = 'y'" })).toBe(
      "#OAR -p (a = 'x' OR b = 'y') AND (memcore >= 334)",
    );
    expect(property({ memoryPerCorePropertyName: null })).toBeUndefined();
    expect(property({ memoryPerCorePropertyName: null, property: "host = 'n1'" })).toBe("#OAR -p host = 'n1'");
    expect(() => property({})).toThrowError(expect.objectContaining({ code: "bad-value" }));
  });

  it("names queue and project, adds options and leaves out what is to be skipped", () => {
    const asked = lines({
      partition: "besteffort",
      account: "p1",
      options: ["-t besteffort"],
      skipOptions: ["-E ", ""],
    });
    expect(asked.slice(2)).toEqual(["#OAR -O /l/out", "#OAR -q besteffort", "#OAR --project p1", "#OAR -t besteffort"]);
  });

  it("refuses what would end a line or reach the database as something else", () => {
    for (const change of [
      { name: "it's" },
      { stdout: "/it's/out" },
      { account: "x' --" },
      { options: ["-t a\n#OAR -q b"] },
    ])
      expect(() => lines(change)).toThrowError(expect.objectContaining({ code: "bad-value" }));
  });
});
