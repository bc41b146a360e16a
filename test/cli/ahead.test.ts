import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventView, PilotView, RunView, TaskView, WhyView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { type Gate, createGate } from "./gate.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * Tasks in a row, handed ahead to the agent that has the one before them. Each writes a line when it begins, and one of
 * them stays at a gate: by then it is known how short they are, so those behind it lie at its agent.
 */

let slipway: SlipwayHome;
let gate: Gate;

const LENGTH = 40;
const AT_GATE = 20;

beforeEach(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), "clusters: { local: { resources: { cpu: 2 } } }\n");
  gate = createGate(slipway.cwd);
  await slipway.run(["up"]);
});

afterEach(async () => {
  gate.open();
  await slipway.cleanup();
});

/** A chain of processes; `also` says what else a link does or asks for. */
const submit = async (also: (nth: number) => { readonly run?: string; readonly more?: object } = () => ({})) => {
  const tasks = Array.from({ length: LENGTH }, (_, nth) => {
    const { run = ":", more = {} } = also(nth);
    const script = `echo $SLIPWAY_TASK.$SLIPWAY_ATTEMPT >> ran; [ -z "$(ls -A "$TMPDIR")" ] || exit 9; touch "$TMPDIR/x"; ${run}`;
    const command = ["sh", "-c", script.replaceAll("{", "{{").replaceAll("}", "}}")];
    return { name: `t${nth}`, run: command, ...(nth === 0 ? {} : { after: `t${nth - 1}` }), ...more };
  });
  await writeFile(join(slipway.cwd, "chain.yaml"), JSON.stringify({ name: "chain", tasks }));
  return (await slipway.json<{ run: number }>(["submit", "chain.yaml"])).run;
};
const atGate = (nth: number) => (nth === AT_GATE ? { run: gate.script } : {});

const executions = async (): Promise<string[]> =>
  (await readFile(join(slipway.cwd, "ran"), "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
const inOrder = (from: number, end: number, attempt = 1): string[] =>
  Array.from({ length: end - from }, (_, i) => `${from + i}.${attempt}`);

const task = (run: number, nth: number): Promise<TaskView> => slipway.json<TaskView>(["show", `${run}.${nth}`]);
const show = (run: number): Promise<RunView> => slipway.json<RunView>(["show", String(run)]);
const lies = (run: number, nth: number): Promise<void> =>
  until(`task ${nth} was handed ahead`, async () => {
    const { cause, detail } = await slipway.json<WhyView>(["why", `${run}.${nth}`]);
    expect(cause).toBe("dependencies");
    return /agent \d+ has it and begins it then/.test(detail);
  }).then(() => undefined);

const killed = async (pid: number): Promise<void> => {
  process.kill(pid, "SIGKILL");
  await until("it is gone", async () => {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
    return stat === "" || /\) [ZX] /.test(stat);
  });
};
const killServer = async (): Promise<void> => killed((await readEndpoint(slipway.home))!.pid);
const killAgent = async (): Promise<void> => {
  const pilots = await slipway.json<PilotView[]>(["pilots", "list"]);
  await killed(Number(pilots.find(({ ended }) => ended === null)!.nativeId!.split(":")[0]));
};

describe("tasks in a row", () => {
  it("begin one after the other at one agent, most of them handed ahead, each with a TMPDIR of its own", async () => {
    const run = await submit((nth) => (nth === 0 ? { run: gate.script } : {}));
    await gate.arrived(1);
    const events = slipway.start(["events", "--follow", "--since", "0", "--json", "--run", String(run)]);
    await events.saw(/run.submitted/);
    gate.open();
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    await events.saw(/run.finished/);
    events.child.kill("SIGINT");
    expect(await executions()).toEqual(inOrder(0, LENGTH));
    const handed = (await events.ended).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as EventView)
      .filter(({ event, detail }) => event === "tasks.assigned" && detail?.["ahead"] === true)
      .reduce((sum, { detail }) => sum + Number(detail!["tasks"]), 0);
    expect(handed).toBeGreaterThan(LENGTH / 2);
    const times = await Promise.all([5, 6, 30, 31].map((nth) => task(run, nth)));
    for (const [before, next] of [times.slice(0, 2), times.slice(2)])
      expect(Date.parse(next!.attempts[0]!.started!)).toBeGreaterThanOrEqual(
        Date.parse(before!.attempts[0]!.finished!) - 1,
      );
  });

  it("stop at one that fails: those behind it never begin, and a retry goes on from there", async () => {
    const fails = (nth: number) => (nth === AT_GATE ? { run: "[ -e fixed ]", more: { retries: 1 } } : {});
    const run = await submit(fails);
    expect((await slipway.run(["wait", String(run)])).status).toBe(1);
    expect(await executions()).toEqual([...inOrder(0, AT_GATE + 1), `${AT_GATE}.2`]);
    expect(await show(run)).toMatchObject({ counts: { DONE: AT_GATE, FAILED: 1, CANCELED: LENGTH - AT_GATE - 1 } });
    expect((await task(run, AT_GATE + 1)).attempts).toEqual([]);
    await writeFile(join(slipway.cwd, "fixed"), "");
    await slipway.run(["retry", String(run)]);
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect((await executions()).slice(AT_GATE + 2)).toEqual([`${AT_GATE}.3`, ...inOrder(AT_GATE + 1, LENGTH)]);
  });

  it("go on without a server, which learns of all of them in order, and nothing runs twice", async () => {
    const run = await submit(atGate);
    await gate.arrived(1);
    await lies(run, AT_GATE + 1);
    await lies(run, AT_GATE + 2);
    await killServer();
    gate.open();
    await until("those behind it have begun", async () => (await executions()).length > AT_GATE + 2);
    expect((await slipway.run(["up"])).status).toBe(0);
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect(await executions()).toEqual(inOrder(0, LENGTH));
    expect(await show(run)).toMatchObject({ counts: { DONE: LENGTH }, losses: 0, retries: 0 });
  });

  it("rule 2: are with their agent for a successor too, also from a snapshot, and those it never got are not", async () => {
    const run = await submit(atGate);
    await gate.arrived(1);
    await lies(run, AT_GATE + 1);
    expect((await slipway.run(["journal", "compact"])).status).toBe(0);
    await killServer();
    expect((await slipway.run(["journal", "verify", "--deep"])).status).toBe(0);
    expect((await slipway.run(["up"])).status).toBe(0);
    await lies(run, AT_GATE + 1);
    gate.open();
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect(await executions()).toEqual(inOrder(0, LENGTH));
    expect(await show(run)).toMatchObject({ losses: 0 });
  });

  it("rule 5: are lost with their agent, all that it had: the first runs again, and the others wait for it", async () => {
    const run = await submit(atGate);
    await gate.arrived(1);
    await lies(run, AT_GATE + 1);
    await killAgent();
    await gate.arrived(2);
    gate.open();
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    const ran = await executions();
    expect(ran.slice(0, AT_GATE + 2)).toEqual([...inOrder(0, AT_GATE + 1), `${AT_GATE}.2`]);
    expect(new Set(ran).size).toBe(ran.length);
    expect(ran.slice(AT_GATE + 2).map((line) => Number(line.split(".")[0]))).toEqual(
      Array.from({ length: LENGTH - AT_GATE - 1 }, (_, i) => AT_GATE + 1 + i),
    );
    for (const nth of [AT_GATE, AT_GATE + 1])
      expect((await task(run, nth)).attempts).toMatchObject([{ lost: true }, { lost: false, exitCode: 0 }]);
    expect(await show(run)).toMatchObject({ counts: { DONE: LENGTH }, retries: 0 });
  });

  it("are cancelled where they lie, with those behind them; the ones before go on", async () => {
    const run = await submit(atGate);
    await gate.arrived(1);
    await lies(run, AT_GATE + 3);
    expect((await slipway.run(["cancel", `${run}.${AT_GATE + 3}`])).status).toBe(0);
    await until("it is cancelled", async () => (await task(run, AT_GATE + 3)).state === "CANCELED");
    gate.open();
    await slipway.run(["wait", String(run)]);
    expect(await executions()).toEqual(inOrder(0, AT_GATE + 3));
    expect((await show(run)).counts).toEqual({ DONE: AT_GATE + 3, CANCELED: LENGTH - AT_GATE - 3 });
  });

  it("end with their run when that is cancelled", async () => {
    const run = await submit(atGate);
    await gate.arrived(1);
    await lies(run, AT_GATE + 1);
    expect((await slipway.run(["cancel", String(run)])).status).toBe(0);
    await slipway.run(["wait", String(run)]);
    expect((await show(run)).counts).toEqual({ DONE: AT_GATE, CANCELED: LENGTH - AT_GATE });
    expect(await executions()).toEqual(inOrder(0, AT_GATE + 1));
  });
});
