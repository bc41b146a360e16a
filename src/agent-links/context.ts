import type { Agent } from "../core/state.ts";
import type { Engine } from "../server/engine.ts";
import type { Gangs } from "./gangs.ts";
import type { Links } from "./link.ts";
import type { OutputLimiter } from "./output-limits.ts";
import type { PilotEnds } from "./pilot-ends.ts";

/** What the server gives, and wants to hear. */
export interface AgentsOptions {
  readonly engine: Engine;
  readonly token: string;
  /** Bytes of output that are kept. */
  readonly limits: { readonly outputPerTask: number; readonly outputPerRun: number };
  readonly clusterOf: (agent: Agent) => { cluster: string; queue: string; endsAt: number };
  readonly onJoin: (agent: number, pilot: number) => void;
  readonly onSuspect: (agent: number) => void;
  readonly onGone: (agent: number) => void;
  readonly log: (text: string, facts?: object) => void;
}

/** What all that happens on a link works with. */
export interface LinkContext extends AgentsOptions {
  readonly links: Links;
  readonly gangs: Gangs;
  readonly outputs: OutputLimiter;
  readonly pilotEnds: PilotEnds;
}
