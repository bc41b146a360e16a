import { pickKeys } from "../../config/key-table.ts";
import { uniqueOf } from "../../starters/starter.ts";
import { type Manager, given, variables } from "../manager.ts";
import { pbsDirectives } from "./directives.ts";
import { pbsHostCpus } from "./host-cpus.ts";
import { PBS_KEYS, type PbsQueue } from "./keys.ts";
import { pbsLaunch } from "./launch.ts";
import { pbsTask } from "./task.ts";
import { PBS_WAITING } from "./waiting-reasons.ts";

/** OpenPBS and PBS Professional. */
export const pbs = {
  title: "PBS",
  keys: PBS_KEYS,
  understands: ["constraint", "reservation", "bin", "config"],
  instead: {
    gres: "Use gpus, or select-options.",
    hard: "Use select-options.",
    property: "Use select-options.",
  },
  queue: (values) => pickKeys(PBS_KEYS, values),
  batch: {
    partition: "queue",
    choosesPartition: true,
    programs: ["qsub", "qstat", "qdel", "pbsnodes"],
    further: ["tracejob"],
    configuration: ({ config }, env) => given(config ?? env["PBS_CONF_FILE"]),
    environment: ({ config }) => variables({ PBS_CONF_FILE: config }),
    directives: pbsDirectives,
    job: { hosts: () => uniqueOf("$PBS_NODEFILE"), programs: "$PBS_O_PATH" },
    hostCpus: pbsHostCpus,
    starter: "pbs_tmrsh",
    ownStarters: { pbs_tmrsh: "pbs_tmrsh", pbsdsh: "pbsdsh" },
    task: pbsTask,
    waiting: PBS_WAITING,
  },
  launch: pbsLaunch,
} satisfies Manager<PbsQueue>;
