import type { AgentLink } from "./link.ts";

/**
 * What an agent need not know at once: that its results are on disk, and which runs are over. It only frees memory
 * there, so it goes along with the next message, with the answer to its heartbeat at the latest: with many agents, separate
 * messages would cost more than the tasks. One that should have asked by now and has not is told all the same. An agent that
 * leaves when it has it, draining or in the job of one task, gets it at once: its slot in the manager waits for that.
 */
export const tellInPassing = (link: AgentLink): void => {
  if (link.channel === undefined) return;
  if (link.durable > 0) link.channel.send({ t: "ack", seq: link.durable });
  link.durable = 0;
  for (const run of link.over.splice(0)) link.channel.send({ t: "forget", run });
};

export const hasNews = ({ channel, durable, over }: AgentLink): boolean =>
  channel !== undefined && (durable > 0 || over.length > 0);

/** Its results up to this message are on disk; `leaves`: it has nothing more to do. */
export const resultsKept = (link: AgentLink, seq: number, leaves: boolean): void => {
  link.durable = Math.max(link.durable, seq);
  if (leaves || link.draining) tellInPassing(link);
};
