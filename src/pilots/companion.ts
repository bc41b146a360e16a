import type { JobStatus } from "../managers/provider.ts";
import type { Stop } from "./retiring.ts";

/** Jobs in a cluster's manager that are no pilots. The keeper of its pilots asks about both with one question. */
export interface Companion {
  /** Finds what nobody answered for. Rejects when the manager does not answer. */
  catchUp(): Promise<void>;
  /** The manager's ids of all that have not ended. */
  ids(): readonly string[];
  heard(answers: ReadonlyMap<string, JobStatus>, askedAt: number): Promise<void>;
  /** Why the manager does not answer, or null. */
  told(problem: string | null): void;
  /** Gives up agents that have been silent for longer than their lease. */
  loseSilent(): void;
  /** The manager answers: does what is to be done. */
  look(): Promise<void>;
  /** One more step towards none at all. */
  windDown(stop: Stop): Promise<void>;
  /** None is left; or, where the manager is `unreachable`, no agent of any. */
  isEmpty(unreachable: boolean): boolean;
}
