import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { createDoubtfulEnds, isDoubtful } from "../../../src/agent/doubtful-ends.ts";
import { changedOnNode, parseEnvironment } from "../../../src/agent/node-environment.ts";
import { expandScratch, readSettings } from "../../../src/agent/read-settings.ts";
import type { Result } from "../../../src/agent/results.ts";
import { Ending, NO_CODE } from "../../../src/core/events.ts";

describe("an agent's settings", () => {
  it("come from a file or from the command line; scratch may begin with the node's own variable", () => {
    const directory = mkdtempSync(join(tmpdir(), "slw-settings-"));
    try {
      const file = join(directory, "settings.json");
      writeFileSync(file, JSON.stringify({ home: "/h", pilot: 7, scratch: "$FAST/x" }));
      expect(readSettings({ "settings-file": file }, { FAST: "/nvme" })).toMatchObject({
        pilot: 7,
        scratch: "/nvme/x",
      });
      expect(readSettings({ settings: '{"pilot":1,"scratch":"/a b"}' }, {})).toMatchObject({ scratch: "/a b" });
      expect(() => readSettings({}, {})).toThrow(/slipway agent/);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it("the manager's count comes with --cpus alone, and only if it is one", () => {
    const cpus = (given: string | undefined, env = {}) =>
      readSettings({ settings: '{"scratch":"/a"}', cpus: given }, env).managerCpus;
    expect(["1", "128", "", "0", "-1", "4x", "1e3", "10000000", undefined].map((given) => cpus(given))).toEqual([
      1,
      128,
      ...Array<undefined>(7).fill(undefined),
    ]);
    expect(cpus(undefined, { NCPUS: "1", SLURM_CPUS_ON_NODE: "1" })).toBeUndefined();
  });

  it("the element of an array comes with --element, which must be a number", () => {
    const settings = '{"scratch":"/a","taskJob":{"id":3,"element":0}}';
    const taskJob = (element: string | undefined) => readSettings({ settings, element }, {}).taskJob;
    expect([taskJob(undefined), taskJob("0"), taskJob("99")]).toEqual(
      [0, 0, 99].map((element) => ({ id: 3, element })),
    );
    for (const element of ["", "-1", "1.5", "undefined", "07"]) expect(() => taskJob(element)).toThrow(/--element/);
    expect(readSettings({ settings: '{"scratch":"/a"}', element: "4" }, {})).not.toHaveProperty("taskJob");
  });

  it("a variable that the node lacks, or that is no directory, stands for the system's own", () => {
    expect(expandScratch("$TMPDIR", {})).toBe(tmpdir());
    expect(expandScratch("${TMPDIR}/y", { TMPDIR: "relative" })).toBe(join(tmpdir(), "y"));
    expect(expandScratch("/tmp/$X", { X: "/y" })).toBe("/tmp/$X");
  });
});

describe("what the prologue changed", () => {
  it("reaches tasks, the manager's own variables and the session's do not", () => {
    const before = parseEnvironment("PATH=/bin\0A=1\0MULTI=a\nb=c\0");
    expect(before).toEqual({ PATH: "/bin", A: "1", MULTI: "a\nb=c" });
    const now = { PATH: "/sw/bin:/bin", A: "1", NEW: "x", SLURM_JOB_ID: "7", PWD: "/d", CUDA_VISIBLE_DEVICES: "0" };
    expect(changedOnNode(before, now)).toEqual({ PATH: "/sw/bin:/bin", NEW: "x" });
  });
});

describe("tasks that a signal from outside ended", () => {
  const result = (code: number, ending: number = code < 0 ? Ending.SIGNAL : Ending.EXIT) =>
    ({ ending, code }) as Result;

  it("are in doubt, others are not", () => {
    for (const code of [-15, -2, -1, -10, -12, 143, 130]) expect(isDoubtful(result(code))).toBe(true);
    for (const code of [0, 1, 15, 127, 128, -9, -11, 137, 139]) expect(isDoubtful(result(code))).toBe(false);
    expect(isDoubtful(result(-15, Ending.CANCELED))).toBe(false);
    expect(isDoubtful(result(NO_CODE, Ending.SPAWNER_LOST))).toBe(true);
    expect(isDoubtful(result(NO_CODE, Ending.CUT_OFF))).toBe(false);
  });

  it("failed when the agent goes on, were interrupted when it is ended too", () => {
    vi.useFakeTimers();
    try {
      const settled: [string, number][] = [];
      const ends = createDoubtfulEnds<string>((task, { ending }) => settled.push([task, ending]));
      ends.add("alone", result(-15));
      ends.add("with its spawner", result(NO_CODE, Ending.SPAWNER_LOST));
      vi.advanceTimersByTime(1000);
      ends.add("with its pilot", result(-15));
      ends.add("with its pilot's spawner", result(NO_CODE, Ending.SPAWNER_LOST));
      ends.interrupted();
      ends.add("after its pilot", result(-15));
      vi.advanceTimersByTime(1000);
      expect(settled).toEqual([
        ["alone", Ending.SIGNAL],
        ["with its spawner", Ending.SPAWNER_LOST],
        ["with its pilot", Ending.INTERRUPTED],
        ["with its pilot's spawner", Ending.INTERRUPTED],
        ["after its pilot", Ending.INTERRUPTED],
      ]);
    } finally {
      vi.useRealTimers();
    }
  });
});
