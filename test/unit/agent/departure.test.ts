import { describe, expect, it } from "vitest";
import { createDeparture } from "../../../src/agent/departure.ts";

const start = () => {
  const said: string[] = [];
  const agent = { isEmpty: false, isDelivered: false };
  const departure = createDeparture((text) => said.push(text));
  const arm = (): void =>
    departure.arm({
      drain: (now, reason) => said.push(`${now ? "now" : "later"}: ${reason}`),
      isEmpty: () => agent.isEmpty,
      isDelivered: () => agent.isDelivered,
      close: async (reason) => void said.push(`closed: ${reason}`),
    });
  return { said, agent, departure, arm };
};

describe("the end of an agent", () => {
  it("comes when it drains and the last thing has left it, once", async () => {
    const { said, agent, departure, arm } = start();
    arm();
    departure.check();
    agent.isEmpty = true;
    departure.check();
    expect(departure.draining).toBe(false);
    agent.isEmpty = false;
    departure.drain(false, "a");
    departure.drain(true, "b");
    expect([departure.draining, departure.leaving]).toEqual([true, { t: "leaving", reason: "a" }]);
    departure.drain(true, "c", true);
    expect(departure.leaving).toEqual({ t: "leaving", reason: "c", pilotEnds: true });
    agent.isEmpty = true;
    departure.check();
    departure.check();
    expect(await departure.ended).toBe("drained");
    expect(said).toEqual([
      "draining: a",
      "later: a",
      "draining: b",
      "now: b",
      "draining: c",
      "now: c",
      "closed: drained",
    ]);
  });

  it("comes without draining where there has been no server for too long", async () => {
    const { said, departure, arm } = start();
    arm();
    departure.close("no server");
    departure.drain(true, "a signal meanwhile");
    expect(await departure.ended).toBe("no server");
    expect(said.filter((text) => text.startsWith("closed"))).toEqual(["closed: no server"]);
  });

  it("of an agent for one task comes when the result was delivered, not when there is no server for it", async () => {
    const { said, agent, departure, arm } = start();
    arm();
    departure.finish();
    expect([departure.draining, departure.leaving]).toEqual([true, undefined]);
    agent.isEmpty = true;
    departure.check();
    expect(said).toEqual([]);
    agent.isDelivered = true;
    departure.check();
    expect(await departure.ended).toBe("its task is over");
  });

  it("of an agent for one task comes at once when it must leave and nobody takes its result", async () => {
    const { agent, departure, arm } = start();
    arm();
    departure.finish();
    agent.isEmpty = true;
    departure.drain(true, "a signal");
    expect(await departure.ended).toBe("drained");
  });

  it("was asked for before the agent was ready: it is carried out then", async () => {
    const { said, agent, departure, arm } = start();
    departure.drain(false, "a spawner ended");
    expect(departure.draining).toBe(true);
    agent.isEmpty = true;
    arm();
    expect(await departure.ended).toBe("drained");
    expect(said).toEqual(["draining: a spawner ended", "later: a spawner ended", "closed: drained"]);
  });
});
