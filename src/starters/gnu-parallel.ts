import { hostsOf, type Starter, starterWords, shellWords } from "./starter.ts";

/** GNU parallel over ssh: the command once on each host of a list, all at the same time, lines kept whole. */
export const gnuParallel: Starter = (ask) => {
  const hosts = shellWords([`${ask.directory}/hosts`]);
  const options = ["--will-cite", "--line-buffer", "--nonall", "--jobs", String(ask.nodes)];
  return {
    start: [
      `${hostsOf(ask)} >${hosts}`,
      `slipway_start ${starterWords(ask, "parallel", options)} --sshloginfile ${hosts} ${shellWords([shellWords(ask.command)])}`,
    ],
    remoteKill: `ssh -n -o BatchMode=yes "$2" kill -s "$1" "$3"`,
    bare: true,
  };
};
