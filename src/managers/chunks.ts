export interface MostAtOnce {
  readonly ids?: number;
  /** Of all ids of a chunk together, with a separator after each. */
  readonly characters?: number;
}

/** Ids of jobs in as many parts as a command can take at once. */
export const chunksOf = (
  ids: readonly string[],
  { ids: mostIds = Infinity, characters = Infinity }: MostAtOnce,
): string[][] => {
  const chunks: string[][] = [];
  let chunk: string[] | undefined;
  let length = 0;
  for (const id of ids) {
    if (chunk === undefined || chunk.length >= mostIds || length + id.length + 1 > characters) {
      chunk = [];
      chunks.push(chunk);
      length = 0;
    }
    chunk.push(id);
    length += id.length + 1;
  }
  return chunks;
};
