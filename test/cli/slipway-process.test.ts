import { expect, it } from "vitest";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { createHome, runtimeDirectoriesOf } from "./slipway-process.ts";

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
