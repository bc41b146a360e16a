import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/** Agents that a person starts. */
describe("slipway agent", () => {
  let home: SlipwayHome;
  /** A cluster whose fleet starts nothing: only agents started by hand run tasks there. */
  const byHandOnly = (): Promise<void> =>
    writeFile(
      join(home.home, "clusters.yaml"),
      "default: hand\nclusters: { hand: { type: local, queues: { far: { fleet: { strategy: none, init: 0 } } } } }\n",
    );
  beforeEach(async () => {
    home = await createHome();
    await mkdir(home.home, { recursive: true, mode: 0o700 });
  });
  afterEach(() => home.cleanup());

  it("joins the home's server, takes the tasks of its cluster, and gives them back when it is ended", async () => {
    await byHandOnly();
    expect((await home.run(["up"])).status).toBe(0);
    const agent = home.start(
      ["agent", "--cpus", "3", "--mem", "1G", "--resource", "licence=2", "--cluster", "hand", "--queue", "far"],
      { timeoutMs: 100_000 },
    );
    await agent.saw(/agent [0-9a-f-]{36} on .*cpus=30000/, "stderr");
    const run = await home.run(["run", "--queue", "far", "--cpus", "2", "--", "sh", "-c", "echo $SLIPWAY_CPUS"]);
    expect(run.status).toBe(0);
    expect((await home.run(["logs", "1"])).stdout).toContain("2");
    agent.child.kill("SIGTERM");
    expect((await agent.ended).status).toBe(0);
  });

  it("--line prints what to paste elsewhere", async () => {
    const { stdout } = await home.run(["agent", "--line"]);
    expect(stdout).toMatch(/^\S+node \S+\/bin\/slipway agent --home \S+\/home\n$/);
    expect((await home.run(["agent", "--help"])).stdout).toContain("slipway agent --line");
    expect((await home.run(["agent", "--cpus", "many"])).status).toBe(2);
    expect((await home.run(["agent", "--resource", "licence"])).stderr).toContain("NAME=N");
  });

  it("without a server it says so once, finds the one that comes, and names every address that does not answer", async () => {
    await byHandOnly();
    const agent = home.start(["agent", "--cpus", "1", "--cluster", "hand", "--queue", "far"], { timeoutMs: 100_000 });
    await agent.saw(/no server runs: there is no endpoint in .*server\.json/, "stderr");
    expect((await home.run(["up"])).status).toBe(0);
    const run = await home.run(["run", "--", "true"]);
    expect(run.status).toBe(0);
    // a server whose addresses lead nowhere: the agent names them, and says what was wrong with each
    const endpoint = join(home.home, "server.json");
    await rename(endpoint, `${endpoint}.kept`);
    await writeFile(
      endpoint,
      JSON.stringify({
        pid: 1,
        host: "elsewhere",
        addresses: ["127.0.0.1", "127.0.0.2"],
        port: 1,
        socket: "",
        keyPin: "x",
        epoch: 1,
      }),
    );
    const other = home.start(["agent", "--cpus", "1"], { timeoutMs: 100_000 });
    const [, text] = await other.saw(/cannot reach the server of (.*)\n/, "stderr");
    expect(text).toMatch(/on elsewhere\); tried 127\.0\.0\.1:1 \(ECONNREFUSED\), 127\.0\.0\.2:1 \(ECONNREFUSED\)/);
    await rename(`${endpoint}.kept`, endpoint);
    for (const each of [agent, other]) each.child.kill("SIGTERM");
    expect((await agent.ended).status).toBe(0);
    // an agent that joined no server has failed
    expect([0, 1]).toContain((await other.ended).status);
    const lonely = await home.run(["agent", "--cpus", "1", "--patience", "1s", "--endpoint", join(home.root, "none")]);
    expect(lonely.status).toBe(1);
    expect(lonely.stderr).toMatch(/ended: no server/);
  });
});
