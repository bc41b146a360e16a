import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, connect } from "../../client/index.ts";
import { SlipwayError } from "../../errors.ts";

/**
 * The Slipway server of one wrapper: it has the wrapper's queue and nobody else's work, lives in a home of its own under
 * the home's `wraps/`, and ends with the wrapper, however that ends. One that dies is started again: it finds its pilots.
 */
export interface PoolServer {
  readonly client: Client;
  /** Ends all pilots, then the server. Rejects when pilots may be left. */
  stop(): Promise<void>;
}

/** Starts a server that ends when this process does. */
export type StartServer = (home: string) => Promise<{ readonly ended: Promise<void> }>;

export const poolHome = (home: string, id: string): string => join(home, "wraps", id);

/** A manager that hangs is not waited for for ever; the next start tries again. */
const STOPPING_MS = 100_000;
const AGAIN_MS = 1000;
const MOST_STARTS = 5;

const left = (home: string): SlipwayError =>
  new SlipwayError("wrap-failed", {
    detail: `pilots may be left: their server in ${home} did not end in ${STOPPING_MS / 1000} s`,
    jobs: [],
    remedy: "The next start with this status file ends them, and so does `slipway wrap down`.",
  });

const within = async (ended: Promise<void>, ms: number): Promise<boolean> => {
  const abort = new AbortController();
  const late = sleep(ms, false, { signal: abort.signal }).catch(() => false);
  const isOver = await Promise.race([ended.then(() => true), late]);
  abort.abort();
  return isOver;
};

export const startPoolServer = async (
  home: string,
  start: StartServer,
  note: (line: string) => void,
): Promise<PoolServer> => {
  let isStopping = false;
  let ended = Promise.resolve();
  let starts = 0;
  const run = async (): Promise<void> => {
    const server = await start(home);
    ended = server.ended.then(async () => {
      if (isStopping) return;
      starts += 1;
      note(`the server of this wrapper ended (its log is ${join(home, "logs", "server.log")})`);
      for (; starts <= MOST_STARTS && !isStopping; starts += 1) {
        await sleep(AGAIN_MS * (starts - 1));
        try {
          return await run();
        } catch (error) {
          note(`its server did not start again: ${(error as Error).message}`);
        }
      }
    });
  };
  await run();
  const client = connect({ home });
  return {
    client,
    stop: async () => {
      isStopping = true;
      await client.stop({ now: true }).catch(() => undefined);
      const isOver = await within(ended, STOPPING_MS);
      client.close();
      if (!isOver) throw left(home);
    },
  };
};

/** Ends what a wrapper that was killed has left: its server finds its pilots again and cancels them. */
export const endLeftServer = async (home: string, start: StartServer, note: (line: string) => void): Promise<void> => {
  if (!existsSync(join(home, "clusters.yaml"))) return rm(home, { recursive: true, force: true });
  note("a wrapper that ended without a word left pilots: ending them");
  const until = performance.now() + STOPPING_MS;
  for (;;) {
    const client = connect({ home });
    try {
      const { ended } = await start(home);
      await client.stop({ now: true });
      if (!(await within(ended, STOPPING_MS))) throw left(home);
      return await rm(home, { recursive: true, force: true });
    } catch (error) {
      // its own server has noticed, and is about to end
      if (!(error instanceof SlipwayError && error.code === "server-running")) throw error;
      if (performance.now() > until) throw left(home);
      await client.stop({ now: true }).catch(() => undefined);
      await sleep(200);
    } finally {
      client.close();
    }
  }
};
