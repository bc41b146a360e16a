import { hostsOf, type Starter, managerProgram, shellWords } from "./starter.ts";

/**
 * PBS's own remote shell, once for each node. What it starts belongs to the job, so that qdel ends it; but it passes no
 * environment, its output goes to the job's own files whatever the shell says, and its death is not that of the remote
 * process: signals are delivered by another one.
 */
export const pbsTmrsh: Starter = (ask) => {
  const { find, words } = managerProgram(ask, "pbs_tmrsh");
  return {
    start: [
      ...find,
      `slipway_hosts=$(${hostsOf(ask)})`,
      `for slipway_host in $slipway_hosts; do`,
      `  slipway_start ${words} "$slipway_host" ${shellWords(ask.command)} "$slipway_host"`,
      `done`,
    ],
    remoteKill: `${words} "$2" /bin/kill -s "$1" "$3"`,
    bare: true,
  };
};
