import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { oomKillsFile } from "../../../src/agent/cgroup.ts";
import { createOomKills } from "../../../src/agent/oom-kills.ts";
import type { ExitOutcome } from "../../../src/agent/exit-outcome.ts";
import { type MemoryEvidence, withMemoryEvidence } from "../../../src/agent/out-of-memory.ts";
import { Ending } from "../../../src/core/events.ts";
import { PeakBy } from "../../../src/core/peak.ts";

const MB = 2 ** 20;
const peak = (megabytes: number) => ({ bytes: megabytes * MB, by: PeakBy.RUSAGE });
const SIGKILL = { ending: Ending.SIGNAL, code: -9 };
const BY_SHELL = { ending: Ending.EXIT, code: 137 };
const judge = (outcome: ExitOutcome, oomKills: number, evidence: Partial<MemoryEvidence> = {}) =>
  withMemoryEvidence(outcome, { oomKills }, { peak: peak(900), limit: 1024 * MB, pilotKill: () => false, ...evidence });

describe("a task that the kernel killed for memory", () => {
  it("is known by its own cgroup, however it ended badly", () => {
    for (const outcome of [SIGKILL, BY_SHELL, { ending: Ending.EXIT, code: 1 }])
      expect(judge(outcome, 1)).toEqual({
        ending: Ending.MEMORY,
        code: outcome.code,
        detail: "out of memory: the kernel killed it (oom_kill of its cgroup), at 900M of mem 1024M",
      });
    const well = { ending: Ending.EXIT, code: 0 };
    expect(judge(well, 1)).toBe(well);
  });

  it("is known by its pilot's where it died of SIGKILL and had much of what it asked for", () => {
    const pilotKill = () => true;
    for (const outcome of [SIGKILL, BY_SHELL])
      expect(judge(outcome, 0, { pilotKill })).toMatchObject({
        ending: Ending.MEMORY,
        detail: expect.stringContaining("its pilot's cgroup") as string,
      });
    expect(judge(SIGKILL, 0, { pilotKill, peak: undefined })).toMatchObject({
      ...SIGKILL,
      detail: "killed by SIGKILL, when the kernel killed a process of its pilot for memory",
    });
    expect(judge(BY_SHELL, 0, { pilotKill, limit: undefined })).toMatchObject({
      ...BY_SHELL,
      detail: "exit code 137, when the kernel killed a process of its pilot for memory, at 900M",
    });
  });

  it("is never guessed, and an end that has another cause keeps it", () => {
    let asked = 0;
    const pilotKill = () => (asked += 1) > 0;
    const others = [
      { ending: Ending.SIGNAL, code: -15 },
      { ending: Ending.EXIT, code: 1 },
      { ending: Ending.INTERRUPTED, code: -9 },
      { ending: Ending.TIME_LIMIT, code: -9 },
      { ending: Ending.CANCELED, code: -9 },
    ];
    for (const outcome of others) expect(judge(outcome, 0, { pilotKill })).toBe(outcome);
    expect(judge(SIGKILL, 0, { pilotKill, peak: peak(100) })).toBe(SIGKILL);
    expect(asked, "a kill that explains another's death is left for it").toBe(0);
    expect(judge(SIGKILL, 0)).toBe(SIGKILL);
  });
});

describe("what the kernel counts", () => {
  let root: string;
  beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "slw-oom-"))));
  afterEach(() => rmSync(root, { recursive: true }));
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  /** As this machine (v1) and one with v2 write them. */
  const v1 = (kills: number): string => `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`;
  const v2 = (kills: number): string => `low 0\nhigh 0\nmax 3\noom 1\noom_kill ${kills}\noom_group_kill 0\n`;

  it("is found in the agent's own group, of either version", async () => {
    put("proc/self/cgroup", "4:memory:/slurm/job_7\n0::/\n");
    put(
      "proc/self/mountinfo",
      "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
    );
    expect(oomKillsFile(root)).toBeUndefined();
    put("sys/fs/cgroup/memory/slurm/job_7/memory.oom_control", v1(0));
    expect(oomKillsFile(root)).toBe(join(root, "sys/fs/cgroup/memory/slurm/job_7/memory.oom_control"));
    put("proc/self/cgroup", "0::/job.scope\n");
    put("proc/self/mountinfo", "31 25 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("sys/fs/cgroup/job.scope/memory.events", v2(4));
    expect(oomKillsFile(root)).toBe(join(root, "sys/fs/cgroup/job.scope/memory.events"));
  });

  it("explains one death each, only what was counted a moment ago, and nothing from before the agent", () => {
    put("events", v2(4));
    let now = 0;
    const kills = createOomKills({ file: join(root, "events"), now: () => now });
    expect(kills.take()).toBe(false);
    put("events", v2(6));
    expect([kills.take(), kills.take(), kills.take()]).toEqual([true, true, false]);
    put("events", v2(8));
    expect(kills.take()).toBe(true);
    now += 60_000;
    expect(kills.take(), "a survivor's").toBe(false);
    rmSync(join(root, "events"));
    expect(kills.take()).toBe(false);
    kills.stop();
    const none = createOomKills({ file: undefined });
    expect(none.take()).toBe(false);
  });
});
