import { hasAttempt, markStarted } from "../core/attempts.ts";
import type { AgentMessage, Progress } from "../protocol/messages.ts";
import type { LinkContext } from "./context.ts";
import { heartbeatFor } from "./heartbeat.ts";
import { tellInPassing } from "./in-passing.ts";
import type { AgentLink } from "./link.ts";
import { loseAgents } from "./losing.ts";
import { giveBackAll } from "./reconcile.ts";
import { applyResults } from "./results.ts";

/** The pause after an agent had nothing to give back. */
const ASK_AGAIN_MS = 1000;

const hearProgress = ({ engine: { state }, outputs }: LinkContext, link: AgentLink, message: Progress): void => {
  for (const { run, row, attempt, started, outAt, kept } of message.tasks) {
    if (!hasAttempt(state, link.id, run, row, attempt)) continue;
    markStarted(state, run, row, started);
    // an attempt that has written nothing yet must not be mistaken for the one before it
    if (outAt >= 0) link.tails.set(`${run}.${row}`, outAt);
    else link.tails.delete(`${run}.${row}`);
    if (kept !== undefined) outputs.progress(link.id, run, row, attempt, kept);
  }
  for (const { run, row, attempt, kept } of message.parts ?? []) outputs.progress(link.id, run, row, attempt, kept);
};

/** Says how often it should ask from now on, if that has changed. */
const answerPing = (link: AgentLink, heartbeatMs: number): void => {
  const told = link.heartbeatMs === heartbeatMs ? {} : { heartbeatMs };
  link.heartbeatMs = heartbeatMs;
  link.channel?.send({ t: "ping", ...told });
};

/** What a connected agent says. */
export const hear = (context: LinkContext, link: AgentLink, message: AgentMessage): void => {
  const { engine, links, gangs, outputs, log } = context;
  switch (message.t) {
    case "results":
      return applyResults(context, link.id, message);
    case "progress":
      return hearProgress(context, link, message);
    case "returned":
      link.asked = false;
      if (message.parts.length > 0)
        engine.commit({ type: "tasks.returned", at: engine.clock(), agent: link.id, parts: message.parts });
      // we asked before the tasks had arrived there: perhaps nothing else will happen that makes us ask again
      else setTimeout(() => engine.schedulePass(), ASK_AGAIN_MS).unref();
      return;
    case "ranks-ended":
      gangs.ended(link, message);
      outputs.ended(link.id, message.run, message.row);
      return outputs.check(message.run);
    case "leaving":
      links.leaving(link);
      log(`agent ${link.id} leaves: ${message.reason}`);
      if (message.pilotEnds === true) context.pilotEnds.told(link.id, message.reason);
      context.listeners.suspect(link.id);
      return;
    case "bye":
      // its manager says how its job ended
      if (context.cutShort.of(link.id) !== undefined) return;
      // it has nothing: what was on its way to it is placed again, not lost
      giveBackAll(engine, link.id);
      loseAgents(context, [link.id], message.reason, true);
      return;
    case "ping":
      tellInPassing(link);
      answerPing(link, heartbeatFor(links.size));
      return;
    case "hello":
      throw new RangeError("a second hello");
  }
};
