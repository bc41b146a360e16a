import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readEndpoint } from "../../../src/protocol/endpoint.ts";
import { until } from "../../until.ts";
import { killClient } from "../clients.ts";
import { isAlive, signal, untilDead } from "../processes.ts";
import { type Scenario, expect, fleetOf } from "./scenario.ts";

/** Servers: several at once, from several hosts, killed between two steps. */

const OTHER_HOST = "faults-other-host";
const THROUGH = ["unshare", "--uts", "sh", "-c", `hostname ${OTHER_HOST} && exec "$@"`, "sh"];

const mayRename = (): boolean => {
  if (process.getuid?.() !== 0) return false;
  const { status, stdout } = spawnSync("unshare", ["--uts", "sh", "-c", `hostname ${OTHER_HOST} && hostname`]);
  return status === 0 && stdout.toString().trim() === OTHER_HOST;
};

const needsRename = (): string | undefined => (mayRename() ? undefined : "needs root, to have another host name");

export const serverScenarios: readonly Scenario[] = [
  {
    name: "of several `up` at once exactly one runs, and the others say so",
    run: async (stage) => {
      const play = await stage.open();
      const { world } = play;
      for (let round = 0; round < 4; round += 1) {
        const outcomes = await Promise.all(Array.from({ length: 3 }, () => world.cli(["up"])));
        expect(outcomes.filter(({ status }) => status === 0).length === 1, `round ${round}: not one server runs`);
        // a server that has said that it will not start takes a moment to go, as does a child on its way to another
        // program
        for (let waited = 0; waited < 100 && world.serverPids().length > 1; waited += 1) await sleep(50);
        expect(world.serverPids().length === 1, `round ${round}: ${world.serverPids().length} processes`);
        for (const { status, stderr } of outcomes)
          expect(status === 0 || /a server already runs .* pid \d+/.test(stderr), `the loser said: ${stderr}`);
        await world.publish();
        await play.submit({ tasks: 10 });
        await play.settle();
        await world.killServer();
      }
      await world.up();
      await play.check();
    },
  },
  {
    name: "a server on another host is refused while the first one renews its lease",
    absent: needsRename,
    waits: true,
    run: async (stage) => {
      const play = await stage.open();
      const { world } = play;
      await world.up();
      const going = play.submit({ tasks: 200, ms: 50 });
      const second = await world.cli(["up"], { through: THROUGH });
      expect(
        second.status !== 0 && /held|already runs/.test(second.stderr),
        `a second server: ${second.status}: ${second.stdout}${second.stderr}`,
      );
      await going;
      await play.settle();
    },
  },
  {
    name: "a server that stood still while another host took over ends without a further word (epochs)",
    absent: needsRename,
    waits: true,
    run: async (stage) => {
      const play = await stage.open();
      const { world } = play;
      await world.up();
      const [first] = world.serverPids();
      const { epoch } = (await readEndpoint(world.home))!;
      await play.submit({ tasks: 60, ms: 20 });
      await until("the work to begin", async () => (await world.executions()) > 5);
      signal(first!, "SIGSTOP");
      world.note("the first server stands still");
      const before = await world.cli(["up"], { through: THROUGH, timeoutMs: 240_000 });
      expect(before.status === 0, `the other host did not take over: ${before.stderr}`);
      const taken = (await readEndpoint(world.home))!;
      expect(taken.epoch > epoch && taken.host === OTHER_HOST, `epoch ${taken.epoch} on ${taken.host}`);
      await world.publish();
      // our own connections still go to the first one
      world.client.close();
      await play.submit({ tasks: 20 });
      signal(first!, "SIGCONT");
      world.note("the first server goes on");
      await untilDead(first!);
      await play.settle();
      const log = await readFile(join(world.home, "logs", "server.log"), "utf8");
      expect(/lost its home|has taken over/.test(log), "the first server did not say why it ended");
      // what it may have written late is not part of the history
      await world.killServer();
      await world.up({ through: THROUGH });
      await play.check();
    },
  },
  {
    name: "a crash between journaling a pilot's submission and the manager's answer starts no second pilot",
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(1) });
      const { world } = play;
      const jobs = join(world.home, "jobs");
      for (const after of [0, 0, 2, 5, 10, 20, 40]) {
        const known = existsSync(jobs) ? readdirSync(jobs).length : 0;
        const starting = world.start(["up"]);
        await until("the directory of a job", () => existsSync(jobs) && readdirSync(jobs).length > known);
        await sleep(after);
        await world.killServer();
        await starting.ended;
        await world.up();
        await play.submit({ tasks: 8 });
        await play.settle();
        const living = world.agents();
        expect(living.length === 1, `${living.length} agents of a fleet of one: ${JSON.stringify(living)}`);
        const pilots = (await world.client.pilots()).filter(({ ended }) => ended === null);
        expect(pilots.length === 1, `${pilots.length} pilots of a fleet of one`);
        // the next round needs a start of its own
        world.willEnd(living[0]!);
        await world.killServer();
        signal(living[0]!.pid, "SIGKILL");
        await untilDead(living[0]!.pid);
      }
      await world.up();
      await play.settle();
    },
  },
  {
    name: "a client killed during a submit of 100,000 lines has submitted all or nothing",
    run: async (stage) => {
      const play = await stage.open();
      const { world, driven } = play;
      await world.up();
      for (const after of [150, 250, 350, 450, 600, 900]) {
        driven.bulks.push(await killClient(world, `bulk-${driven.bulks.length + 1}`, 100_000, after));
        if (after % 200 === 50) {
          await world.killServer();
          await world.up();
        }
      }
      await play.submit();
      await play.settle();
      expect(isAlive(world.serverPids()[0]!), "the server is gone");
    },
  },
];
