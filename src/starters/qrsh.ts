import { hostsOf, type Starter, managerProgram, shellWords } from "./starter.ts";

/**
 * Grid Engine's `qrsh -inherit`, once for each node of a parallel environment with `control_slaves TRUE`. The first line
 * of the host file is where the script runs: there the agent is started without it, since the script may hold the
 * only slot.
 */
export const qrsh: Starter = (ask) => {
  const { find, words } = managerProgram(ask, "qrsh");
  const remote = `${words} -inherit -nostdin`;
  const command = shellWords(ask.command);
  return {
    start: [
      ...find,
      `slipway_first=yes`,
      `slipway_hosts=$(${hostsOf(ask)})`,
      `for slipway_host in $slipway_hosts; do`,
      `  if [ -n "$slipway_first" ]; then`,
      `    slipway_first=`,
      `    slipway_start ${command}`,
      `  else`,
      `    slipway_start ${remote} "$slipway_host" ${command} "$slipway_host"`,
      `  fi`,
      `done`,
    ],
    remoteKill: `${remote} "$2" /bin/kill -s "$1" "$3"`,
    bare: true,
  };
};
