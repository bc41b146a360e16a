import type { Provider } from "../managers/provider.ts";
import type { Adoption } from "./adoption.ts";
import type { Companion } from "./companion.ts";
import type { KeeperContext } from "./context.ts";
import type { Fleet } from "./fleet.ts";
import type { PilotEnds } from "./pilot-ends.ts";

/** Asks one manager about all pilots and tasks' jobs of its cluster, once a period, and knows whether it answers. */
export interface ManagerWatch {
  /** Whether the manager answers: nothing is submitted while it does not. */
  hear(): Promise<boolean>;
  /** Why it does not answer, or null. */
  readonly problem: string | null;
}

export interface ManagerWatchOptions {
  readonly cluster: string;
  readonly fleets: readonly Fleet[];
  readonly provider: Provider;
  readonly periodMs: () => number;
  readonly adoption: Adoption;
  readonly ends: PilotEnds;
  readonly companion?: Companion | undefined;
}

export const createManagerWatch = (
  { roster, log, onHeard }: Pick<KeeperContext, "roster" | "log" | "onHeard">,
  { cluster, fleets, provider, periodMs, adoption, ends, companion }: ManagerWatchOptions,
): ManagerWatch => {
  const prompt = fleets.every((fleet) => fleet.prompt === true);
  let problem: string | null = null;
  let polledAt = -Infinity;

  /** Whether the manager was asked anything. */
  const poll = async (): Promise<boolean> => {
    const askedAt = performance.now();
    polledAt = askedAt;
    await adoption.catchUp();
    await companion?.catchUp();
    const live = fleets.flatMap((fleet) => roster.live(fleet).map((pilot) => ({ fleet, pilot })));
    const own = live.map(({ pilot }) => pilot.nativeId).filter((id) => id !== "");
    const ids = [...own, ...(companion?.ids() ?? [])];
    if (ids.length === 0) return false;
    const answers = await provider.poll(ids);
    for (const { fleet, pilot } of live) {
      const answer = answers.get(pilot.nativeId);
      if (answer !== undefined) await ends.heard(fleet, pilot, answer, askedAt);
    }
    await companion?.heard(answers, askedAt);
    return true;
  };

  return {
    get problem() {
      return problem;
    },
    hear: async () => {
      // a look between two periods does not ask
      if (!prompt && performance.now() - polledAt < periodMs() * 0.9) return problem === null;
      try {
        if (await poll()) onHeard(cluster, null);
        problem = null;
      } catch (error) {
        const { message } = error as Error;
        if (problem !== message) log(`${cluster}: ${message}`);
        problem = message;
        onHeard(cluster, message);
      }
      companion?.told(problem);
      return problem === null;
    },
  };
};
