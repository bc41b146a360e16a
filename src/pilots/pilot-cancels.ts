import type { Provider } from "../managers/provider.ts";

/** Cancels jobs: all with one command, and each again only after a while, however often that is requested. */
export interface PilotCancels {
  cancel(jobs: readonly { readonly nativeId: string }[]): Promise<void>;
}

const AGAIN_MS = 15_000;

export const createPilotCancels = (provider: Provider): PilotCancels => {
  const asked = new Map<string, number>();
  return {
    cancel: async (jobs) => {
      const now = performance.now();
      for (const [id, at] of asked) if (now - at > AGAIN_MS) asked.delete(id);
      const ids = jobs.map(({ nativeId }) => nativeId).filter((id) => id !== "" && !asked.has(id));
      if (ids.length === 0) return;
      for (const id of ids) asked.set(id, now);
      await provider.cancel(ids);
    },
  };
};
