import { expect, it } from "vitest";
import { agentSettings } from "../../../src/protocol/agent-settings.ts";

const ask = { home: "/home", pilot: 3, scratch: "/tmp", declared: {}, patienceMs: 1000 };

it("agents of every kind have the same defaults, and what is asked for instead", () => {
  expect(agentSettings(ask, {})).toEqual({
    ...ask,
    graceMs: 5000,
    pin: false,
    executor: "process",
    spawner: "auto",
    cgroup: "auto",
  });
  const asked = { ...ask, graceMs: 1, pin: true, executor: "null" as const, lifetime: undefined };
  expect(agentSettings(asked, {})).toMatchObject({ graceMs: 1, pin: true, executor: "null" });
  expect(JSON.parse(JSON.stringify(agentSettings(asked, {})))).not.toHaveProperty("lifetime");
});

it("the environment of who starts them chooses the spawner and the cgroup; a word that names none chooses nothing", () => {
  const chosen = (spawner: string) => agentSettings(ask, { SLIPWAY_SPAWNER: spawner, SLIPWAY_CGROUP: "off" });
  expect(chosen("node")).toMatchObject({ spawner: "node", cgroup: "off" });
  expect(chosen("native").spawner).toBe("native");
  for (const word of ["nod", ""]) expect(chosen(word).spawner).toBe("auto");
});
