/** Work that waits only for other work of the same user. */
export type Turns = <T>(user: string, work: () => Promise<T>) => Promise<T>;

/** At most this many at a time for each user. */
export const createTurns = (most: number): Turns => {
  const users = new Map<string, { busy: number; readonly waiting: (() => void)[] }>();
  return async (user, work) => {
    const line = users.get(user) ?? { busy: 0, waiting: [] };
    users.set(user, line);
    if (line.busy < most) line.busy += 1;
    else await new Promise<void>((resolve) => line.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = line.waiting.shift();
      // the next one takes this one's place
      if (next !== undefined) next();
      else line.busy -= 1;
      if (line.busy === 0) users.delete(user);
    }
  };
};
