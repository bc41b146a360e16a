import type { Role } from "../api/caller.ts";
import type { LaunchPreview, LaunchView, NewToken, TokenView } from "../api/launch-schemas.ts";
import { readJsonLines } from "./lines.ts";
import type { Requests } from "./requests.ts";
import { type FollowOptions, pause, resumed } from "./resume.ts";
import { newUuid } from "./submit.ts";
import { isConnectionLost, readJson, type Request } from "./transport.ts";

/** A launch's file as JSON (docs/launch.md). */
export type LaunchDocument = Readonly<Record<string, unknown>> & { readonly uuid?: string };

export interface LaunchLogOptions extends FollowOptions {
  readonly stream?: "stdout" | "stderr";
  readonly follow?: boolean;
}

/** Batch jobs straight through a workload manager. */
export interface LaunchClient {
  /** Answers when the manager has accepted the job; a repeated request (same `uuid`) is the same launch. */
  launch(document: LaunchDocument): Promise<LaunchView>;
  previewLaunch(document: LaunchDocument): Promise<LaunchPreview>;
  launches(query?: { state?: string | undefined; limit?: number }): Promise<LaunchView[]>;
  /** With `fresh` its manager is asked first. */
  launchById(id: number, options?: { fresh?: boolean }): Promise<LaunchView>;
  /** The launch now, then each time it changes, until it has ended; continues after a restart of the server. */
  watchLaunch(id: number, options?: FollowOptions): AsyncGenerator<LaunchView>;
  launchLogs(id: number, options?: LaunchLogOptions): AsyncGenerator<Buffer>;
  cancelLaunch(id: number): Promise<LaunchView>;
  cleanLaunch(id: number): Promise<LaunchView>;
  tokens(): Promise<TokenView[]>;
  /** Without a role: for the launches of a user of that machine. */
  addToken(user: string, role?: Role): Promise<NewToken>;
  removeToken(user: string): Promise<void>;
}

export const isFinalView = ({ state }: LaunchView): boolean => state !== "pending" && state !== "running";

export const createLaunchClient = ({
  send,
  get,
  following,
}: Pick<Requests, "send" | "get" | "following">): LaunchClient => {
  const ask = async <T>(request: Request): Promise<T> => (await readJson(await send(request))) as T;

  const launch = async (document: LaunchDocument): Promise<LaunchView> => {
    const json = { uuid: await newUuid(), ...document };
    for (let attempt = 1; ; attempt++) {
      try {
        return await ask({ method: "POST", path: "/launches", json });
      } catch (error) {
        if (attempt >= 3 || !isConnectionLost(error)) throw error;
        await pause(300 * attempt);
      }
    }
  };

  const watchLaunch = (id: number, options: FollowOptions = {}): AsyncGenerator<LaunchView> =>
    resumed(async function* (connected): AsyncGenerator<LaunchView, boolean> {
      const body = await send({ path: `/launches/${id}/watch`, follow: true, signal: options.signal });
      connected();
      let ended = false;
      for await (const line of readJsonLines(body)) {
        yield line as LaunchView;
        ended = isFinalView(line as LaunchView);
      }
      return ended;
    }, following(options));

  const launchLogs = (id: number, options: LaunchLogOptions = {}): AsyncGenerator<Buffer> => {
    const { stream = "stdout", follow = false } = options;
    let seen = 0;
    return resumed(async function* (connected): AsyncGenerator<Buffer, boolean> {
      const path = `/launches/${id}/logs?stream=${stream}${follow ? "&follow=1" : ""}`;
      const body = await send({ path, follow, signal: options.signal });
      connected();
      // after a lost connection what was seen comes again first
      let skip = seen;
      for await (const piece of body) {
        const rest = piece.subarray(Math.min(skip, piece.length));
        skip -= piece.length - rest.length;
        seen += rest.length;
        if (rest.length > 0) yield rest;
      }
      return true;
    }, following(options));
  };

  return {
    launch,
    previewLaunch: (json) => ask({ method: "POST", path: "/launches?dry_run=1", json }),
    launches: ({ state, limit = 100 } = {}) =>
      get(`/launches?limit=${limit}${state === undefined ? "" : `&state=${encodeURIComponent(state)}`}`),
    launchById: (id, { fresh = false } = {}) => get(`/launches/${id}${fresh ? "?fresh=1" : ""}`),
    watchLaunch,
    launchLogs,
    cancelLaunch: (id) => ask({ method: "DELETE", path: `/launches/${id}` }),
    cleanLaunch: (id) => ask({ method: "POST", path: `/launches/${id}/clean`, json: {} }),
    tokens: () => get("/tokens"),
    addToken: (user, role) =>
      ask({ method: "POST", path: "/tokens", json: { user, ...(role === undefined ? {} : { role }) } }),
    removeToken: async (user) => {
      await ask({ method: "DELETE", path: `/tokens/${encodeURIComponent(user)}` });
    },
  };
};
