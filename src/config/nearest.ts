/** Edits between two words: insertions, deletions, substitutions and swapped neighbours. Gives up beyond `limit`. */
export const distance = (a: string, b: string, limit: number): number => {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let best = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let value = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) value = Math.min(value, before[j - 2]! + 1);
      row.push(value);
      if (value < best) best = value;
    }
    if (best > limit) return limit + 1;
    before = last;
    last = row;
  }
  return Math.min(last[b.length]!, limit + 1);
};

const LONGEST = 100;

/** The known word a user most likely meant: at most two edits or a third of the length away, letter case aside. */
export const nearest = (word: string, known: Iterable<string>): string | undefined => {
  if (word.length > LONGEST) return undefined;
  const lower = word.toLowerCase();
  let found: string | undefined;
  // A word of three letters is not "near" another that shares one of them.
  let limit = Math.min(Math.max(2, Math.floor(word.length / 3)), Math.max(1, word.length - 2));
  for (const candidate of known) {
    const edits = distance(lower, candidate.toLowerCase(), limit);
    if (edits > limit) continue;
    found = candidate;
    if (edits === 0) return found;
    limit = edits - 1;
  }
  return found;
};

/** `; did you mean 'x'?`, or nothing. */
export const suggest = (word: string, known: Iterable<string>): string => {
  const found = nearest(word, known);
  return found === undefined ? "" : `; did you mean '${found}'?`;
};
