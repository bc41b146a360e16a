// No benchmark-only path: after a measurement, tasks drawn at random must show everything a task shows.

/** A number that does not add up. It breaks its experiment: what was measured is not what was claimed. */
export class Broken extends Error {}

const must = (condition, what) => {
  if (!condition) throw new Broken(what);
};

/** A finished run, all its tasks done at the first attempt. */
export const checkRun = (run, total) => {
  const found = JSON.stringify(run.counts);
  must(run.state === "DONE" && run.total === total, `run ${run.id} is ${run.state} with ${run.total} tasks, not DONE`);
  must(run.counts.DONE === total, `run ${run.id} of ${total} tasks has ${found}`);
  must(run.losses === 0 && run.retries === 0, `run ${run.id} had ${run.losses} losses and ${run.retries} retries`);
  must(Date.parse(run.submitted) <= Date.parse(run.finished), `run ${run.id} lacks its times`);
};

const checkTask = (task, run, executed) => {
  const where = `task ${task.id}`;
  must(task.state === "DONE", `${where} is ${task.state}`);
  must(!executed || task.exitCode === 0, `${where} shows exit code ${task.exitCode}`);
  must(task.attempts.length === 1, `${where} shows ${task.attempts.length} attempts`);
  const [{ agent, assigned, started, finished, lost }] = task.attempts;
  must(agent !== null && !lost, `${where} does not show its agent`);
  const times = [run.submitted, assigned, started, finished].map((time) => (time === null ? NaN : Date.parse(time)));
  const ordered = times.every((time, i) => i === 0 || time >= times[i - 1]);
  must(ordered, `${where} shows the times ${[run.submitted, assigned, started, finished].join(", ")}`);
};

/**
 * Checks `size` tasks of a finished run with `slipway show` and, if the command prints something (`output` says what),
 * with `slipway logs`. Throws Broken if one of them is incomplete.
 */
export const checkSample = async (slipway, run, { size = 4, executed = true, output } = {}) => {
  const { start, step } = run.numbering;
  for (let i = 0; i < size; i++) {
    const index = start + step * Math.floor(Math.random() * run.total);
    const { answer } = await slipway.ask("show", `${run.id}.${index}`);
    checkTask(answer, run, executed);
    const expected = output?.(index) ?? "";
    if (executed)
      must(answer.stdoutBytes === expected.length, `task ${answer.id} shows ${answer.stdoutBytes} bytes of output`);
    if (output === undefined) continue;
    const printed = await slipway.logs(answer.id);
    must(printed === expected, `task ${answer.id} printed ${JSON.stringify(printed.slice(0, 100))}`);
  }
};
