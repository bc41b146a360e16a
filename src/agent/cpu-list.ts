/** A list with more ids than this is damaged or hostile. */
const MOST_CPUS = 65_536;

/** Reads the kernel's list format (`0-3,8,10-11`), sorted and without repeats. Parts that make no sense are skipped. */
export const parseCpuList = (text: string): number[] => {
  const ids = new Set<number>();
  for (const part of text.trim().split(",")) {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part.trim());
    if (match === null) continue;
    const from = Number(match[1]);
    const to = Number(match[2] ?? match[1]);
    for (let id = from; id <= to && ids.size < MOST_CPUS; id++) ids.add(id);
  }
  return [...ids].toSorted((a, b) => a - b);
};
