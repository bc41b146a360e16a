import type { CommandOptions } from "./commands.ts";

/** In whose name jobs were submitted, where not in our own: a manager lets only their owners delete them. */
export interface JobOwners {
  readonly me: string;
  /** Whoever else is named here. */
  readonly others: readonly string[];
  /** An empty name is that of nobody known. */
  note(id: string, owner: string | undefined): void;
  forget(id: string): void;
  /** These jobs by their owners, each with what runs a command in that name. */
  grouped(ids: Iterable<string>): readonly { readonly as: CommandOptions; readonly ids: readonly string[] }[];
  /** What runs a command in the name of this user, who may be us. */
  as(user: string | undefined): CommandOptions;
}

export const createJobOwners = (me: string): JobOwners => {
  const owners = new Map<string, string>();
  const as = (user: string | undefined): CommandOptions => (user === undefined || user === me ? {} : { user });
  return {
    me,
    get others() {
      return [...new Set(owners.values())];
    },
    note: (id, owner) => {
      if (owner !== undefined && owner !== me && owner !== "") owners.set(id, owner);
    },
    forget: (id) => {
      owners.delete(id);
    },
    grouped: (ids) => {
      const byOwner = new Map<string | undefined, string[]>();
      for (const id of ids) {
        const owner = owners.get(id);
        byOwner.set(owner, [...(byOwner.get(owner) ?? []), id]);
      }
      return [...byOwner].map(([owner, ids]) => ({ as: as(owner), ids }));
    },
    as,
  };
};
