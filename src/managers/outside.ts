/** `slipway/provider`: what a manager or a starter from outside is written against. */
export { CONTRACT } from "./contract-version.ts";
export type { ModuleDriverOptions, ModuleErrors, ModuleKey, ModuleManager, SlipwayModule } from "./module.ts";
export type { CommandOptions, CommandResult, RunCommand } from "./commands.ts";
export type { PilotAsk, Problem } from "./manager.ts";
export type { BackendOptions, RefuseKey, RefuseOption, TaskAsk, TaskDialect } from "./task-dialect.ts";
export type {
  ArrayPlace,
  ClusterDescription,
  FoundJob,
  JobOutcome,
  JobRequest,
  JobStatus,
  NiceRules,
  Partition,
  Provider,
  Submitted,
} from "./provider.ts";
export type { WaitingRow } from "./waiting-reason.ts";
export type { JobFacts, StartAsk, Starter, StartLines } from "../starters/starter.ts";
