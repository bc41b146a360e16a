import { checkResults } from "../protocol/check-results.ts";
import type { Results } from "../protocol/messages.ts";
import { checkSpooled } from "./check-message.ts";
import type { LinkContext } from "./context.ts";
import { resultsKept } from "./in-passing.ts";
import type { AgentId } from "../core/ids.ts";

/** Results, in the order of their numbers: each is applied once, and acknowledged when it is on disk. */
export const applyResults = (
  { engine, links, outputs, cutShort }: LinkContext,
  agent: AgentId,
  message: Results,
): void => {
  const known = engine.state.agents.get(agent);
  if (known === undefined || message.seq <= known.seq) return;
  if (message.seq !== known.seq + 1) throw new RangeError(`results ${message.seq} after ${known.seq}`);
  const { packed, parts } = checkResults(message);
  if (cutShort.holdBack(agent, parts)) {
    const lsn = engine.commit({ type: "tasks.ended", at: engine.clock(), agent, seq: message.seq, parts: [] });
    const to = links.get(agent);
    if (to !== undefined) engine.afterDurable(() => resultsKept(to, message.seq, known.taskJob !== undefined), lsn);
    return;
  }
  const lsn = engine.commit({ type: "tasks.ended", at: engine.clock(), agent, seq: message.seq, parts }, packed);
  for (const { run, rows } of parts) {
    for (const row of rows) outputs.ended(agent, run, row);
    outputs.check(run);
  }
  const link = links.get(agent);
  if (link !== undefined && link.tails.size > 0)
    for (const { run, rows } of parts) for (const row of rows) link.tails.delete(`${run}.${row}`);
  if (link !== undefined) engine.afterDurable(() => resultsKept(link, message.seq, known.taskJob !== undefined), lsn);
};

/** Imports the results that an agent left when it ended without a server; false if nobody knows it. */
export const importSpool = (context: LinkContext, uuid: string, messages: readonly Results[]): boolean => {
  const id = context.engine.state.agentByUuid.get(uuid);
  if (id === undefined) return false;
  // check all before applying any: a spool is imported whole, or left alone
  const checked = messages.map(checkSpooled);
  for (const message of checked) checkResults(message);
  for (const message of checked) applyResults(context, id, message);
  return true;
};
