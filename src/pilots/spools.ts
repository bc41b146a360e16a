import { listSpools, pruneSpools, readSpool, removeSpool } from "../protocol/spool.ts";
import type { Agents } from "../agent-links/agents.ts";
import type { Engine } from "../server/engine.ts";

/** Results that agents left behind when they ended without a server (rule 4). */
export interface Spools {
  /** Imports all of them; one import at a time, whoever asks. */
  importAll(): Promise<void>;
  /** Removes half-written files of agents that are surely gone. */
  prune(): Promise<void>;
}

export interface SpoolsOptions {
  readonly home: string;
  readonly engine: Engine;
  readonly agents: Agents;
  readonly log: (text: string) => void;
}

export const createSpools = ({ home, engine, agents, log }: SpoolsOptions): Spools => {
  const { state } = engine;
  let last: Promise<void> = Promise.resolve();

  const importNow = async (): Promise<void> => {
    for (const path of await listSpools(home)) {
      try {
        const spool = await readSpool(path);
        if (!agents.importSpool(spool.uuid, spool.messages)) continue;
        await engine.whenDurable();
        await removeSpool(path);
        log(`results from ${path} were imported`);
      } catch (error) {
        log(`${path} was not imported: ${(error as Error).message}`);
      }
    }
  };

  return {
    importAll: () => {
      last = last.then(importNow, importNow);
      return last;
    },
    prune: () =>
      pruneSpools(home, (uuid) => {
        const agent = state.agents.get(state.agentByUuid.get(uuid) ?? 0);
        return agent !== undefined && agent.ended > 0;
      }).catch((error: unknown) => log(`a half-written spool was not removed: ${(error as Error).message}`)),
  };
};
