import { type Launcher, launcherWords, shellWords } from "./starter.ts";

/** Cray ALPS: one process per node (-N 1), bound to nothing, the program taken where it lies (-b). */
export const aprun: Launcher = (launch) => ({
  start: [
    `slipway_start ${launcherWords(launch, "aprun", ["-n", String(launch.nodes), "-N", "1", "-cc", "none", "-b"])} ${shellWords(launch.command)}`,
  ],
});
