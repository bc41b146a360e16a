/** Numbers that look random and are the same for the same seed: an estimate must not flicker, and a bench must repeat. */
export interface Random {
  /** From 0 up to, not including, 1. */
  uniform(): number;
  /** Of the normal distribution. */
  normal(): number;
}

export const createRandom = (seed: number): Random => {
  let a = seed >>> 0;
  let spare: number | undefined;
  const uniform = (): number => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  return {
    uniform,
    normal: () => {
      if (spare !== undefined) {
        const value = spare;
        spare = undefined;
        return value;
      }
      const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
      const angle = 2 * Math.PI * uniform();
      spare = radius * Math.sin(angle);
      return radius * Math.cos(angle);
    },
  };
};
