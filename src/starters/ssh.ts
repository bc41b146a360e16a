import { quoteFor } from "../core/shell-quoting.ts";
import { hostsOf, type StartAsk, type StartLines, type Starter, starterWords, shellWords } from "./starter.ts";

/**
 * A remote shell, once for each node that the manager names. It asks nothing (BatchMode), and what it is given is read
 * by the user's login shell there, hence quoted twice. Signals are delivered by a second one.
 */
const remoteShell = (ask: StartAsk, program: string, options: readonly string[]): StartLines => {
  const shell = starterWords(ask, program, ["-n", ...options]);
  const command = quoteFor(shellWords(ask.command), "word");
  return {
    start: [
      `slipway_hosts=$(${hostsOf(ask)})`,
      `for slipway_host in $slipway_hosts; do`,
      `  slipway_start ${shell} "$slipway_host" exec ${command} "$slipway_host"`,
      `done`,
    ],
    remoteKill: `${shell} "$2" kill -s "$1" "$3"`,
    bare: true,
  };
};

export const ssh: Starter = (ask) =>
  remoteShell(ask, "ssh", ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"]);

/** OAR's own ssh, which works between the nodes of a job only. */
export const oarsh: Starter = (ask) => remoteShell(ask, "oarsh", ["-o", "BatchMode=yes"]);
