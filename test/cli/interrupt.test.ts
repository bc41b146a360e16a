import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createGate } from "./gate.ts";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";
import { processesUnder } from "./processes-under.ts";

/** Ctrl-C once cancels the run and says so; twice leaves at once; other verbs just stop watching. Always 130. */

let slipway: SlipwayHome;

const grace = async (time: string): Promise<void> => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(
    join(slipway.home, "clusters.yaml"),
    `clusters: { local: { resources: { cpu: 2 }, grace: ${time} } }\n`,
  );
};

describe("run with its own server", () => {
  beforeEach(() => grace("2s"));
  afterEach(() => slipway.cleanup());

  it.each(["SIGINT", "SIGTERM"] as const)(
    "%s once: the run is cancelled, the server stops, nothing is left",
    async (signal) => {
      const gate = createGate(slipway.cwd);
      const run = slipway.start(["run", "--array", "1-5", "--", ...gate.command]);
      await gate.arrived(2);
      run.child.kill(signal);
      const { status, stdout, stderr } = await run.ended;
      expect(status).toBe(130);
      expect(stderr).toContain("cancelling run 1; Ctrl-C again leaves at once");
      expect(stdout).toMatch(/run 1 sh: cancelled, 0 done, 5 cancelled/);
      expect(await processesUnder(slipway.root)).toEqual([]);
      await slipway.run(["up"]);
      expect(await slipway.json<RunView>(["show", "1"])).toMatchObject({ state: "CANCELED", counts: { CANCELED: 5 } });
      expect((await slipway.run(["why", "1.1"])).stdout).toContain("interrupted by its user");
    },
  );

  it("twice: leaves at once, and the server ends its tasks all the same", async () => {
    const gate = createGate(slipway.cwd);
    const run = slipway.start(["run", "--", "sh", "-c", `trap '' TERM; ${gate.script}`]);
    await gate.arrived(1);
    run.child.kill("SIGINT");
    await run.saw(/Ctrl-C again/, "stderr");
    run.child.kill("SIGINT");
    expect(await run.ended).toMatchObject({ status: 130, signal: null });
    await until("all processes to end", async () =>
      (await processesUnder(slipway.root)).length === 0 ? true : undefined,
    );
    // What was cancelled stays so: the next server does not run it again.
    await slipway.run(["up"]);
    expect((await slipway.run(["wait", "1"])).status).toBe(1);
    expect((await slipway.json<RunView>(["show", "1"])).counts).toEqual({ CANCELED: 1 });
    expect(await gate.arrived(1)).toEqual(["1.0:1"]);
  });
});

describe("with a server", () => {
  beforeAll(async () => {
    await grace("1h");
    await slipway.run(["up"]);
  });
  afterAll(() => slipway.cleanup());

  it("once: only that run is cancelled, and the server stays", async () => {
    const [mine, other] = [createGate(slipway.cwd, "mine"), createGate(slipway.cwd, "other")];
    const { run: id } = await slipway.json<{ run: number }>(["submit", "--", ...other.command]);
    await other.arrived(1);
    const run = slipway.start(["run", "--", ...mine.command]);
    await mine.arrived(1);
    run.child.kill("SIGINT");
    expect((await run.ended).status).toBe(130);
    expect((await slipway.json<RunView>(["show", String(id)])).finished).toBeNull();
    other.open();
    expect((await slipway.run(["wait", String(id)])).status).toBe(0);
  });

  it("twice while a task will not end: leaves at once; the server goes on ending it", async () => {
    const gate = createGate(slipway.cwd, "stubborn");
    // Ignores TERM until the gate opens; the grace period is an hour.
    const run = slipway.start(["run", "--", "sh", "-c", `trap '' TERM; ${gate.script}`]);
    await gate.arrived(1);
    run.child.kill("SIGINT");
    const [, id] = await run.saw(/cancelling run (\d+)/, "stderr");
    run.child.kill("SIGINT");
    expect((await run.ended).status).toBe(130);
    expect((await slipway.json<RunView>(["show", id!])).finished).toBeNull();
    gate.open();
    expect([0, 1]).toContain((await slipway.run(["wait", id!])).status);
    expect((await slipway.json<TaskView>(["show", `${id}.0`])).attempts).toHaveLength(1);
  });

  it("while items are still read: nothing was submitted", async () => {
    const [before] = await slipway.json<RunView[]>(["list", "--limit", "1"]);
    const child = spawn(process.execPath, [join(ROOT, "bin/slipway"), "run", "--stdin", "--", "echo", "{item}"], {
      env: { ...process.env, SLIPWAY_HOME: slipway.home, NO_COLOR: "1" },
      cwd: slipway.cwd,
      stdio: ["pipe", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    // More than a pipe can hold: when all of it is taken, items are on their way.
    await new Promise((resolve) => child.stdin.write("an item\n".repeat(50_000), resolve));
    child.kill("SIGINT");
    const [status] = (await once(child, "exit")) as [number | null];
    expect(status).toBe(130);
    expect(said).toContain("nothing was submitted");
    expect((await slipway.json<RunView[]>(["list", "--limit", "1"]))[0]?.id).toBe(before?.id);
  });

  it("wait, logs -f and events --follow: they stop, the run does not", async () => {
    const gate = createGate(slipway.cwd, "watched");
    const { run: id } = await slipway.json<{ run: number }>(["submit", "--", "sh", "-c", `echo begun; ${gate.script}`]);
    await gate.arrived(1);
    const wait = slipway.start(["wait", String(id)]);
    const logs = slipway.start(["logs", "-f", String(id)]);
    const events = slipway.start(["events", "--follow", "--since", "0"]);
    await Promise.all([logs.saw(/begun/), events.saw(/run\.submitted/)]);
    for (const each of [wait, logs, events]) each.child.kill("SIGINT");
    for (const each of [wait, logs, events]) expect((await each.ended).status).toBe(130);
    expect((await slipway.json<RunView>(["show", String(id)])).finished).toBeNull();
    gate.open();
    expect((await slipway.run(["wait", String(id)])).status).toBe(0);
  });
});
