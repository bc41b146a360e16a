/** How fast a count grows, over the last seconds: recent enough to follow a change, long enough to be calm. */
export const createRateMeter = (windowMs = 10_000) => {
  const samples: { readonly at: number; readonly count: number }[] = [];
  /** Per second; undefined while nobody can tell. A count that falls is of another server: it begins again. */
  return (at: number, count: number): number | undefined => {
    if (samples.length > 0 && count < samples.at(-1)!.count) samples.length = 0;
    if (samples.length === 0 || at > samples.at(-1)!.at) samples.push({ at, count });
    while (samples.length > 2 && at - samples[1]!.at > windowMs) samples.shift();
    const first = samples[0]!;
    const last = samples.at(-1)!;
    return last.at - first.at < 900 ? undefined : ((last.count - first.count) * 1000) / (last.at - first.at);
  };
};
