// Many agents in one process that do nothing but stay connected, for `npm run bench`: the agent's own connection, with its
// heartbeats, its patience and its way back to a server that was started again; as from other machines, so with TLS. Usage: staying-agents.mjs HOME COUNT. Writes
// "all" whenever all of them are welcome, the first time and after a loss; ends when its standard input does.
import { randomUUID } from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { join } from "node:path";
import { loadSource } from "../../scripts/load-source.mjs";

// agents on the server's own machine come by its socket
os.hostname = () => "elsewhere";
syncBuiltinESMExports();

const { createConnection, FRACTION, PROTOCOL_VERSION, endpointPath } = await loadSource(`
export { createConnection } from "./src/agent/connection.ts";
export { endpointPath } from "./src/protocol/endpoint.ts";
export { FRACTION } from "./src/core/resources.ts";
export { PROTOCOL_VERSION } from "./src/protocol/version.ts";
`);

const [home, count] = [process.argv[2], Number(process.argv[3])];
/** Connections being opened at the same time at the beginning. */
const AT_ONCE = 32;
let open = 0;
let epoch = 0;

const startAgent = (number) =>
  new Promise((welcomed) => {
    const uuid = randomUUID();
    const connection = createConnection({
      endpointFile: endpointPath(home),
      tokenFile: join(home, "keys", "agent.token"),
      log: () => undefined,
    });
    connection.connect({
      hello: () => ({
        version: PROTOCOL_VERSION,
        slipway: "bench",
        uuid,
        pilot: 0,
        host: `light-${number}`,
        pid: process.pid,
        resources: { cpus: FRACTION },
        output: join(home, "output", "none"),
        epoch,
        seq: 0,
        held: [],
      }),
      received: (message) => {
        if (message.t !== "welcome") return;
        ({ epoch } = message);
        open += 1;
        if (open === count) process.stdout.write("all\n");
        welcomed();
      },
      lost: () => {
        open -= 1;
      },
    });
  });

for (let first = 0; first < count; first += AT_ONCE)
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - first) }, (_, i) => startAgent(first + i)));
process.stdin.resume().on("end", () => process.exit(0));
