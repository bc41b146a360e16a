import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { SlipwayError } from "../../errors.ts";
import type { PortRange } from "../plan/values.ts";

/** Resolves with the port where somebody could listen there now, else undefined; port 0 is any. */
const tryPort = (port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen({ port, host: "0.0.0.0", exclusive: true }, () => {
      const { port: found } = server.address() as { port: number };
      server.close(() => resolve(found));
    });
  });

/** All ports of a range, in an order that two wrappers are unlikely to share. */
function* shuffled({ from, to }: PortRange): Generator<number> {
  const count = to - from + 1;
  const start = randomInt(count);
  for (let at = 0; at < count; at++) yield from + ((start + at) % count);
}

/** Two free ports, at random, within the range where one is given. */
export const pickPorts = async (range?: PortRange): Promise<{ scheduler: number; dashboard: number }> => {
  const found: number[] = [];
  for (const port of range === undefined ? [0, 0, 0, 0] : shuffled(range)) {
    const free = await tryPort(port);
    if (free !== undefined && !found.includes(free)) found.push(free);
    const [scheduler, dashboard] = found;
    if (scheduler !== undefined && dashboard !== undefined) return { scheduler, dashboard };
  }
  throw new SlipwayError("wrap-failed", {
    detail:
      range === undefined
        ? "this machine has no two free ports"
        : `--port-range ${range.from}-${range.to} has ${found.length === 0 ? "no free port" : "only one free port"}; two are needed`,
    remedy: "Give a wider --port-range, or end what listens there.",
  });
};
