// What a reader must know about the machine to judge its numbers.
import { cpus, availableParallelism, loadavg, release, totalmem } from "node:os";
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

const fileSystemOf = (path) => {
  const { status, stdout } = spawnSync("df", ["--output=fstype", path], { encoding: "utf8" });
  return status === 0 ? (stdout.trim().split("\n").at(-1) ?? "unknown") : "unknown";
};

export const describeMachine = ({ home, scratch, spawner }) => ({
  cores: availableParallelism(),
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  memoryGb: Math.round(totalmem() / 1e9),
  kernel: release(),
  node: process.version,
  home: fileSystemOf(home),
  scratch: fileSystemOf(scratch),
  spawner,
  loadAtStart: Number(loadavg()[0].toFixed(2)),
  at: new Date().toISOString(),
});

export const machineText = (machine) =>
  `${machine.cores} cores (${machine.cpu}), ${machine.memoryGb} GB, Linux ${machine.kernel}, Node ${machine.node}; ` +
  `home on ${machine.home}, scratch on ${machine.scratch}; ${machine.spawner} spawner`;

/** Other work on the machine makes every number doubtful, even ratios. */
export const isBusy = (machine) => machine.loadAtStart > 0.5;

const LOOK_MS = 100;
const PATIENCE_MS = 10_000;
/** Of all cores' time. */
const QUIET = 0.05;

const cpuTimes = () => {
  let busy = 0;
  let all = 0;
  for (const { times } of cpus())
    for (const [kind, ms] of Object.entries(times)) {
      all += ms;
      if (kind !== "idle") busy += ms;
    }
  return { busy, all };
};

/**
 * What a contender leaves behind (files still to be written, processes still ending) must not burden the next one:
 * waits until the machine is quiet, but not for ever if others use it.
 */
export const untilQuiet = async () => {
  for (const begun = performance.now(); performance.now() - begun < PATIENCE_MS;) {
    const before = cpuTimes();
    await sleep(LOOK_MS);
    const after = cpuTimes();
    if (after.busy - before.busy <= QUIET * (after.all - before.all)) return;
  }
};
