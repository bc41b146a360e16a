import type { TaskAsk } from "../../../src/managers/task-dialect.ts";
import { LEAST_ASK } from "./least-ask.ts";

/** The least that the job of a task can ask for. */
export const LEAST_TASK = {
  ...LEAST_ASK,
  keys: {},
  others: {},
  licences: new Set<string>(),
} satisfies TaskAsk;

/** What `read` and `backend` of a dialect throw here: the key or the option, and what is wrong with it. */
export const refuse = (what: string, detail: string): never => {
  throw new Error(`${what}: ${detail}`);
};
