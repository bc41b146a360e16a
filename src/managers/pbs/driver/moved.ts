import { SlipwayError } from "../../../errors.ts";
import { CommandError } from "../../commands.ts";
import { sequenceOf } from "./ask.ts";
import type { Attributes, Records } from "./parse.ts";

/**
 * Jobs that PBS has moved to another server. Here their state is M for good; there they live on under the same id, and
 * are asked about and deleted as `12.head@other`.
 */
export interface MovedJobs {
  /** Replaces what this server says with what their new servers say; one that does not answer leaves them unknown. */
  follow(ids: readonly string[], found: ReadonlyMap<string, Attributes>): Promise<ReadonlyMap<string, Attributes>>;
  /** Where it is, as qdel needs it; undefined: it was not seen to have moved. */
  addressOf(id: string): string | undefined;
}

/** The queue of one that was moved is `queue@server`. */
const serverOf = (attributes: Attributes | undefined): string | undefined =>
  attributes?.get("job_state") === "M" ? /@([\w.-]+)$/.exec(attributes.get("queue") ?? "")?.[1] : undefined;

export const createMovedJobs = (living: (ids: readonly string[]) => Promise<Records>): MovedJobs => {
  const addresses = new Map<string, string>();
  return {
    follow: async (ids, found) => {
      const byServer = new Map<string, string[]>();
      for (const id of ids) {
        const server = serverOf(found.get(sequenceOf(id)));
        if (server === undefined) continue;
        addresses.set(sequenceOf(id), `${id}@${server}`);
        byServer.set(server, [...(byServer.get(server) ?? []), id]);
      }
      if (byServer.size === 0) return found;
      const followed = new Map(found);
      for (const [server, moved] of byServer)
        try {
          const there = await living(moved.map((id) => `${id}@${server}`));
          for (const id of moved) followed.delete(sequenceOf(id));
          for (const [id, attributes] of there) followed.set(sequenceOf(id), attributes);
        } catch (error) {
          if (!(error instanceof SlipwayError) && !(error instanceof CommandError)) throw error;
        }
      return followed;
    },
    addressOf: (id) => addresses.get(sequenceOf(id)),
  };
};
