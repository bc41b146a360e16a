/** One bit for each row of a run. */
export interface Bits {
  has(row: number): boolean;
  set(row: number): void;
  /** Clears it; whether it was set. */
  take(row: number): boolean;
  clear(): void;
}

export const createBits = (count: number): Bits => {
  const words = new Uint32Array(Math.ceil(count / 32));
  const has = (row: number): boolean => (words[row >>> 5]! & (1 << (row & 31))) !== 0;
  return {
    has,
    set: (row) => {
      words[row >>> 5]! |= 1 << (row & 31);
    },
    take: (row) => {
      const was = has(row);
      words[row >>> 5]! &= ~(1 << (row & 31));
      return was;
    },
    clear: () => void words.fill(0),
  };
};
