import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../until.ts";
import { signal } from "../processes.ts";
import { createProxy } from "../proxy.ts";
import { createRandom } from "../random.ts";
import { type Scenario, expect, fleetOf } from "./scenario.ts";

/** Rule 5: silence is not death. Longer than heartbeats, and longer than leases. */

/** Four heartbeats of five seconds, and a little more. */
const SILENCE_MS = 27_000;
/** The lease of a local agent, and a little more. */
const LEASE_MS = 75_000;

const connected = (agents: readonly { readonly state: string }[]): number =>
  agents.filter(({ state }) => state === "connected").length;

export const silenceScenarios: readonly Scenario[] = [
  {
    name: "an agent that stands still for longer than the heartbeat loses nothing",
    waits: true,
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(2) });
      const { world } = play;
      await world.up();
      await play.submit({ tasks: 400, ms: 20 });
      await until("the work to begin", async () => (await world.executions()) > 20);
      const [agent] = world.agents();
      signal(agent!.pid, "SIGSTOP");
      await until("the server to be suspicious", async () =>
        (await world.client.pilots()).some(({ agents }) => agents.some(({ state }) => state === "suspect")),
      );
      await sleep(2000);
      signal(agent!.pid, "SIGCONT");
      await play.settle();
      for (const run of await world.client.runs()) expect(run.losses === 0, `run ${run.id}: ${run.losses} losses`);
    },
  },
  {
    name: "a server that stands still for longer than the heartbeat loses nothing",
    waits: true,
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(2) });
      const { world } = play;
      await world.up();
      await play.submit({ tasks: 400, ms: 20 });
      await until("the work to begin", async () => (await world.executions()) > 20);
      const [server] = world.serverPids();
      signal(server!, "SIGSTOP");
      await sleep(SILENCE_MS);
      signal(server!, "SIGCONT");
      await play.settle();
      for (const run of await world.client.runs()) expect(run.losses === 0, `run ${run.id}: ${run.losses} losses`);
    },
  },
  ...(["agents", "server"] as const).map((side): Scenario => ({
    name: `a connection closed on the side of the ${side} alone is noticed by its silence, and nothing is lost`,
    waits: true,
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(1, 1) });
      const { world } = play;
      world.proxy = await createProxy(createRandom(1));
      await world.up();
      await world.addAgent(2);
      await play.submit({ tasks: 300, ms: 20 });
      await until("the work to begin", async () => (await world.executions()) > 20);
      world.proxy.halfOpen(side);
      await play.settle();
      for (const run of await world.client.runs()) expect(run.losses === 0, `run ${run.id}: ${run.losses} losses`);
    },
  })),
  {
    name: "an agent that stands still for longer than its lease: its tasks run again as losses, its late results count for nothing",
    waits: true,
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(2) });
      const { world } = play;
      await world.up();
      await until("both agents", async () => {
        const agents = (await world.client.pilots()).flatMap((pilot) => pilot.agents);
        return connected(agents) === 2;
      });
      await play.submit({ tasks: 60, ms: 300 });
      await until("the work to begin", async () => (await world.executions()) > 8);
      // they share the machine: one of them may have all of it
      const [busy] = await until("one that works", async () => {
        const at = (await world.client.pilots()).filter(({ agents }) => agents.some(({ running }) => running > 0));
        return at.length > 0 && at;
      });
      const agent = world.agents().find(({ pilot }) => String(pilot) === busy!.id);
      // we let its lease run out: what it had is lost
      world.willEnd(agent!);
      signal(agent!.pid, "SIGSTOP");
      await sleep(LEASE_MS);
      await play.settle();
      const losses = (await world.client.runs()).reduce((sum, run) => sum + run.losses, 0);
      expect(losses > 0, "no loss although a lease is over");
      signal(agent!.pid, "SIGCONT");
      // it comes back as a new agent, and works
      await until("its return", async () => {
        const agents = (await world.client.pilots()).flatMap((pilot) => pilot.agents);
        return connected(agents) === 2;
      });
      await play.check();
      await play.submit({ tasks: 60 });
      await play.settle();
    },
  },
  {
    name: "an agent by hand that is killed: its tasks run again when its lease is over",
    waits: true,
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(1) });
      const { world } = play;
      await world.up();
      await world.addAgent(2);
      await play.submit({ tasks: 60, ms: 100 });
      await until("the work to begin", async () => (await world.executions()) > 8);
      const agent = world.agents().find(({ pilot }) => pilot === 0);
      world.willEnd(agent!);
      signal(agent!.pid, "SIGKILL");
      await play.settle();
    },
  },
];
