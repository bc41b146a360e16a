import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ServerView, StatusView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Where the port of a real server is open. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});

afterEach(() => slipway.cleanup());

/** The addresses on which this home's port is open, as the kernel writes them. */
const openOn = async (): Promise<string[]> => {
  const { port } = (await readEndpoint(slipway.home))!;
  const lines = (await readFile("/proc/net/tcp", "utf8")).split("\n").map((line) => line.trim().split(/\s+/));
  return lines
    .filter(
      ([, local, , state]) => local?.endsWith(`:${port.toString(16).toUpperCase().padStart(4, "0")}`) && state === "0A",
    )
    .map(([, local]) => local!.split(":")[0]!);
};

it("a server whose work is all here listens on this machine alone, and says so", async () => {
  const up = await slipway.run(["up"]);
  expect(up.stdout).toMatch(/^it listens on 127\.0\.0\.1: all its work is on this machine/m);
  expect(await openOn()).toEqual(["0100007F"]);
  const { server } = await slipway.json<StatusView>(["status"]);
  expect(server.listens).toEqual({ host: "127.0.0.1", reason: expect.any(String) });
  expect((await slipway.run(["status"])).stdout).toMatch(/^listens +on 127\.0\.0\.1: /m);
  expect((await slipway.run(["agent", "--line"])).stderr).toContain("slipway up --host");
  // a cluster added since: what is wrong, and what to do
  await writeFile(join(slipway.home, "clusters.yaml"), "clusters: {hpc: {type: slurm, bin: /nowhere}}\n");
  expect((await slipway.run(["run", "--", "true"])).status).toBe(0);
  await slipway.run(["down"]);
  const again = await slipway.run(["up"]);
  expect(again.stdout).toMatch(/^it listens on 0\.0\.0\.0: the nodes of cluster hpc \(slurm\) must reach it$/m);
  expect(await openOn()).toEqual(["00000000"]);
});

it("--host is where it listens", async () => {
  await mkdir(slipway.home, { recursive: true });
  const server = await slipway.json<ServerView>(["up", "--host", "0.0.0.0"]);
  expect(server.listens).toEqual({ host: "0.0.0.0", reason: "as --host says" });
  expect(await openOn()).toEqual(["00000000"]);
});
