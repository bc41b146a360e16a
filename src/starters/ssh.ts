import { quoteFor } from "../core/shell-quoting.ts";
import { hostsOf, type Launch, type Launched, type Launcher, launcherWords, shellWords } from "./starter.ts";

/**
 * A remote shell, once for each node that the manager names. It asks nothing (BatchMode), and what it is given is read
 * by the user's login shell there, hence quoted twice. Signals are delivered by a second one.
 */
const remoteShell = (launch: Launch, program: string, options: readonly string[]): Launched => {
  const shell = launcherWords(launch, program, ["-n", ...options]);
  const command = quoteFor(shellWords(launch.command), "word");
  return {
    start: [
      `slipway_hosts=$(${hostsOf(launch)})`,
      `for slipway_host in $slipway_hosts; do`,
      `  slipway_start ${shell} "$slipway_host" exec ${command} "$slipway_host"`,
      `done`,
    ],
    remoteKill: `${shell} "$2" kill -s "$1" "$3"`,
    bare: true,
  };
};

export const ssh: Launcher = (launch) =>
  remoteShell(launch, "ssh", ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"]);

/** OAR's own ssh, which works between the nodes of a job only. */
export const oarsh: Launcher = (launch) => remoteShell(launch, "oarsh", ["-o", "BatchMode=yes"]);
