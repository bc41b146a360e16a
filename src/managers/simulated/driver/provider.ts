import { SlipwayError } from "../../../errors.ts";
import type { JobRequest, JobStatus, Provider } from "../../provider.ts";
import { readOptions, type SimulatedAsk } from "../options.ts";
import type { Simulation } from "../simulation.ts";
import { describeSimulation } from "./description.ts";
import * as model from "./model.ts";
import { statusOf } from "./status.ts";
import { createTurns } from "./turns.ts";

/**
 * A batch system that exists only here: a model decides what waits, runs and breaks, and what it lets run are real
 * processes of this machine. It goes on whenever it is asked something; its memory is a file, so a successor goes on
 * where it was. It is for trying fleets, and for tests that need trouble on demand.
 */
export interface SimulatedOptions {
  readonly simulation: Simulation;
  /** Of this cluster alone; made when it is missing. */
  readonly directory: string;
  readonly clock?: () => number;
}

const idOf = (nativeId: string): number => (/^\d{1,15}$/.test(nativeId) ? Number(nativeId) : 0);

const refused = (detail: string): SlipwayError => new SlipwayError("cluster-refused", { cluster: "simulated", detail });

const askOf = (job: JobRequest): SimulatedAsk => {
  const ask = readOptions(job.options ?? []);
  if (typeof ask === "string") throw refused(ask);
  return ask;
};

export const createSimulatedProvider = ({ simulation, directory, clock = Date.now }: SimulatedOptions): Provider => {
  const turns = createTurns({ simulation, directory, clock });

  return {
    describe: async () => describeSimulation(simulation),

    submit: (job) =>
      turns.take(async ({ state, carryOut, write }) => {
        const wanted = { name: job.name, directory: job.directory, command: job.command };
        const { array: count } = job;
        const made =
          count === undefined
            ? model.submit(simulation, state, wanted, askOf(job), clock())
            : model.submitArray(simulation, state, wanted, askOf(job), count, clock());
        // its number is used up: the next try may fare better
        await write(made.state);
        if ("no" in made) throw refused(made.no);
        const answer =
          "ids" in made
            ? { nativeId: String(made.ids[0]), elements: made.ids.map(String) }
            : { nativeId: String(made.id) };
        return { state: await carryOut(model.advance(simulation, made.state, clock())), answer };
      }),

    poll: (nativeIds) =>
      turns.take(async ({ state }) => {
        const jobs = new Map(state.jobs.map((job) => [job.id, job]));
        const answer = new Map<string, JobStatus>();
        for (const id of nativeIds) answer.set(id, await statusOf(jobs.get(idOf(id))));
        return { state, answer };
      }),

    cancel: (nativeIds) =>
      turns.take(async ({ state, carryOut }) => ({
        state: await carryOut(model.cancel(simulation, state, nativeIds.map(idOf), clock())),
        answer: undefined,
      })),

    list: (namePrefix) =>
      turns.take(async ({ state }) => ({
        state,
        answer: state.jobs
          .filter((job) => job.state !== "ended" && job.name.startsWith(namePrefix))
          .map(({ name, id, array }) => ({
            name,
            nativeId: String(id),
            ...(array === undefined ? {} : { array: { nativeId: String(array.first), element: array.element } }),
          })),
      })),

    tryOut: async (job) => {
      const no = model.refusal(simulation, askOf(job));
      if (no !== undefined) throw refused(no);
      return `the simulation would take it: ${(job.options ?? []).join(" ") || "one node"}`;
    },
  };
};
