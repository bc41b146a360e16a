import { type Starter, managerProgram, shellWords } from "./starter.ts";

/**
 * PBS's pbsdsh, once for each node: `-n` counts the lines of the node file, and a node may have several. It passes
 * no environment, and returns 0 even when what it started failed: an agent's connection shows that it came up.
 */
export const pbsdsh: Starter = (ask) => {
  const { find, words } = managerProgram(ask, "pbsdsh");
  return {
    start: [
      ...find,
      `slipway_hosts=$(awk '!seen[$1]++ { print NR - 1 ":" $1 }' "$PBS_NODEFILE")`,
      `for slipway_host in $slipway_hosts; do`,
      `  slipway_start ${words} -n "\${slipway_host%%:*}" -- ${shellWords(ask.command)} "\${slipway_host#*:}"`,
      `done`,
    ],
    bare: true,
  };
};
