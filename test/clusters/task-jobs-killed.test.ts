import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { type Client, connect } from "../../src/client/index.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { untilDead } from "./lab/daemons.ts";
import { type PbsLab, startPbs } from "./lab/pbs.ts";

/**
 * A server that is killed at each step of a task's job, one test a step. The manager's own commands do it where a step
 * lies between two of them: they kill the server before they do what they were called for, or after it and before they
 * answer. This manager keeps no history: what has left it is known to nobody but Slipway.
 */

const ATTEMPT = 'echo "$SLIPWAY_ATTEMPT" >>';

describe("rule 3: a server that is killed loses and doubles nothing", () => {
  let lab: PbsLab;
  let slipway: SlipwayHome;
  let client: Client;
  let names = 0;

  const path = (name: string): string => join(slipway.cwd, name);
  const up = async (): Promise<void> => {
    expect((await slipway.run(["up"])).status).toBe(0);
    const { pid } = (await readEndpoint(slipway.home))!;
    await writeFile(path("pid"), String(pid));
    client?.close();
    client = connect({ home: slipway.home });
  };
  const pidOf = async (): Promise<number> => Number(await readFile(path("pid"), "utf8"));
  /** Lets the command of `killIn` kill it: not before the submission that leads to the command was answered. */
  const killed = async (): Promise<void> => {
    await writeFile(path("now"), "");
    await untilDead(await pidOf());
  };
  const kill = async (): Promise<void> => {
    process.kill(await pidOf(), "SIGKILL");
    await untilDead(await pidOf());
  };

  interface Submitted {
    readonly run: number;
    readonly name: string;
    /** Lets the task end. */
    open(): Promise<void>;
    begun(): Promise<unknown>;
  }
  /** A task that leaves a line when it runs, and then waits until it is let go. */
  const submit = async (priority = 0): Promise<Submitted> => {
    names += 1;
    const name = `t${names}`;
    const script = `${ATTEMPT} ${path(`ran-${name}`)}; until [ -e ${path(`open-${name}`)} ]; do sleep 0.05; done; echo >${path(`over-${name}`)}`;
    const words = ["--via", "job", "--priority", String(priority), "--cpus", "2", "--name", name, "--", "sh", "-c"];
    const { run } = await slipway.json<{ run: number }>(["submit", ...words, script]);
    return {
      run,
      name,
      open: () => writeFile(path(`open-${name}`), ""),
      begun: () => until(`${name} to run`, () => existsSync(path(`ran-${name}`))),
    };
  };
  const task = ({ run }: Submitted): Promise<TaskView> => client.task(run, 0);
  const queued = (of: Submitted): Promise<unknown> =>
    until(`${of.name} to wait in the manager`, async () => (await client.why(of.run, 0)).cause === "job-queued");
  const held = (of: Submitted): Promise<unknown> =>
    until(`${of.name} to wait in Slipway`, async () => (await client.why(of.run, 0)).cause === "job-held");
  /** All of them ran once, and no job is left. */
  const ranOnce = async (...all: readonly Submitted[]): Promise<void> => {
    for (const each of all) {
      await each.open();
      let last: RunView | undefined;
      for await (const view of client.watch(each.run, { signal: AbortSignal.timeout(120_000) })) last = view;
      expect(last, each.name).toMatchObject({ state: "DONE", losses: 0, retries: 0 });
      expect((await task(each)).attempts, each.name).toHaveLength(1);
      expect(await readFile(path(`ran-${each.name}`), "utf8"), each.name).toBe("1\n");
    }
    await until("no job to be left", async () => (await client.jobs({ kind: "task" })).length === 0);
    expect(JSON.parse((await lab.run(["qstat", "-f", "-F", "json"])).stdout).Jobs ?? {}).toEqual({});
  };
  /** The next call of this command waits for `killed`, and kills the server before or after it does what it is called for. */
  const killIn = (command: string, when: "before" | "after"): Promise<void> =>
    writeFile(path(`${when}-${command}`), "");

  const hooked = (command: string): string => {
    const at = (when: string): string => `${path(`${when}-${command}`)}`;
    const killing = (when: string): string =>
      `if [ -e ${at(when)} ]; then until [ -e ${path("now")} ] || [ ! -e ${at(when)} ]; do sleep 0.05; done; rm -f ${at(when)} ${path("now")}; kill -9 "$(cat ${path("pid")})"; ${when === "before" ? "exit 1; " : ""}fi`;
    const real = join(lab.root, "bin", command);
    return `#!/bin/sh\n${killing("before")}\nout=$(${real} "$@")\ncode=$?\n${killing("after")}\nprintf '%s\\n' "$out"\nexit $code\n`;
  };

  beforeAll(async () => {
    // room for one job at a time
    lab = await startPbs({ nodes: [{ ncpus: 2 }], copyMs: 100 });
    slipway = await createHome();
    await mkdir(slipway.home, { mode: 0o700 });
    const bin = path("bin");
    await mkdir(bin);
    for (const name of await readdir(join(lab.root, "bin")))
      if (["qsub", "qdel"].includes(name)) await writeFile(join(bin, name), hooked(name), { mode: 0o755 });
      else await symlink(join(lab.root, "bin", name), join(bin, name));
    const queues = { main: { walltime: "30m", fleet: { period: "0.5s" } } };
    const hpc = { type: "pbs", bin, n_max_queued_jobs: 1, grace: "1s", queues };
    await writeFile(join(slipway.home, "clusters.yaml"), stringify({ default: "hpc", clusters: { hpc } }));
    await up();
  });
  afterAll(async () => {
    client?.close();
    try {
      for (const when of ["before", "after"])
        for (const command of ["qsub", "qdel"]) await rm(path(`${when}-${command}`), { force: true });
      await slipway?.cleanup();
    } finally {
      await lab?.stop();
    }
  });

  it("before a job is intended, while another waits in the manager, and while one runs", async () => {
    const runs = await submit();
    await runs.begun();
    const waits = await submit();
    await queued(waits);
    const kept = await submit();
    await held(kept);
    await kill();
    await up();
    await queued(waits);
    await held(kept);
    await ranOnce(runs, waits, kept);
  });

  it("when the intent is on disk, and the manager was not asked", async () => {
    await killIn("qsub", "before");
    const one = await submit();
    await killed();
    await up();
    await one.begun();
    await ranOnce(one);
  });

  it("when the manager has the job, and the answer is lost", async () => {
    await killIn("qsub", "after");
    const one = await submit();
    await killed();
    await up();
    await one.begun();
    await ranOnce(one);
  });

  it("when the task has ended, and nobody has heard of it", async () => {
    const one = await submit();
    await one.begun();
    await until("the server to know", async () => (await task(one)).state === "AGENT_EXECUTING");
    await kill();
    await one.open();
    await until("its end", () => existsSync(path(`over-${one.name}`)));
    await up();
    await ranOnce(one);
  });

  it.each(["before", "after"] as const)("when a job is taken back, %s the manager has let it go", async (when) => {
    const runs = await submit();
    await runs.begun();
    const waits = await submit();
    await queued(waits);
    await killIn("qdel", when);
    const first = await submit(9);
    await killed();
    await up();
    await queued(first);
    await held(waits);
    await ranOnce(runs, first, waits);
  });
});
