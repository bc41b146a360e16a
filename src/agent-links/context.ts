import type { Agent } from "../core/state.ts";
import type { Engine } from "../server/engine.ts";
import type { CutShort } from "./cut-short.ts";
import type { Gangs } from "./gangs.ts";
import type { Links } from "./link.ts";
import type { OutputLimiter } from "./output-limits.ts";
import type { PilotEnds } from "./pilot-ends.ts";
import type { AgentId, PilotId } from "../core/ids.ts";

/** What the server provides. */
export interface AgentsOptions {
  readonly engine: Engine;
  readonly token: string;
  /** How many bytes of output are kept. */
  readonly limits: { readonly outputPerTask: number; readonly outputPerRun: number };
  readonly clusterOf: (agent: Agent) => { cluster: string; queue: string; endsAt: number };
  readonly log: (text: string, facts?: object) => void;
}

/** What the server wants to know; each is set once. */
export interface AgentsListeners {
  joined: (agent: AgentId, pilot: PilotId) => void;
  /** It leaves, or its connection is gone. */
  suspect: (agent: AgentId) => void;
  gone: (agent: AgentId) => void;
}

/** What every action on a link works with. */
export interface LinkContext extends AgentsOptions {
  readonly links: Links;
  readonly gangs: Gangs;
  readonly outputs: OutputLimiter;
  readonly pilotEnds: PilotEnds;
  readonly cutShort: CutShort;
  readonly listeners: AgentsListeners;
}
