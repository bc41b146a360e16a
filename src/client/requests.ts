import { SlipwayError } from "../errors.ts";
import type { Endpoint } from "../protocol/endpoint.ts";
import type { FollowOptions } from "./resume.ts";
import { isConnectionLost, openTransport, readJson, type Request, type Transport } from "./transport.ts";

/** Requests to the server of a home. The endpoint is read when needed, and again after a lost connection. */
export interface Requests {
  /** Where the server is, as its home says now. */
  find(): Promise<Endpoint>;
  /** The server that the next request goes to. */
  server(): Promise<Endpoint>;
  send(request: Request): Promise<AsyncIterable<Buffer>>;
  /** Reading again after a lost connection is always safe. */
  get<T>(path: string): Promise<T>;
  post<T>(path: string, json: unknown): Promise<T>;
  /** The same options; a lost connection is noted here too. */
  following(options: FollowOptions): FollowOptions;
  /** The server's clock in epoch milliseconds; this machine's before any answer. */
  now(): number;
  close(): void;
}

/** What answers where no server does; undefined: nothing can. */
export type WithoutServer = () => Promise<Transport | undefined>;

export const createRequests = (
  home: string,
  endpoint: () => Promise<Endpoint | undefined>,
  withoutServer?: WithoutServer,
): Requests => {
  let open: Promise<Transport> | undefined;
  const opened: Transport[] = [];
  let clockOffset: number | undefined;

  const find = async (): Promise<Endpoint> => {
    const found = await endpoint();
    if (found === undefined) throw new SlipwayError("no-server", { home });
    return found;
  };
  const transport = async (): Promise<Transport> => {
    open ??= find().then(async (found) => {
      const made = await openTransport(home, found);
      opened.push(made);
      return made;
    });
    try {
      return await open;
    } catch (error) {
      open = undefined;
      throw error;
    }
  };
  /** The next request looks for the server again. Requests on the old connections are left alone. */
  const forget = (): void => {
    open = undefined;
  };

  /** Asks what answers without a server, from now on; throws what kept us from the server if nothing does. */
  const instead = async (lost: unknown): Promise<Transport> => {
    const made = isConnectionLost(lost) ? await withoutServer?.() : undefined;
    if (made === undefined) throw lost;
    opened.push(made);
    open = Promise.resolve(made);
    return made;
  };

  const send = async (request: Request): Promise<AsyncIterable<Buffer>> => {
    const through = await transport().catch(instead);
    try {
      return await through.send(request);
    } catch (error) {
      if (!isConnectionLost(error)) throw error;
      forget();
      // of a server that died, its file is left
      if (withoutServer === undefined || request.method !== undefined) throw error;
      return await (await instead(error)).send(request);
    } finally {
      clockOffset = through.clockOffset ?? clockOffset;
    }
  };

  return {
    find,
    server: async () => (await transport().catch(instead)).endpoint,
    send,
    get: async <T>(path: string): Promise<T> => {
      for (let attempt = 1; ; attempt++) {
        try {
          return (await readJson(await send({ path }))) as T;
        } catch (error) {
          if (attempt === 2 || !isConnectionLost(error)) throw error;
        }
      }
    },
    post: async <T>(path: string, json: unknown): Promise<T> =>
      (await readJson(await send({ method: "POST", path, json }))) as T,
    following: (options) => ({
      ...options,
      onLost: (error) => {
        forget();
        options.onLost?.(error);
      },
    }),
    now: () => (clockOffset === undefined ? Date.now() : clockOffset + performance.now()),
    close: () => {
      forget();
      for (const each of opened.splice(0)) each.close();
    },
  };
};
