import type { Group } from "./run.ts";

/**
 * CPU time of the tasks of a group that ended well, as far as it was measured: sums, not a column per task. Results
 * count it in hundredths of a second, rounded up, so that the many short tasks of a message are one number.
 */
export interface CpuTime {
  /** Tasks whose CPU time is known. */
  tasks: number;
  /** Of all their processes, ranks included. */
  cpuMs: number;
  /** How long they took. */
  tookMs: number;
  /** The most cores that one of them kept busy in the mean; of tasks that took a second or more. */
  mostCores: number;
}

export const UNIT_MS = 10;
const MOST_UNITS = 0xffff_ffff;
/** In a shorter one, what the clock cannot tell weighs too much. */
const LEAST_MS = 1000;

/** 0: not measured. */
export const cpuUnits = (ms: number): number => (ms > 0 ? Math.min(MOST_UNITS, Math.ceil(ms / UNIT_MS)) : 0);

export const noCpuTime = (): CpuTime => ({ tasks: 0, cpuMs: 0, tookMs: 0, mostCores: 0 });

/** A task ended well and used this much. */
export const addCpuTime = ({ cpu }: Pick<Group, "cpu">, units: number, tookMs: number): void => {
  if (units === 0 || !(tookMs >= 0)) return;
  cpu.tasks += 1;
  cpu.cpuMs += units * UNIT_MS;
  cpu.tookMs += tookMs;
  if (tookMs >= LEAST_MS) cpu.mostCores = Math.max(cpu.mostCores, (units * UNIT_MS) / tookMs);
};
