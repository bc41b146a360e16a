import { userInfo } from "node:os";
import { isAuthorized, type UserFacts } from "../plan/runas-list.ts";
import { KEPT_VARIABLES } from "../plan/sudoers.ts";
import type { Caller } from "../../api/caller.ts";
import { SlipwayError } from "../../errors.ts";
import type { RunCommand } from "../../managers/commands.ts";

/** In whose name a job runs, and how the server acts in that name. */

/**
 * The words that run a command as another user. sudo drops the environment, so the variables that say where the manager
 * is are passed as assignments (which `--` would forbid), and the rules of `slipway sudoers` let them through.
 */
export const becomeUser = (
  user: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): readonly string[] => {
  const around: Readonly<NodeJS.ProcessEnv> = { ...process.env, ...env };
  const kept = KEPT_VARIABLES.filter((name) => around[name] !== undefined).map((name) => `${name}=${around[name]}`);
  return ["sudo", "-n", "-u", user, ...kept, ...argv];
};

export const ownUser = (): string => userInfo().username;

const USER_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$/;

export interface Identity {
  /** The facts about a user; throws `user-refused` for one who is not known here. */
  factsOf(user: string): Promise<UserFacts>;
  /** The user a launch is for; throws unless this caller may launch in that name on that cluster. */
  userFor(caller: Caller, wanted: string | undefined, authorized: readonly string[]): Promise<UserFacts>;
}

const refused = (user: string, detail: string, remedy: string): SlipwayError =>
  new SlipwayError("user-refused", { user, detail, remedy });

export const createIdentity = (run: RunCommand): Identity => {
  const own = userInfo();

  const factsOf = async (user: string): Promise<UserFacts> => {
    if (!USER_NAME.test(user)) throw refused(user.slice(0, 64), "that is not a valid user name", "Correct `user`.");
    const [uid, groups] = await Promise.all([run(["id", "-u", "--", user]), run(["id", "-Gn", "--", user])]);
    if (uid.code !== 0) throw refused(user, "the server's host does not know them", "Correct `user`.");
    return { name: user, uid: Number(uid.stdout.trim()), groups: groups.stdout.trim().split(" ") };
  };

  return {
    factsOf,
    userFor: async (caller, wanted, authorized) => {
      if (caller.kind === "user" && wanted !== undefined && wanted !== caller.user)
        throw refused(wanted, `this token is ${caller.user}'s`, "Leave `user` out, or use that user's token.");
      if (caller.kind === "role" && wanted !== undefined && wanted !== own.username)
        throw refused(
          wanted,
          `this token has the role ${caller.role}`,
          "Leave `user` out, or use a token with the role admin.",
        );
      const name = caller.kind === "user" ? caller.user : (wanted ?? own.username);
      if (name === "root")
        throw refused("root", "root may not launch jobs", "Name another user with `user`, one of `sudo_authorized`.");
      const facts = await factsOf(name);
      if (facts.uid === 0) throw refused(name, "it is root by another name", "Name another user with `user`.");
      if (facts.uid === own.uid) return facts;
      if (!isAuthorized(authorized, facts))
        throw refused(
          name,
          "sudo_authorized does not list them",
          "Add them to `sudo_authorized` in clusters.yaml and install the output of `slipway sudoers` again.",
        );
      return facts;
    },
  };
};
