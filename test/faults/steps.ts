import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { askToCompact, cutClient, killClient } from "./clients.ts";
import type { Driven } from "./drive.ts";
import { untilFinished } from "./finish.ts";
import { lie } from "./lies.ts";
import { losePower } from "./power.ts";
import { processesWith, signal, untilDead } from "./processes.ts";
import type { Proxy } from "./proxy.ts";
import { createRandom } from "./random.ts";
import { type Moment, type PowerLoss, type RunPlan, type Schedule, type Step, clustersOf } from "./schedule.ts";
import { journalProblems } from "./verify.ts";
import type { Witness } from "./witness.ts";
import { type Submitted, submitOnce, submitSurely } from "./workload.ts";
import type { LiveAgent, World } from "./world.ts";

/** How each step of a schedule is carried out. */

/** This many more tasks may never run (nothing is left to do): then it happens anyway. */
const RESULTS_MS = 1500;
/** Runs with more tasks than this are not rerun as a whole. */
const MOST_AGAIN = 200;

interface Work {
  /** A run that will be submitted. */
  take(plan: RunPlan): Submitted;
  readonly busy: Promise<void>[];
  readonly witness: Witness;
}

export const createSteps = (
  world: World,
  schedule: Schedule,
  { submitted, bulks, limits }: Driven,
  { take, busy, witness }: Work,
): ((step: Step) => Promise<void>) => {
  const fate = createRandom(schedule.seed).fork("fate");

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

  /** Waits for the moment at which to kill the server. */
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
    // agents started by hand have a long lease: they are asked to end, never killed
    const agent = oneOf(nth, ({ job }) => job !== undefined || kind === "term-agent");
    if (agent === undefined) return;
    world.willEnd(agent);
    world.count.kills += kind === "term-agent" ? 0 : 1;
    world.note(`${kind} ${agent.uuid} (pilot ${agent.pilot}, pid ${agent.pid})`);
    if (kind === "kill-spawner") {
      for (const { pid } of processesWith((words) => words[0] !== undefined && words[0] !== "").filter(
        ({ parent }) => parent === agent.pid,
      ))
        signal(pid, "SIGKILL");
    } else signal(agent.pid, kind === "kill-agent" ? "SIGKILL" : "SIGTERM");
    if (kind === "kill-agent") await untilDead(agent.pid);
    if (agent.job === undefined) await world.addAgent(schedule.cpus);
  };

  const stopFor = async (pids: readonly number[], ms: number): Promise<void> => {
    for (const pid of pids) signal(pid, "SIGSTOP");
    await sleep(ms);
    for (const pid of pids) signal(pid, "SIGCONT");
  };

  const through = async (proxy: Proxy | undefined, act: (proxy: Proxy) => Promise<void> | void): Promise<void> => {
    if (proxy !== undefined) await act(proxy);
  };

  /** Everything is gone at once, now or while a server starts; then the machine comes back. */
  const failPower = async (loss: PowerLoss): Promise<void> => {
    let starting: Promise<unknown> | undefined;
    if (loss.starting !== undefined) {
      await world.killServer();
      starting = world.start(["up"]).ended;
      await sleep(loss.starting);
    }
    await losePower(world, loss, fate);
    await starting;
    if (world.disk !== undefined) {
      const problems = await journalProblems(world);
      if (problems.length > 0) throw new Error(problems.join("\n"));
    }
    await sleep(loss.restart);
    return world.up();
  };

  const retryRun = async (nth: number, all: boolean): Promise<void> => {
    const ended = new Set(
      (await world.client.runs({ limit: 1000 })).filter(({ finished }) => finished !== null).map(({ id }) => id),
    );
    const able = submitted.filter(({ id, plan }) => id !== undefined && ended.has(id) && plan.kills === undefined);
    const one = able[nth % Math.max(1, able.length)];
    if (one?.id === undefined) return;
    const which = all && one.plan.tasks <= MOST_AGAIN ? "all" : "failed";
    one.retried += 1;
    if (which === "all") one.retriedAll = true;
    const { reopened } = await world.client.retry(one.id, which);
    world.note(`run ${one.id} is retried (${which}): ${reopened} tasks`);
  };

  const changeLimits = async (losses: number, by: "kill" | "down"): Promise<void> => {
    if (by === "kill") await world.killServer();
    else {
      const { status, stderr } = await world.cli(["down"]);
      if (status !== 0) throw new Error(`down: ${status}: ${stderr}`);
    }
    limits.push(losses);
    await writeFile(join(world.home, "clusters.yaml"), clustersOf({ ...schedule, losses }));
    world.note(`limits.losses is ${losses} from now on`);
    return world.up();
  };

  const tellLies = async (lies: readonly Parameters<typeof lie>[1][], nth: number): Promise<void> => {
    const [server] = world.serverPids();
    const known = submitted.filter(({ id }) => id !== undefined);
    const run = known[nth % Math.max(1, known.length)]?.id ?? 1;
    for (const kind of lies) {
      await lie(world, kind, run);
      if (world.serverPids()[0] !== server) throw new Error(`the server died of a lie: ${kind}`);
    }
  };

  return async (step: Step): Promise<void> => {
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
      case "power":
        return failPower(step);
      case "limits":
        if (step.late) {
          await Promise.all(busy);
          await untilFinished(world, submitted, limits);
          await witness.look();
        }
        return changeLimits(step.losses, step.by);
      case "retry":
        return retryRun(step.nth, step.all);
      case "lie":
        return tellLies(step.lies, step.nth);
      case "cut-submit":
        bulks.push(await cutClient(world, `bulk-${bulks.length + 1}`, step.lines, step.cuts));
        return;
      case "compact-meanwhile":
        world.note("compaction begins");
        void askToCompact(world);
        return;
      case "compact-alone": {
        await world.killServer();
        const { status, stdout, stderr } = await world.cli(["journal", "compact"]);
        if (status !== 0) throw new Error(`journal compact: exit status ${status}: ${stdout}${stderr}`);
        world.note(`without a server: ${stdout.trim()}`);
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
        // agents started by hand were asked to end if they were connected; new ones let the schedule continue as it
        // began
        for (const agent of world.agents().filter(({ job }) => job === undefined)) {
          signal(agent.pid, "SIGTERM");
          await untilDead(agent.pid);
        }
        for (let i = 0; i < schedule.byHand; i += 1) await world.addAgent(schedule.cpus);
      }
    }
  };
};
