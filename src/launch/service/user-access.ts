import { hostname } from "node:os";
import { callerWith } from "../../api/caller.ts";
import type { LaunchService } from "../../api/launch-service.ts";
import { isFinalLaunch } from "../../core/launch.ts";
import type { State } from "../../core/state.ts";
import { SlipwayError } from "../../errors.ts";
import type { Reachable } from "../../protocol/dial-server.ts";
import { sameSecret } from "../../protocol/token.ts";
import { isoTime } from "../../views/views.ts";
import type { LaunchCluster } from "./cluster.ts";
import type { Identity } from "./identity.ts";
import type { Publications } from "./publish.ts";
import { checkSharedRoot } from "./shared-roots.ts";
import { type UserTokens, hashOf } from "./tokens.ts";

/**
 * Whom a token lets in: users who share this server, each with their own token, and jobs, each for its own log (rule
 * 16).
 */
export type UserAccess = Pick<LaunchService, "callerOf" | "tokens" | "addToken" | "removeToken">;

export interface UserAccessOptions {
  readonly state: State;
  readonly tokens: UserTokens;
  readonly identity: Identity;
  readonly clusters: ReadonlyMap<string, LaunchCluster>;
  readonly publications: Publications;
  readonly endpoint: () => Reachable;
  /** The server's own user. */
  readonly own: string;
}

export const createUserAccess = (options: UserAccessOptions): UserAccess => {
  const { state, tokens, identity, clusters, publications, endpoint, own } = options;
  const checkUser = async (user: string): Promise<void> => {
    const facts = await identity.factsOf(user);
    if (facts.uid === 0)
      throw new SlipwayError("user-refused", {
        user,
        detail: "root may not launch jobs",
        remedy: "Name another user.",
      });
    if (user !== own) for (const { config } of clusters.values()) await checkSharedRoot(config);
  };
  return {
    callerOf: (token) => {
      const hash = hashOf(token);
      const holder = tokens.holderOf(hash);
      if (holder !== undefined)
        return holder.role === undefined ? { kind: "user", user: holder.user } : callerWith(holder.user, holder.role);
      for (const each of state.launches.values())
        if (!isFinalLaunch(each.state) && sameSecret(hash, each.tokenHash)) return { kind: "job", launch: each.id };
      return undefined;
    },
    tokens: async () =>
      (await tokens.list()).map(({ user, role, made }) => ({ user, role: role ?? null, made: isoTime(made) })),
    addToken: async (user, role) => {
      // with a role it is for whoever has it, and launches nothing in the name of that user
      if (role === undefined) await checkUser(user);
      const shared = [...clusters.values()].find(({ settings }) => settings.storageRoot !== undefined);
      const { addresses, port, keyPin } = endpoint();
      return {
        user,
        role: role ?? null,
        token: await tokens.add(user, role),
        endpointFile: shared === undefined ? null : (await publications.under(shared.root)).endpointFile,
        endpoint: { host: hostname(), addresses: [...addresses], port, keyPin },
      };
    },
    removeToken: (user) => tokens.remove(user),
  };
};
