import { type Starter, starterWords, shellWords } from "./starter.ts";

/** Cray ALPS: one process per node (-N 1), bound to nothing, the program run where it is (-b). */
export const aprun: Starter = (ask) => ({
  start: [
    `slipway_start ${starterWords(ask, "aprun", ["-n", String(ask.nodes), "-N", "1", "-cc", "none", "-b"])} ${shellWords(ask.command)}`,
  ],
});
