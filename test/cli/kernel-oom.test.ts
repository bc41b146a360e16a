import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { type MemoryGroup, canMakeMemoryGroup, makeMemoryGroup } from "./memory-group.ts";
import { ROOT, type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * A pilot in a control group that the kernel limits, as managers make them, with less memory than its tasks were
 * promised: the kernel kills before any watch can.
 */

const MB = 2 ** 20;
const absent = canMakeMemoryGroup() ? "" : "no control group with a limit can be made here";

const hold = (megabytes: number): string =>
  `head -c ${megabytes * MB} /dev/zero | tail -c ${megabytes * MB} >/dev/null`;

describe.skipIf(absent !== "")(`the kernel's own killer${absent && ` (skipped: ${absent})`}`, () => {
  let slipway: SlipwayHome;
  let group: MemoryGroup;
  const run = async (script: string, options: readonly string[], statuses = [0]): Promise<TaskView> => {
    const words = ["run", "--quiet", ...options, "--", "sh", "-c", script];
    const { id } = await slipway.json<RunView>(words, { statuses });
    return slipway.json<TaskView>(["show", `${id}.0`]);
  };

  beforeAll(async () => {
    group = makeMemoryGroup(700 * MB);
    slipway = await createHome();
    mkdirSync(slipway.home);
    writeFileSync(
      join(slipway.home, "clusters.yaml"),
      "clusters: { local: { resources: { cpus: 2, mem: 4G }, grace: 1s } }\n",
    );
    const [program, ...words] = [...group.inside, process.execPath, join(ROOT, "bin", "slipway"), "up"];
    const env = { PATH: process.env["PATH"], HOME: slipway.root, SLIPWAY_HOME: slipway.home, TMPDIR: slipway.tmp };
    execFileSync(program!, words, { cwd: slipway.cwd, env });
  });
  afterAll(async () => {
    await slipway?.cleanup();
    await group?.remove();
  });

  it.each([
    ["its main process", (megabytes: number) => `exec ${process.execPath} -e 'Buffer.alloc(${megabytes * MB}, 1)'`],
    ["a child, as its shell tells", (megabytes: number) => `set -e; ${hold(megabytes)}`],
  ])("kills %s: out of memory, tried again with more, at no cost to its retries", async (_, use) => {
    const task = await run(`[ {attempt} = 1 ] || exit 0; ${use(900)}`, ["--mem", "1G", "--mem-retry", "2"]);
    expect(task.state).toBe("DONE");
    expect(task.attempts).toHaveLength(2);
    expect(task.attempts[0]!.reason).toMatch(/^killed for memory at 1G; tried again with 2G/);
    expect(await slipway.json<RunView>(["show", task.id.split(".")[0]!])).toMatchObject({ retries: 0, losses: 0 });
  });

  it("is named where the task fails for it, with its evidence", async () => {
    const task = await run(`set -e; ${hold(900)}`, ["--mem", "1G"], [1]);
    expect(task.reason).toMatch(
      /^out of memory: the kernel killed it \(oom_kill of its pilot's cgroup\), at \d+M of mem 1024M$/,
    );
  });

  it("is not guessed: a task that somebody kills is killed by a signal, also after the kernel has killed another", async () => {
    const survivor = await run(`${hold(900)}; true`, ["--mem", "1G"]);
    expect(survivor.state).toBe("DONE");
    const killed = await run("kill -9 $$", ["--mem", "1G", "--mem-retry", "2"], [1]);
    expect([killed.reason, killed.attempts.length]).toEqual(["killed by SIGKILL", 1]);
  });
});
