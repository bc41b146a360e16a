// A run of null tasks as typed at the command line: its rate, and what it cost the processes that took part.
import { checkRun } from "./sample.mjs";
import { cpuNow, cpuPerTask } from "./slipway.mjs";

/** Seconds between submission and end by the server's clock; times are whole milliseconds. */
export const secondsInside = (run) => Math.max(1, Date.parse(run.finished) - Date.parse(run.submitted)) / 1000;

/** `words` say what to run; all of it must finish at the first attempt. */
export const runNull = async (slipway, size, words) => {
  const processes = await slipway.processes();
  const before = cpuNow(processes);
  const { answer: run, seconds } = await slipway.ask("run", ...words);
  const cpu = cpuPerTask(before, cpuNow(processes), size);
  checkRun(run, size);
  return { run, rate: size / secondsInside(run), wall: size / seconds, cpu };
};

/** Nothing is started, whatever the program: another one only makes it another template. */
export const nullArray = (size, program = "/bin/true") => {
  const array = `1-${size}`;
  return ["--executor", "null", "--array", array, "--", program];
};
