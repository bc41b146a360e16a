// What a reader must know of the machine to judge its numbers.
import { cpus, availableParallelism, loadavg, release, totalmem } from "node:os";
import { spawnSync } from "node:child_process";

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

/** Others at work make every number doubtful, ratios too. */
export const isBusy = (machine) => machine.loadAtStart > 0.5;
