import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { toUnits } from "../../../core/resources.ts";
import { SlipwayError } from "../../../errors.ts";
import { tailOf } from "../../local/driver/detached-process.ts";
import type { JobRequest, JobStatus, Provider } from "../../provider.ts";
import * as model from "./model.ts";
import { readOptions, type SimulatedAsk } from "../options.ts";
import { endJob, exitCodeOf, findProcesses, isJobAlive, startJob } from "./processes.ts";
import type { Simulation } from "../simulation.ts";
import { readState, writeState } from "./state-file.ts";

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

const RAW: Readonly<Record<string, string>> = { held: "HELD", queued: "QUEUED", active: "RUNNING" };

const statusOf = async (job: model.SimulatedJob | undefined): Promise<JobStatus> => {
  if (job === undefined) return { state: "ended", raw: "gone", outcome: "unknown" };
  const hosts = job.hosts.length === 0 ? {} : { hosts: job.hosts };
  if (job.state !== "ended") return { state: job.state, raw: RAW[job.state]!, ...hosts };
  const outcome = job.outcome ?? "unknown";
  const said = job.reason ?? (outcome === "done" ? "" : await tailOf(join(job.directory, "agent.log")));
  return {
    state: "ended",
    raw: outcome.toUpperCase(),
    outcome,
    ...hosts,
    ...(said === "" ? {} : { reason: said }),
    ...(job.exitCode === undefined ? {} : { exitCode: job.exitCode }),
  };
};

const idOf = (nativeId: string): number => (/^\d{1,15}$/.test(nativeId) ? Number(nativeId) : 0);

export const createSimulatedProvider = ({ simulation, directory, clock = Date.now }: SimulatedOptions): Provider => {
  const path = join(directory, "state.json");
  const refused = (detail: string): SlipwayError =>
    new SlipwayError("cluster-refused", { cluster: "simulated", detail });
  let last: Promise<unknown> = Promise.resolve();

  /** One after another: each reads the file, goes on, and writes what changed. */
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };

  const carryOut = async (step: model.Step): Promise<model.SimulatedState> => {
    let { state } = step;
    for (const effect of step.effects) {
      const job = state.jobs.find(({ id }) => id === effect.job)!;
      if (effect.do === "end") await endJob(job, effect.isHard);
      else {
        // known as active before it is: a successor looks for what is not written down
        await writeState(path, state);
        try {
          state = model.noteProcesses(state, job.id, await startJob(job));
        } catch {
          state = model.processesGone(state, job.id, 127);
        }
        await writeState(path, state);
      }
    }
    return state;
  };

  /** Jobs whose processes are gone, as far as nobody has noticed yet. */
  const notice = async (before: model.SimulatedState): Promise<model.SimulatedState> => {
    let state = before;
    for (const job of before.jobs) {
      if (job.state !== "active") continue;
      const processes = job.processes.length > 0 ? job.processes : await findProcesses(job);
      const known = { ...job, processes };
      if (processes !== job.processes) state = model.noteProcesses(state, job.id, processes);
      if (!(await isJobAlive(known))) state = model.processesGone(state, job.id, await exitCodeOf(known));
    }
    return state;
  };

  const step = <T>(
    act: (state: model.SimulatedState) => Promise<{ state: model.SimulatedState; answer: T }>,
  ): Promise<T> =>
    alone(async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const before = await readState(path);
      const noticed = await carryOut(model.advance(simulation, await notice(before), clock()));
      const { state, answer } = await act(noticed);
      if (JSON.stringify(state) !== JSON.stringify(before)) await writeState(path, state);
      return answer;
    });

  const askOf = (job: JobRequest): SimulatedAsk => {
    const ask = readOptions(job.options ?? []);
    if (typeof ask === "string") throw refused(ask);
    return ask;
  };

  return {
    describe: async () => {
      const { nodes, coresPerNode, partitions } = simulation;
      return {
        version: `a simulation of ${nodes} node${nodes === 1 ? "" : "s"}`,
        largest: { cpus: toUnits("cpus", coresPerNode) },
        partitions: partitions.map((name, at) => ({
          name,
          isDefault: at === 0,
          isUp: true,
          nodes,
          cpusPerNode: coresPerNode,
          memoryPerNode: 0,
          gpusPerNode: 0,
          gpuTypes: [],
        })),
      };
    },

    submit: (job) =>
      step(async (before) => {
        const made = model.submit(
          simulation,
          before,
          { name: job.name, directory: job.directory, command: job.command },
          askOf(job),
          clock(),
        );
        // its number is used up: the next try may fare better
        await writeState(path, made.state);
        if ("no" in made) throw refused(made.no);
        const state = await carryOut(model.advance(simulation, made.state, clock()));
        return { state, answer: { nativeId: String(made.id) } };
      }),

    poll: (nativeIds) =>
      step(async (state) => {
        const jobs = new Map(state.jobs.map((job) => [job.id, job]));
        const answer = new Map<string, JobStatus>();
        for (const id of nativeIds) answer.set(id, await statusOf(jobs.get(idOf(id))));
        return { state, answer };
      }),

    cancel: (nativeIds) =>
      step(async (state) => ({
        state: await carryOut(model.cancel(simulation, state, nativeIds.map(idOf), clock())),
        answer: undefined,
      })),

    list: (namePrefix) =>
      step(async (state) => ({
        state,
        answer: state.jobs
          .filter((job) => job.state !== "ended" && job.name.startsWith(namePrefix))
          .map((job) => ({ name: job.name, nativeId: String(job.id) })),
      })),

    tryOut: async (job) => {
      const no = model.refusal(simulation, askOf(job));
      if (no !== undefined) throw refused(no);
      return `the simulation would take it: ${(job.options ?? []).join(" ") || "one node"}`;
    },
  };
};
