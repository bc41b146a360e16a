import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { createState } from "../../../src/core/state.ts";
import { whereToListen } from "../../../src/doors/listening.ts";

const clustersOf = (text: string) => combineClusters([readClustersFile(text, "clusters.yaml")]).clusters;
const HERE = "clusters: {lab: {type: simulated}, second: {type: local}}";
const FAR = "clusters: {hpc: {type: slurm, queues: {main: {}}}}";

interface Given {
  readonly asked?: string;
  readonly text?: string;
  readonly fill?: (state: ReturnType<typeof createState>) => void;
}

const listening = ({ asked, text = HERE, fill }: Given) => {
  const state = createState(5);
  fill?.(state);
  return whereToListen({ asked, clusters: clustersOf(text), state, hostname: "login1" });
};

const pilot = (state: ReturnType<typeof createState>, cluster: string, of: "PMGR_ACTIVE" | "DONE"): void =>
  void state.pilots.set(7, {
    id: 7,
    cluster,
    queue: "main",
    jobName: "j",
    requested: 1,
    state: of,
    nativeId: "1",
    reason: "",
    active: 1,
    ended: 0,
  });

const agent = (state: ReturnType<typeof createState>, host: string, pilot: number, ended = 0): void =>
  void state.agents.set(1, { id: 1, pilot, host, ended } as never);

describe("where a server listens", () => {
  it("is this machine alone while nothing of the home is elsewhere", () => {
    const alone = { host: "127.0.0.1", reason: expect.stringContaining("--host") };
    expect(listening({})).toEqual(alone);
    expect(listening({ fill: (state) => pilot(state, "lab", "PMGR_ACTIVE") })).toEqual(alone);
    expect(listening({ fill: (state) => pilot(state, "gone", "DONE") })).toEqual(alone);
    expect(listening({ fill: (state) => agent(state, "login1", 0) })).toEqual(alone);
    expect(listening({ fill: (state) => agent(state, "node-of-a-simulation", 3) })).toEqual(alone);
    expect(listening({ fill: (state) => agent(state, "n1", 0, 5) })).toEqual(alone);
    expect(listening({ fill: (state) => state.launches.set(4, { id: 4, state: "failed" } as never) })).toEqual(alone);
  });

  it.each<[string, Given, string]>([
    ["a configured cluster", { text: FAR }, "the nodes of cluster hpc (slurm) must reach it"],
    ["a living pilot", { fill: (state) => pilot(state, "gone", "PMGR_ACTIVE") }, "pilot 7 of cluster gone still lives"],
    [
      "a living launch",
      { fill: (state) => state.launches.set(4, { id: 4, state: "running" } as never) },
      "launch 4 has not ended",
    ],
    ["an agent by hand", { fill: (state) => agent(state, "n1", 0) }, "an agent on n1 must reach it"],
  ])("is every address for %s", (_what, given, reason) => {
    expect(listening(given)).toEqual({ host: "0.0.0.0", reason });
  });

  it("is what --host says, whatever else is there", () => {
    expect(listening({ asked: "10.1.2.3" })).toEqual({ host: "10.1.2.3", reason: "as --host says" });
    expect(listening({ asked: "127.0.0.1", text: FAR })).toMatchObject({ host: "127.0.0.1" });
  });
});
