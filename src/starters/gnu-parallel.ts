import { hostsOf, type Launcher, launcherWords, shellWords } from "./starter.ts";

/** GNU parallel over ssh: the command once on each host of a list, all at the same time, lines kept whole. */
export const gnuParallel: Launcher = (launch) => {
  const hosts = shellWords([`${launch.directory}/hosts`]);
  const options = ["--will-cite", "--line-buffer", "--nonall", "--jobs", String(launch.nodes)];
  return {
    start: [
      `${hostsOf(launch)} >${hosts}`,
      `slipway_start ${launcherWords(launch, "parallel", options)} --sshloginfile ${hosts} ${shellWords([shellWords(launch.command)])}`,
    ],
    remoteKill: `ssh -n -o BatchMode=yes "$2" kill -s "$1" "$3"`,
    bare: true,
  };
};
