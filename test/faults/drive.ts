import { request } from "node:http";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { untilFinished } from "./finish.ts";
import { processesWith, signal, untilDead } from "./processes.ts";
import type { Proxy } from "./proxy.ts";
import type { Moment, Schedule, Step } from "./schedule.ts";
import { type Submitted, createSubmitted, submitOnce, submitSurely } from "./workload.ts";
import type { LiveAgent, World } from "./world.ts";

/** Carries a schedule out: work goes in while things break. */

/** A bulk submission whose client was killed: all of it is there, or nothing. */
export interface Bulk {
  readonly name: string;
  readonly lines: number;
  /** The client had said that it was taken. */
  readonly acknowledged: boolean;
}

export interface Driven {
  readonly submitted: Submitted[];
  readonly bulks: Bulk[];
}

/** So many more tasks may never run (nothing is left to do): then it happens anyway. */
const RESULTS_MS = 1500;

export const askToCompact = async (world: World): Promise<boolean> => {
  const endpoint = await readEndpoint(world.home);
  if (endpoint === undefined) return false;
  return new Promise((resolve) => {
    const ask = request({ socketPath: endpoint.socket, path: "/api/v1/server/compact", method: "POST" }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode === 200));
      answer.on("error", () => resolve(false));
    });
    ask.on("error", () => resolve(false));
    ask.end();
  });
};

/** Runs that failed are retried, and the server is killed while they run again. */
const retryFailed = async (world: World, submitted: readonly Submitted[]): Promise<void> => {
  await untilFinished(world);
  const failed = new Set(
    (await world.client.runs({ limit: 1000 })).filter(({ state }) => state === "FAILED").map(({ id }) => id),
  );
  for (const one of submitted) {
    if (one.id === undefined || !failed.has(one.id)) continue;
    one.retried = true;
    const { reopened } = await world.client.retry(one.id);
    world.note(`run ${one.id} is retried: ${reopened} tasks`);
  }
  if (!submitted.some(({ retried }) => retried)) return;
  await world.killServer();
  await world.up();
};

/** A command line that submits so many lines is killed so long after it was started. */
export const killClient = async (world: World, name: string, lines: number, after: number): Promise<Bulk> => {
  await writeFile(
    join(world.root, `${name}.txt`),
    Array.from({ length: lines }, (_, i) => `a line with number ${i}\n`).join(""),
  );
  await writeFile(
    join(world.root, `${name}.yaml`),
    JSON.stringify({
      name,
      tasks: [{ name, each: { lines: `${name}.txt` }, run: ["/bin/true", "{item}"], executor: "null" }],
    }),
  );
  const client = world.start(["submit", "--json", `${name}.yaml`]);
  await Promise.race([sleep(after), client.ended]);
  client.child.kill("SIGKILL");
  const { status } = await client.ended;
  world.note(`the client of ${name} was killed (${status === 0 ? "after its end" : "in time"})`);
  return { name, lines, acknowledged: status === 0 };
};

export const drive = async (world: World, schedule: Schedule): Promise<Driven> => {
  const submitted: Submitted[] = [];
  const bulks: Bulk[] = [];
  /** Submissions under way, so that an error in one of them is not forgotten. */
  const busy: Promise<void>[] = [];

  const take = (plan: Parameters<typeof createSubmitted>[0]): Submitted => {
    const one = createSubmitted(plan, submitted.length + 1);
    submitted.push(one);
    return one;
  };

  const bringUp = async (ups: number): Promise<void> => {
    if (ups === 1) return world.up();
    const outcomes = await Promise.all(Array.from({ length: ups }, () => world.cli(["up"])));
    const won = outcomes.filter(({ status }) => status === 0).length;
    if (won !== 1)
      throw new Error(
        `of ${ups} servers started at once ${won} run:\n${outcomes.map(({ stderr }) => stderr).join("")}`,
      );
    for (const { status, stderr } of outcomes)
      if (status !== 0 && !/a server already runs/.test(stderr))
        throw new Error(`the loser of two starts said: ${stderr}`);
    world.note(`of ${ups} servers started at once one runs`);
    await world.publish();
  };

  /** Waits for the moment at which the server is to be killed. */
  const moment = async (at: Moment): Promise<void> => {
    switch (at.when) {
      case "now":
      case "start":
        return;
      case "submit": {
        const one = take({ ...at.run, by: "sdk" });
        const first = submitOnce(world, one).catch(() => undefined);
        await sleep(at.after);
        busy.push(first.then(() => (one.id === undefined ? submitSurely(world, one) : undefined)));
        return;
      }
      case "results": {
        const from = await world.executions();
        const began = performance.now();
        while ((await world.executions()) < from + at.count && performance.now() - began < RESULTS_MS) await sleep(1);
        return;
      }
      case "compaction":
        void askToCompact(world);
        await sleep(at.after);
    }
  };

  const oneOf = (nth: number, wanted: (agent: LiveAgent) => boolean): LiveAgent | undefined => {
    const found = world.agents().filter((agent) => agent.uuid !== "" && wanted(agent));
    return found.length === 0 ? undefined : found[nth % found.length];
  };

  const endAgent = async (kind: "kill-agent" | "term-agent" | "kill-spawner", nth: number): Promise<void> => {
    // the lease of an agent by hand is long: those are told to end, never killed
    const agent = oneOf(nth, ({ pilot }) => pilot > 0 || kind === "term-agent");
    if (agent === undefined) return;
    world.willEnd(agent);
    world.note(`${kind} ${agent.uuid} (pilot ${agent.pilot}, pid ${agent.pid})`);
    if (kind === "kill-spawner") {
      for (const { pid } of processesWith((words) => words[0] !== undefined && words[0] !== "").filter(
        ({ parent }) => parent === agent.pid,
      ))
        signal(pid, "SIGKILL");
    } else signal(agent.pid, kind === "kill-agent" ? "SIGKILL" : "SIGTERM");
    if (kind === "kill-agent") await untilDead(agent.pid);
    if (agent.pilot === 0) await world.addAgent(schedule.cpus);
  };

  const stopFor = async (pids: readonly number[], ms: number): Promise<void> => {
    for (const pid of pids) signal(pid, "SIGSTOP");
    await sleep(ms);
    for (const pid of pids) signal(pid, "SIGCONT");
  };

  const through = async (proxy: Proxy | undefined, act: (proxy: Proxy) => Promise<void> | void): Promise<void> => {
    if (proxy !== undefined) await act(proxy);
  };

  const carryOut = async (step: Step): Promise<void> => {
    const { proxy } = world;
    switch (step.kind) {
      case "kill-server": {
        await moment(step.moment);
        await world.killServer();
        world.note("the server was killed");
        await sleep(step.restart);
        if (step.moment.when === "start") {
          const first = world.start(["up"]);
          await sleep(step.moment.after);
          await world.killServer();
          const { status } = await first.ended;
          // too early: there was no process yet
          await world.killServer();
          world.note(`the server was killed while it started (up: ${status})`);
        }
        return bringUp(step.ups);
      }
      case "kill-agent":
      case "term-agent":
      case "kill-spawner":
        return endAgent(step.kind, step.nth);
      case "stop-server":
        world.note(`the server stands still for ${step.ms} ms`);
        return stopFor(world.serverPids(), step.ms);
      case "stop-agent": {
        const agent = oneOf(step.nth, () => true);
        if (agent === undefined) return;
        world.note(`agent ${agent.uuid} stands still for ${step.ms} ms`);
        return stopFor([agent.pid], step.ms);
      }
      case "cut":
        return through(proxy, (between) => between.cut());
      case "drop":
        return through(proxy, (between) => between.drop());
      case "half-open":
        return through(proxy, async (between) => {
          between.halfOpen(step.closed);
          await sleep(step.ms);
          between.cut();
        });
      case "freeze":
        return through(proxy, async (between) => {
          between.frozen = true;
          await sleep(step.ms);
          if (step.cut) between.cut();
          between.frozen = false;
        });
      case "delay":
        return through(proxy, async (between) => {
          between.delayMs = step.each;
          await sleep(step.ms);
          between.delayMs = 0;
        });
      case "split":
        return through(proxy, async (between) => {
          between.split = true;
          await sleep(step.ms);
          between.split = false;
        });
      case "power": {
        const agents = world.agents();
        for (const agent of agents) world.willEnd(agent);
        for (const pid of [...world.serverPids(), ...agents.map((agent) => agent.pid)]) signal(pid, "SIGKILL");
        for (const { pid } of agents) await untilDead(pid);
        await world.killServer();
        world.note("server and agents were killed");
        await sleep(step.restart);
        return world.up();
      }
      case "fsync":
        return world.failFsync();
      case "compact":
        world.note(`compaction: ${(await askToCompact(world)) ? "done" : "failed"}`);
        return;
      case "kill-client":
        bulks.push(await killClient(world, `bulk-${bulks.length + 1}`, step.lines, step.after));
        return;
      case "cancel": {
        const known = submitted.filter(({ id }) => id !== undefined);
        const one = known[step.nth % Math.max(1, known.length)];
        if (one?.id === undefined) return;
        one.canceled = true;
        world.note(`run ${one.id} is cancelled`);
        await world.client.cancel(one.id, { reason: "the harness" });
        return;
      }
      case "down": {
        for (const agent of world.agents()) if (step.now) world.willEnd(agent);
        const { status, stderr } = await world.cli(["down", ...(step.now ? ["--now"] : [])]);
        if (status !== 0) throw new Error(`down: ${status}: ${stderr}`);
        world.note(`the server was stopped${step.now ? " now" : ""}`);
        await world.up();
        if (!step.now) return;
        // those by hand were told to end if they were connected; with new ones the schedule goes on as it began
        for (const agent of world.agents().filter(({ pilot }) => pilot === 0)) {
          signal(agent.pid, "SIGTERM");
          await untilDead(agent.pid);
        }
        for (let i = 0; i < schedule.byHand; i += 1) await world.addAgent(schedule.cpus);
      }
    }
  };

  for (let i = 0; i < schedule.byHand; i += 1) await world.addAgent(schedule.cpus);
  const began = performance.now();
  for (const plan of schedule.runs) {
    const one = take(plan);
    busy.push(sleep(Math.max(0, plan.at - (performance.now() - began))).then(() => submitSurely(world, one)));
  }
  // the first error counts, also while the other side still waits
  const failed = Promise.all(busy).then(() => undefined);
  failed.catch(() => undefined);
  for (const { pause, ...step } of schedule.steps) {
    await sleep(pause);
    await carryOut(step as Step);
  }
  await failed;
  await Promise.all(busy);
  if (schedule.retry) await retryFailed(world, submitted);
  return { submitted, bulks };
};
