import { type Starter, starterWords, shellWords } from "./starter.ts";

/** IBM's jsrun: one resource set per host that holds all its cores and GPUs, one task in each. */
const ALL = ["--rs_per_host", "1", "--tasks_per_rs", "1", "--cpu_per_rs", "ALL_CPUS", "--gpu_per_rs", "ALL_GPUS"];

export const jsrun: Starter = (ask) => ({
  start: [
    `slipway_start ${starterWords(ask, "jsrun", ["--nrs", String(ask.nodes), ...ALL, "--bind", "none"])} ${shellWords(ask.command)}`,
  ],
});
