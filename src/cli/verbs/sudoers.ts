import { execFileSync } from "node:child_process";
import { userInfo } from "node:os";
import { join } from "node:path";
import { settingsOf } from "../../launch/plan/settings.ts";
import { type SudoersCluster, sudoersText } from "../../launch/plan/sudoers.ts";
import { loadClusters } from "../../config/load-clusters.ts";
import { findProgram } from "../../find-program.ts";
import { storageRootError, storageRootFault } from "../../config/storage-root.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { type Define, examples } from "../verb.ts";

/** Where sudo will find a command: where the server finds it. */
const pathOf = async (context: Context, name: string, bin?: string): Promise<string> => {
  const found = await findProgram(name, bin);
  if (found !== undefined) return found;
  const guess = join(bin ?? "/usr/bin", name);
  const where = bin === undefined ? "on this PATH" : `in ${bin}`;
  context.note(`note: ${name} is not ${where}; ${guess} was written: correct it if the program is elsewhere`);
  return guess;
};

const accountOf = (name: string | undefined): { user: string; uid: number; gid: number } => {
  const own = userInfo();
  if (name === undefined || name === own.username) return { user: own.username, uid: own.uid, gid: own.gid };
  try {
    const ask = (flag: string): number =>
      Number(execFileSync("id", [flag, "--", name], { encoding: "utf8", stdio: "pipe" }));
    return { user: name, uid: ask("-u"), gid: ask("-g") };
  } catch (error) {
    throw new SlipwayError("usage", { detail: `there is no user '${name}' here` }, error);
  }
};

export const define: Define = (command, { act }) =>
  void command
    .option("--user <name>", "the account that runs the server (default: this one)")
    .option("--clusters <file>", "a clusters.yaml besides the home's own")
    .description(
      "Print the sudoers file that lets a server without privileges launch jobs in users' names. It allows exactly the manager's commands, as the users in sudo_authorized and never as root, and handing over job directories.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway sudoers --user slipway > slipway.sudoers && visudo -cf slipway.sudoers",
        "install -m 0440 slipway.sudoers /etc/sudoers.d/slipway",
      ]),
    )
    .action(
      act(async (context, _args, command) => {
        const { user, clusters: explicitPath } = command.opts<{ user?: string; clusters?: string }>();
        const config = await loadClusters({ home: context.home, explicitPath });
        const account = accountOf(user);
        if (account.uid === 0)
          throw new SlipwayError("usage", {
            detail: "root needs no rules; name the account that runs the server with --user",
          });
        const clusters: SudoersCluster[] = [];
        for (const cluster of config.clusters.values()) {
          const { launch } = cluster.manager;
          if (launch === undefined) continue;
          const { sudoAuthorized, storageRoot } = settingsOf(cluster);
          const commands: string[] = [];
          for (const name of launch.commands) commands.push(await pathOf(context, name, cluster.bin));
          clusters.push({
            name: cluster.name,
            authorized: sudoAuthorized,
            commands,
            ...(storageRoot === undefined ? {} : { storageRoot }),
          });
        }
        for (const { name, storageRoot } of clusters) {
          const fault = storageRoot === undefined ? undefined : await storageRootFault(storageRoot, account.uid);
          if (fault !== undefined) throw storageRootError(name, fault);
        }
        if (clusters.length === 0)
          throw new SlipwayError("usage", { detail: "clusters.yaml declares no cluster of type slurm or pbs" });
        const text = sudoersText({ ...account, chown: await pathOf(context, "chown"), clusters });
        context.answer({ text }, () => text.trimEnd());
      }),
    );
