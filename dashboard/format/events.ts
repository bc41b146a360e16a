import { stateWord } from "../../src/core/state-words.ts";
import type { EventView } from "../../src/api/schemas.ts";
import { count } from "./numbers.ts";
import { oneLine } from "./text.ts";

/** An event of the feed as a sentence: what it is about, what happened, and whether that is good. */

export interface Described {
  readonly about: string;
  readonly what: string;
  /** Chooses the sign before it. */
  readonly state: string;
}

const text = (value: unknown): string =>
  value === null || value === undefined ? "" : oneLine(typeof value === "string" ? value : JSON.stringify(value), 200);

const because = (reason: unknown): string => (text(reason) === "" ? "" : `: ${text(reason)}`);

/** `exit code 2`, `SIGKILL`, with the reason behind it. */
const endText = (detail: Record<string, unknown>): string => {
  const how =
    text(detail["signal"]) !== ""
      ? `ended by ${text(detail["signal"])}`
      : detail["exitCode"] == null
        ? ""
        : `exit code ${text(detail["exitCode"])}`;
  return [how, text(detail["reason"])].filter((part) => part !== "").join(": ");
};

/** Everything it carries, for events that have no sentence of their own. */
const rest = (detail: Record<string, unknown>): string =>
  Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${text(value)}`)
    .join(", ");

export const describe = ({ event, run, task, detail = {} }: EventView): Described => {
  const ofRun = `Run ${run ?? "?"}`;
  const tasks = (): string => (typeof detail["tasks"] === "number" ? `${count(detail["tasks"])} tasks` : "tasks");
  switch (event) {
    case "run.submitted":
      return { about: ofRun, what: "was submitted", state: "ready" };
    case "run.finished":
    case "run.ended": {
      const state = stateWord(text(detail["state"]));
      return { about: ofRun, what: state === "" ? "ended" : `ended: ${state}`, state: state === "" ? "done" : state };
    }
    case "run.cancel":
      return { about: ofRun, what: `was cancelled${because(detail["reason"])}`, state: "cancelled" };
    case "run.retry":
      return {
        about: ofRun,
        what: `runs again: ${detail["which"] == null ? tasks() : text(detail["which"])}`,
        state: "ready",
      };
    case "tasks.failed":
      return { about: ofRun, what: `${tasks()} failed${because(detail["reason"])}`, state: "failed" };
    case "task.ended": {
      const state = stateWord(text(detail["state"]));
      return { about: `Task ${task ?? ""}`, what: `${state}${because(detail["reason"])}`, state };
    }
    case "attempt.failed":
      return { about: `Task ${task ?? ""}`, what: `failed: ${endText(detail)}`, state: "failed" };
    case "attempt.lost":
      return {
        about: `Task ${task ?? ""}`,
        what: `was lost and runs again${because(detail["reason"])}`,
        state: "lost",
      };
    case "agent.joined":
      return { about: "An agent", what: `came on ${text(detail["host"])}`, state: "done" };
    case "agent.left":
    case "agent.lost":
      return {
        about: "Agents",
        what: `${event === "agent.left" ? "left" : "were lost"}${because(detail["reason"])}`,
        state: event === "agent.left" ? "done" : "lost",
      };
    case "pilot.requested":
      return {
        about: `Pilot ${text(detail["pilot"])}`,
        what: `was requested from ${text(detail["cluster"])}/${text(detail["queue"])}`,
        state: "queued",
      };
    case "pilot.state": {
      const state = stateWord(text(detail["state"]));
      return { about: `Pilot ${text(detail["pilot"])}`, what: `is ${state}${because(detail["reason"])}`, state };
    }
    case "launch.requested":
      return {
        about: `Launch ${text(detail["launch"])}`,
        what: `was requested on ${text(detail["cluster"])}`,
        state: "queued",
      };
    case "launch.state": {
      const state = stateWord(text(detail["state"]));
      return { about: `Launch ${text(detail["launch"])}`, what: `is ${state}${because(detail["reason"])}`, state };
    }
    case "server.started":
      return { about: "The server", what: `started on ${text(detail["host"])}`, state: "done" };
    default: {
      const about = task === undefined ? (run === undefined ? event : ofRun) : `Task ${task}`;
      return { about, what: `${about === event ? "" : `${event} `}${rest(detail)}`, state: "waiting" };
    }
  }
};
