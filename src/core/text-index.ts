/**
 * Finds texts among up to ten million by what they say, without keeping them: a table of places with open addressing, 12 to 24 bytes
 * for each. The texts stay where they are; `textAt` reads one.
 */
export interface TextIndex {
  /** The place of the text that says the same and was added before; if there is none, adds this one and returns -1. */
  add(text: string, place: number): number;
  /** The place of the text that says this, or -1. */
  find(text: string): number;
}

/** FNV-1a over UTF-16 units, with the bits spread at the end. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return (hash ^ (hash >>> 13)) >>> 0;
};

export const createTextIndex = (most: number, textAt: (place: number) => string): TextIndex => {
  let size = 16;
  while (size < most * 1.5) size *= 2;
  const mask = size - 1;
  /** Places, counted from 1; 0 is free. */
  const places = new Uint32Array(size);
  const hashes = new Uint32Array(size);

  /** Where the text is, or would be. */
  const slotOf = (text: string, hash: number): number => {
    let slot = hash & mask;
    while (places[slot] !== 0 && (hashes[slot] !== hash || textAt(places[slot]! - 1) !== text))
      slot = (slot + 1) & mask;
    return slot;
  };

  return {
    add: (text, place) => {
      const hash = hashOf(text);
      const slot = slotOf(text, hash);
      if (places[slot] !== 0) return places[slot]! - 1;
      places[slot] = place + 1;
      hashes[slot] = hash;
      return -1;
    },
    find: (text) => places[slotOf(text, hashOf(text))]! - 1,
  };
};
