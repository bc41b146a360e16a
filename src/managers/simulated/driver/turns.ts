import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Simulation } from "../simulation.ts";
import * as model from "./model.ts";
import { endJob, exitCodeOf, findProcesses, isJobAlive, startJob } from "./processes.ts";
import { readState, writeState } from "./state-file.ts";

/** The simulation goes on by turns, one after another: each reads its file, catches up, acts, and writes what changed. */
export interface Turns {
  take<T>(act: (turn: Turn) => Promise<{ readonly state: model.SimulatedState; readonly answer: T }>): Promise<T>;
}

export interface Turn {
  /** As it is now. */
  readonly state: model.SimulatedState;
  /** Starts and ends processes as the model says. */
  carryOut(step: model.Step): Promise<model.SimulatedState>;
  /** Before the end of the turn: this stays, even if the rest fails. */
  write(state: model.SimulatedState): Promise<void>;
}

export interface TurnsOptions {
  readonly simulation: Simulation;
  readonly directory: string;
  readonly clock: () => number;
}

/**
 * Jobs whose processes are gone, as far as nobody has noticed yet. One that is written down as active and left no trace of
 * a process was never started, since its server was killed just then: its start is what is left to do.
 */
const notice = async (before: model.SimulatedState): Promise<model.Step> => {
  let state = before;
  const effects: model.Effect[] = [];
  for (const job of before.jobs) {
    if (job.state !== "active") continue;
    const processes = job.processes.length > 0 ? job.processes : await findProcesses(job);
    const known = { ...job, processes };
    if (processes.length !== job.processes.length) state = model.noteProcesses(state, job.id, processes);
    if (isJobAlive(known)) continue;
    const code = await exitCodeOf(known);
    if (processes.length === 0 && code === undefined && job.ending === undefined)
      effects.push({ do: "start", job: job.id });
    else state = model.processesGone(state, job.id, code);
  }
  return { state, effects };
};

export const createTurns = ({ simulation, directory, clock }: TurnsOptions): Turns => {
  const path = join(directory, "state.json");
  const write = (state: model.SimulatedState): Promise<void> => writeState(path, state);
  let last: Promise<unknown> = Promise.resolve();

  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };

  const carryOut: Turn["carryOut"] = async (step) => {
    let { state } = step;
    for (const effect of step.effects) {
      const job = state.jobs.find(({ id }) => id === effect.job)!;
      if (effect.do === "end") endJob(job, effect.isHard);
      else {
        // known as active before it is: a successor looks for what is not written down
        await write(state);
        try {
          state = model.noteProcesses(state, job.id, await startJob(job));
        } catch {
          state = model.processesGone(state, job.id, 127);
        }
        await write(state);
      }
    }
    return state;
  };

  return {
    take: (act) =>
      alone(async () => {
        await mkdir(directory, { recursive: true, mode: 0o700 });
        const before = await readState(path);
        const noticed = await carryOut(await notice(before));
        const now = await carryOut(model.advance(simulation, noticed, clock()));
        const { state, answer } = await act({ state: now, carryOut, write });
        if (JSON.stringify(state) !== JSON.stringify(before)) await write(state);
        return answer;
      }),
  };
};
