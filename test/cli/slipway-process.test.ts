import { readFile, stat } from "node:fs/promises";
import { expect, it } from "vitest";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { createHome, runtimeDirectoriesOf } from "./slipway-process.ts";

it("rule 16: an agent on the server's machine comes by a socket that only the owner may open", async () => {
  const slipway = await createHome();
  await slipway.run(["up"]);
  const { agentSocket } = (await readEndpoint(slipway.home))!;
  expect((await stat(agentSocket!)).mode & 0o777).toBe(0o600);
  expect((await slipway.run(["run", "--", "true"])).status).toBe(0);
  // Num RefCount Protocol Flags Type St Inode Path; 03 is connected
  const connected = new RegExp(String.raw`^\S+ \S+ \S+ \S+ \S+ 03 +\d+ ${agentSocket}$`, "m");
  expect(await readFile("/proc/net/unix", "latin1")).toMatch(connected);
  await slipway.cleanup();
});

it("nothing is left of a home whose server was killed, its socket's directory included", async () => {
  const slipway = await createHome();
  await slipway.run(["up"]);
  const { pid, socket } = (await readEndpoint(slipway.home))!;
  const [directory] = await runtimeDirectoriesOf(slipway.home);
  expect(socket).toBe(`${directory}/api.sock`);
  process.kill(pid, "SIGKILL");
  await slipway.cleanup();
  expect(await runtimeDirectoriesOf(slipway.home)).toEqual([]);
});
