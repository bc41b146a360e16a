import type { Provider } from "../managers/provider.ts";
import type { Fleet } from "./fleet.ts";
import type { Roster } from "./roster.ts";

/** Fleets whose queues were written anew while the server runs. */

/**
 * The queue was written anew: the same fleet with other terms. What is known of it hangs on this object, so it stays; so
 * does its provider, which the whole cluster shares.
 */
const changeFleet = (fleet: Fleet, next: Fleet): void => {
  const { provider } = fleet;
  for (const key of Object.keys(fleet))
    if (!Object.hasOwn(next, key)) delete (fleet as unknown as Record<string, unknown>)[key];
  Object.assign(fleet, next, { provider });
};

/** The manager is reached in another way: the provider's holders go on with this one. */
export const changeProvider = (provider: Provider, next: Provider): void => {
  for (const key of Object.keys(provider))
    if (!Object.hasOwn(next, key)) delete (provider as unknown as Record<string, unknown>)[key];
  Object.assign(provider, next);
};

/** The fleets of one cluster become `next`, in its order; living pilots keep their terms. Gives those that are gone. */
export const changeFleets = (fleets: Fleet[], next: readonly Fleet[], roster: Pick<Roster, "keepTerms">): Fleet[] => {
  const { provider } = fleets[0]!;
  const all = next.map((fleet): Fleet => {
    const mine = fleets.find(({ queue }) => queue === fleet.queue);
    if (mine === undefined) return { ...fleet, provider };
    roster.keepTerms(mine);
    changeFleet(mine, fleet);
    return mine;
  });
  const gone = fleets.filter((fleet) => !all.includes(fleet));
  fleets.splice(0, fleets.length, ...all);
  return gone;
};
