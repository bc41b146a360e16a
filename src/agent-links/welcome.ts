import type { Channel } from "../protocol/frames.ts";
import type { Hello, ServerMessage } from "../protocol/messages.ts";
import { PROTOCOL_VERSION } from "../protocol/version.ts";
import type { LinkContext } from "./context.ts";
import { heartbeatFor } from "./heartbeat.ts";
import type { AgentLink } from "./link.ts";
import { reconcile } from "./reconcile.ts";

/** An agent joins, or comes back. */

/** Its link: the one it had, or a new one. An agent that was given up joins as a new one: its tasks were superseded. */
const linkFor = ({ engine, links }: LinkContext, hello: Hello): AgentLink => {
  const { state } = engine;
  let id = state.agentByUuid.get(hello.uuid);
  const known = id === undefined ? undefined : state.agents.get(id);
  if (id === undefined || known === undefined || known.ended > 0) {
    id = state.nextAgent;
    engine.commit({
      type: "agent.joined",
      at: engine.clock(),
      agent: id,
      uuid: hello.uuid,
      pilot: hello.pilot,
      ...(hello.cluster === undefined ? {} : { cluster: hello.cluster }),
      ...(hello.queue === undefined ? {} : { queue: hello.queue }),
      ...(hello.taskJob === undefined ? {} : { taskJob: hello.taskJob }),
      host: hello.host,
      version: hello.slipway,
      resources: hello.resources,
      output: hello.output,
      seq: hello.seq,
    });
  }
  return links.get(id) ?? links.add(state.agents.get(id)!);
};

export const welcome = (
  context: LinkContext,
  hello: Hello,
  channel: Channel<ServerMessage>,
  previous: boolean,
): AgentLink => {
  const { engine, links, gangs } = context;
  const { state, scheduler } = engine;
  const link = linkFor(context, hello);
  const { id } = link;
  const endsAt = hello.endsInMs === undefined ? Infinity : engine.clock() + hello.endsInMs;
  links.connect(link, channel, endsAt, hello);
  const { drop, stop, missing } = reconcile(engine, id, hello.held);
  engine.afterDurable(() => {
    // it left again before this was on disk: its next connection gets its own welcome
    if (link.channel !== channel) return;
    channel.send({
      t: "welcome",
      agent: id,
      epoch: state.epoch,
      acked: state.agents.get(id)!.seq,
      drop,
      heartbeatMs: (link.heartbeatMs = heartbeatFor(links.size)),
      now: engine.clock(),
    });
    if (stop.length > 0) channel.send({ t: "stop", tasks: stop });
    gangs.welcome(link, hello.parts);
    if (missing.length > 0) engine.listeners.assigned(id, missing, []);
    const pilotEnds = context.pilotEnds.reasonFor(id);
    if (pilotEnds !== undefined) links.drain(id, true, pilotEnds);
    else if (previous)
      links.drain(id, false, `protocol version ${hello.version} is the one before ${PROTOCOL_VERSION}`);
    if (!link.draining) scheduler.pause(id, false);
    context.listeners.joined(id, hello.pilot);
    engine.schedulePass();
  });
  return link;
};
