import type { QueueJob } from "../config/queue-job.ts";
import type { PilotAsk, SgeAsk } from "./pilot-ask.ts";

/** What a queue of clusters.yaml asks for one of its pilots. */

const without = <T extends object>(fields: { readonly [K in keyof T]: T[K] | null | undefined }): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as T;

const sgeAsk = (sge: NonNullable<QueueJob["sge"]>): SgeAsk => {
  const { requests = {}, hard = [], defaultPrio, ...rest } = sge;
  const all = [...hard, ...Object.entries(requests).map(([name, value]) => `${name}=${value}`)];
  return without<SgeAsk>({ ...rest, priority: defaultPrio, hard: all.length === 0 ? undefined : all });
};

export const askOfQueue = (
  queue: QueueJob,
  job: { readonly name: string; readonly stdout: string; readonly stderr: string },
): PilotAsk => {
  const { oar } = queue;
  return {
    ...job,
    nodes: queue.nodes,
    extra: queue.options,
    skip: queue.skipOptions,
    ...without<Partial<PilotAsk>>({
      cores: queue.cores,
      memoryBytes: queue.memory,
      gpus: queue.gpus,
      tmpBytes: queue.tmp,
      walltime: queue.walltime,
      partition: queue.partition,
      account: queue.account,
      qos: queue.qos,
      constraint: queue.constraint,
      reservation: queue.reservation,
      exclusive: queue.exclusive,
      slurm: queue.slurm,
      sge: queue.sge === undefined ? undefined : sgeAsk(queue.sge),
      pbs: queue.pbs,
    }),
    ...(oar === undefined
      ? {}
      : {
          oar: {
            ...without<NonNullable<PilotAsk["oar"]>>({ resourceSpec: oar.resourceSpec, property: oar.property }),
            // null says something of its own: no memory is asked for
            ...(oar.memoryPerCorePropertyName === undefined
              ? {}
              : { memoryPerCoreProperty: oar.memoryPerCorePropertyName }),
          },
        }),
  };
};
