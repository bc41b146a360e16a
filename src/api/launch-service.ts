import type { Caller, Role } from "./caller.ts";
import type { JobDetail } from "./job-details.ts";
import type { LaunchPreview, LaunchView, NewToken, TokenView } from "./launch-schemas.ts";
import type { LogQuery } from "./service.ts";

/** What the API needs of the launcher. A launch that is not the caller's is as if it did not exist. */
export interface LaunchService {
  /** Answers when the manager has accepted or refused it. The intent is on disk before the manager hears of it. */
  launch(caller: Caller, document: unknown): Promise<LaunchView>;
  preview(caller: Caller, document: unknown): Promise<LaunchPreview>;
  list(caller: Caller, query: { state?: string | undefined; limit: number }): LaunchView[];
  /** With `fresh` the manager is asked first. */
  show(caller: Caller, id: number, fresh: boolean): Promise<LaunchView>;
  /** The same with its states, its script and its output. */
  detail(caller: Caller, id: number): Promise<JobDetail>;
  /** The launch now, then each time it changes, until it has ended. */
  watch(caller: Caller, id: number, signal: AbortSignal): AsyncIterable<LaunchView>;
  logs(caller: Caller, id: number, query: LogQuery): AsyncIterable<Uint8Array>;
  cancel(caller: Caller, id: number): Promise<LaunchView>;
  /** Removes its directory; only of a launch that has ended. */
  clean(caller: Caller, id: number): Promise<LaunchView>;
  /** A piece of a job's own log, as its job sends it. */
  receive(
    caller: Caller,
    id: number,
    piece: { stream: "stdout" | "stderr"; rank: number; offset: number },
    body: AsyncIterable<Uint8Array>,
  ): Promise<{ size: number }>;
  /** Whose token this is; undefined if it is nobody's. */
  callerOf(token: string): Caller | undefined;
  tokens(): Promise<TokenView[]>;
  /** With a role: for whoever acts for the home's owner; else for the launches of a user of this machine. */
  addToken(user: string, role: Role | undefined): Promise<NewToken>;
  removeToken(user: string): Promise<void>;
}
