/** Ids of jobs and of elements of arrays: `12`, `12_3`. */

/** Whatever a text claims; arrays of our own are far smaller. */
const MOST_ELEMENTS = 100_000;

export const elementId = (array: string, element: number): string => `${array}_${element}`;

export const isElement = (id: string): boolean => /^\d{1,10}_\d{1,9}$/.test(id);

export const isId = (text: string): boolean => /^\d{1,10}$/.test(text) || isElement(text);

/** The jobs and arrays that these belong to, each once: Slurm answers for all elements of an array at once. */
export const wholesOf = (ids: readonly string[]): string[] => [...new Set(ids.map((id) => id.split("_")[0]!))];

/** `12_[3-5,8:2%4]` as the ids it stands for; undefined when it is none of these. */
export const elementsOf = (text: string): string[] | undefined => {
  const [, array, inner] = /^(\d{1,10})_\[([^\]%]*)(?:%\d+)?\]$/.exec(text) ?? [];
  if (array === undefined) return undefined;
  const ids: string[] = [];
  for (const part of inner!.split(",")) {
    const [, low, high, step] = /^(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?$/.exec(part) ?? [];
    if (low === undefined) continue;
    const width = Math.max(1, Number(step ?? 1));
    for (let at = Number(low); at <= Number(high ?? low) && ids.length < MOST_ELEMENTS; at += width)
      ids.push(elementId(array, at));
  }
  return ids;
};
