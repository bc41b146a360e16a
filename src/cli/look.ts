import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import http from "node:http";
import type { Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { setAside } from "../extra-authorities.ts";
import { openTransport, type Transport } from "../client/transport.ts";
import { serverBundle } from "./server-process.ts";

/** Looking without a server: a process that reads the home's journal, and changes nothing, answers instead. */

const hasJournal = (home: string): boolean => {
  try {
    return readdirSync(join(home, "journal")).some((name) => /\.(log|snap)$/.test(name));
  } catch {
    return false;
  }
};

/** Undefined where there is no journal. It lives as long as its one connection. */
export const lookTransport = async (home: string, root: string): Promise<Transport | undefined> => {
  if (!hasJournal(home)) return undefined;
  const child = spawn(process.execPath, [serverBundle(root), "look", "--home", home], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: setAside(),
  });
  const socket = child.stdio[3] as unknown as Socket;
  // what goes wrong with it shows as a connection that ends
  child.on("error", () => socket.destroy());
  child.unref();
  const agent = Object.assign(new http.Agent({ keepAlive: true, maxSockets: 1 }), { createConnection: () => socket });
  const here = { host: hostname(), addresses: [], port: 0, keyPin: "", socket: join(home, "journal") };
  const through = await openTransport(home, { ...here, pid: 0, epoch: 0, started: "", version: "" }, agent);
  return {
    endpoint: through.endpoint,
    send: through.send,
    get clockOffset() {
      return through.clockOffset;
    },
    close: () => {
      through.close();
      socket.destroy();
    },
  };
};
