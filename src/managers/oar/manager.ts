import { pickKeys } from "../../config/key-table.ts";
import { uniqueOf } from "../../starters/starter.ts";
import { counted } from "../host-cpus.ts";
import type { Manager } from "../manager.ts";
import { oarDirectives } from "./directives.ts";
import { OAR_KEYS, oarProblem, type OarQueue } from "./keys.ts";
import { oarTask } from "./task.ts";
import { OAR_WAITING } from "./waiting-reasons.ts";

export const oar = {
  title: "OAR",
  keys: OAR_KEYS,
  understands: ["bin"],
  instead: {
    constraint: "Use property: \"NAME='VALUE'\".",
    reservation: 'Use options: ["-t inner=123"].',
    gres: "Use resource-spec.",
    hard: "Use property.",
  },
  queue: (values) => pickKeys(OAR_KEYS, values),
  problem: oarProblem,
  batch: {
    partition: "queue",
    choosesPartition: true,
    programs: ["oarsub", "oarstat", "oardel", "oarnodes"],
    further: [],
    environment: () => ({}),
    directives: oarDirectives,
    job: { hosts: () => uniqueOf("$OAR_NODEFILE"), remoteShell: "oarsh" },
    hostCpus: () => counted("1", "${OAR_NODEFILE:-/dev/null}"),
    starter: "oarsh",
    task: oarTask,
    waiting: OAR_WAITING,
  },
} satisfies Manager<OarQueue>;
