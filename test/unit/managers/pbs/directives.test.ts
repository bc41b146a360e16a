import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pbsDirectives, pbsDuration, pbsName } from "../../../../src/managers/pbs/directives.ts";
import type { PilotAsk } from "../../../../src/managers/manager.ts";
import type { PbsQueue } from "../../../../src/managers/pbs/keys.ts";

const ask = (change: Partial<PilotAsk<PbsQueue>> = {}): PilotAsk<PbsQueue> => ({
  name: "slipway-1a2b-7",
  stdout: "/h/jobs/7/out",
  stderr: "/h/jobs/7/err",
  nodes: 1,
  options: [],
  skipOptions: [],
  own: {},
  ...change,
});

describe("#PBS lines of a pilot", () => {
  it("ask for one chunk per node, on nodes of their own", () => {
    const all = ask({
      nodes: 2,
      cores: 4,
      memory: 100 * 1024 ** 2 + 1,
      gpus: 1,
      walltime: 3661,
      partition: "gpu",
      account: "proj1",
      own: { selectOptions: "mpiprocs=4:arch=linux" },
      options: ["-m n"],
    });
    expect(pbsDirectives(all)).toEqual([
      "#PBS -N slipway-1a2b-7",
      "#PBS -o /h/jobs/7/out",
      "#PBS -e /h/jobs/7/err",
      "#PBS -l select=2:ncpus=4:mem=102401kb:ngpus=1:mpiprocs=4:arch=linux",
      "#PBS -l place=scatter",
      "#PBS -l walltime=01:01:01",
      "#PBS -q gpu",
      "#PBS -P proj1",
      "#PBS -r n",
      "#PBS -W umask=0022",
      "#PBS -m n",
    ]);
  });

  it("leave out what the queue does not ask for, and what it skips", () => {
    expect(pbsDirectives(ask({ skipOptions: ["umask", "-l place"] }))).toEqual([
      "#PBS -N slipway-1a2b-7",
      "#PBS -o /h/jobs/7/out",
      "#PBS -e /h/jobs/7/err",
      "#PBS -l select=1",
      "#PBS -r n",
    ]);
  });

  it.each([
    [{ exclusive: true }, "#PBS -l place=pack:excl"],
    [{ exclusive: true, nodes: 3 }, "#PBS -l place=scatter:excl"],
    [{ own: { place: "vscatter:shared" } }, "#PBS -l place=vscatter:shared"],
    [{ constraint: "bigmem" }, "#PBS -l select=1:bigmem=True"],
    [{ constraint: "arch=linux" }, "#PBS -l select=1:arch=linux"],
    [{ reservation: "R12", partition: "workq" }, "#PBS -q R12"],
    [{ stdout: "/h/a b/out" }, '#PBS -o "/h/a b/out"'],
  ])("%j gives %s", (change, line) => {
    expect(pbsDirectives(ask(change))).toContain(line);
  });
});

describe("names for -N", () => {
  it("are kept where PBS takes them", () => {
    for (const name of ["a", "slipway-1a2b-7", "1e5", "a.b_c+d", "x".repeat(230)]) expect(pbsName(name)).toBe(name);
  });

  it("are otherwise made so, stay within 230 characters, and two of them stay two", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 400, unit: "binary" }), fc.string({ maxLength: 400 }), (one, other) => {
        for (const name of [one, other]) expect(pbsName(name)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9._+-]{0,229}$/);
        if (one !== other) expect(pbsName(one)).not.toBe(pbsName(other));
        expect(pbsName(pbsName(one))).toBe(pbsName(one));
      }),
    );
  });

  it("durations are never nothing, and round up", () => {
    expect([0, 59.2, 90, 360_000].map(pbsDuration)).toEqual(["00:00:01", "00:01:00", "00:01:30", "100:00:00"]);
  });
});
