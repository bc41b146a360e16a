import http from "node:http";
import { readFile } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { dialServer, type Reachable } from "../../protocol/dial-server.ts";
import type { StreamSettings } from "./settings.ts";

/**
 * Sends what one rank writes to the server while it runs. The job's own output files hold everything: what cannot be
 * sent is only late or left out here, marked as such, and memory stays bounded whatever the server does.
 */

export type StreamName = "stdout" | "stderr";

const MOST_HELD = 4 * 1024 * 1024;
const MOST_SENT_AT_ONCE = 256 * 1024;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5000;
const ANSWER_MS = 20_000;

export interface Sender {
  push(stream: StreamName, chunk: Buffer): void;
  /** Resolves when all is sent, or cannot be, or the time is over. */
  finish(withinMs: number): Promise<void>;
}

/** The server does not want it, and will not later. */
class Refused extends Error {}

interface Line {
  readonly name: StreamName;
  /** Bytes of the stream that the server has. */
  sent: number;
  held: Buffer[];
  heldBytes: number;
  /** Bytes left out after all that is held. */
  skipped: number;
}

export const createSender = (settings: StreamSettings, rank: number): Sender => {
  const lines: Line[] = (["stdout", "stderr"] as const).map((name) => ({
    name,
    sent: 0,
    held: [],
    heldBytes: 0,
    skipped: 0,
  }));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  Object.assign(agent, {
    createConnection: (_options: unknown, created: (error: Error | null, socket?: Duplex) => void): undefined => {
      // read again for every connection: a successor may be elsewhere
      readFile(settings.endpointFile, "utf8")
        .then((text) => dialServer(JSON.parse(text) as Reachable))
        .then(
          (socket) => created(null, socket),
          (error: unknown) => created(error as Error),
        );
      return undefined;
    },
  });
  let over = false;
  let wake: () => void = () => undefined;

  const post = (line: Line, body: Buffer): Promise<number> =>
    new Promise((resolve, reject) => {
      const path = `/api/v1/launches/${settings.launch}/output?stream=${line.name}&rank=${rank}&offset=${line.sent}`;
      const request = http.request({
        agent,
        method: "POST",
        path,
        headers: {
          host: "slipway",
          authorization: `Bearer ${settings.token}`,
          "content-type": "application/octet-stream",
          "content-length": body.length,
        },
      });
      request.setTimeout(ANSWER_MS, () => request.destroy(new Error("no answer")));
      request.once("error", reject);
      request.once("response", (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.once("error", reject);
        response.once("end", () => {
          const status = response.statusCode ?? 0;
          if (status >= 400 && status < 500) return reject(new Refused(`the server answered ${status}`));
          try {
            const { size } = JSON.parse(Buffer.concat(parts).toString("utf8")) as { size: number };
            if (status === 200 && Number.isSafeInteger(size)) resolve(size);
            else reject(new Error(`the server answered ${status}`));
          } catch (error) {
            reject(error as Error);
          }
        });
      });
      request.end(body);
    });

  const take = (line: Line): Buffer => {
    // what was left out came after all that is held
    if (line.heldBytes === 0) {
      line.held = [Buffer.from(`\n[${line.skipped} bytes are in the job's own output file only]\n`)];
      line.heldBytes = line.held[0]!.length;
      line.skipped = 0;
    }
    const whole = Buffer.concat(line.held);
    line.held = [whole];
    return whole.subarray(0, MOST_SENT_AT_ONCE);
  };

  const sendOne = async (line: Line): Promise<void> => {
    const size = await post(line, take(line));
    const taken = Math.min(Math.max(0, size - line.sent), line.heldBytes);
    line.sent = size;
    line.held = [line.held[0]!.subarray(taken)];
    line.heldBytes -= taken;
  };

  const work = async (): Promise<void> => {
    let wait = FIRST_WAIT_MS;
    for (;;) {
      const line = lines.find((each) => each.heldBytes + each.skipped > 0);
      if (line === undefined) {
        if (over) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      try {
        await sendOne(line);
        wait = FIRST_WAIT_MS;
      } catch (error) {
        if (error instanceof Refused) {
          over = true;
          for (const each of lines) Object.assign(each, { held: [], heldBytes: 0, skipped: 0 });
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, wait / 2 + Math.random() * wait));
        wait = Math.min(wait * 2, LONGEST_WAIT_MS);
      }
    }
  };
  const working = work();

  return {
    push: (name, chunk) => {
      if (over) return;
      const line = lines.find((each) => each.name === name)!;
      if (line.skipped > 0 || line.heldBytes + chunk.length > MOST_HELD) line.skipped += chunk.length;
      else {
        line.held.push(chunk);
        line.heldBytes += chunk.length;
      }
      wake();
    },
    finish: async (withinMs) => {
      over = true;
      wake();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([working, late]);
      clearTimeout(timer);
      agent.destroy();
    },
  };
};
