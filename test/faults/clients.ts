import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import type { Started, World } from "./world.ts";

/** Clients that meet with trouble. */

/** A bulk submission whose client was killed or cut off: either all of it is there, once, or nothing. */
export interface Bulk {
  readonly name: string;
  readonly lines: number;
  /** The client had said that the server accepted it. */
  readonly acknowledged: boolean;
}

export const askToCompact = async (world: World): Promise<boolean> => {
  const endpoint = await readEndpoint(world.home);
  if (endpoint === undefined) return false;
  return new Promise((resolve) => {
    const ask = request(
      { socketPath: endpoint.socket, path: "/api/v1/server/compact", method: "POST", headers: { host: "slipway" } },
      (answer) => {
        answer.resume();
        answer.on("end", () => resolve(answer.statusCode === 200));
        answer.on("error", () => resolve(false));
      },
    );
    ask.on("error", () => resolve(false));
    ask.end();
  });
};

/** Starts a command line that submits this many lines. */
const submitLines = async (world: World, name: string, lines: number): Promise<Started> => {
  await writeFile(
    join(world.root, `${name}.txt`),
    Array.from({ length: lines }, (_, i) => `a line with number ${i}\n`).join(""),
  );
  await writeFile(
    join(world.root, `${name}.yaml`),
    JSON.stringify({
      name,
      tasks: [{ name, each: { lines: `${name}.txt` }, run: ["/bin/true", "{item}"], executor: "null" }],
    }),
  );
  return world.start(["submit", "--json", `${name}.yaml`]);
};

/** Starts a command line that submits this many lines, and kills it after this long. */
export const killClient = async (world: World, name: string, lines: number, after: number): Promise<Bulk> => {
  const client = await submitLines(world, name, lines);
  await Promise.race([sleep(after), client.ended]);
  world.count.kills += 1;
  client.child.kill("SIGKILL");
  const { status } = await client.ended;
  world.note(`the client of ${name} was killed (${status === 0 ? "after its end" : "in time"})`);
  return { name, lines, acknowledged: status === 0 };
};

/** A client whose connections are cut again and again; it retries by itself, and it is still one request. */
export const cutClient = async (world: World, name: string, lines: number, cuts: readonly number[]): Promise<Bulk> => {
  const client = await submitLines(world, name, lines);
  for (const after of cuts) {
    await Promise.race([sleep(after), client.ended]);
    world.apiProxy?.cut();
  }
  const { status } = await client.ended;
  world.note(`the client of ${name} was cut off ${cuts.length} times and ended with ${status}`);
  return { name, lines, acknowledged: status === 0 };
};
