/**
 * What one stream of a rank has written and the server does not have yet, oldest first. Bytes are kept while there is
 * room; a run of bytes without room becomes a gap, and in its place the server gets a line that says how long it was.
 */
export interface Unsent {
  readonly isEmpty: boolean;
  push(chunk: Buffer): void;
  /** The next piece to send. It stays here until `answered` says that the server took it. */
  next(): Piece;
  /** The server has `size` bytes of the stream, after it was sent `piece`; returns whether it took some of it. */
  answered(piece: Piece, size: number): boolean;
  clear(): void;
}

export interface Piece {
  /** Where in the stream it begins. */
  readonly offset: number;
  readonly body: Buffer;
}

export interface UnsentLimits {
  readonly held: number;
  readonly atOnce: number;
}

interface Gap {
  missing: number;
}

/** Pieces up to this length are joined: a program that writes byte by byte must not cost a hundred bytes for each. */
const SMALL = 4096;

const isGap = (part: Buffer | Gap | undefined): part is Gap => part !== undefined && !Buffer.isBuffer(part);

export const createUnsent = (limits: UnsentLimits): Unsent => {
  let parts: (Buffer | Gap)[] = [];
  let held = 0;
  /** Bytes of the stream that the server has. */
  let had = 0;

  /** A gap at the front is next: replaces it with the line that reports it. */
  const tellGap = (): void => {
    const [first] = parts;
    if (!isGap(first)) return;
    parts[0] = Buffer.from(`\n[${first.missing} bytes are in the job's own output file only]\n`);
    held += parts[0].length;
  };

  const drop = (bytes: number): void => {
    held -= bytes;
    let left = bytes;
    let whole = 0;
    for (const part of parts) {
      if (isGap(part) || part.length > left) break;
      left -= part.length;
      whole += 1;
    }
    parts.splice(0, whole);
    if (left > 0) parts[0] = (parts[0] as Buffer).subarray(left);
  };

  return {
    get isEmpty() {
      return parts.length === 0;
    },
    push: (chunk) => {
      if (chunk.length === 0) return;
      const last = parts.at(-1);
      if (isGap(last)) last.missing += chunk.length;
      else if (held + chunk.length > limits.held) parts.push({ missing: chunk.length });
      else {
        if (last !== undefined && last.length + chunk.length <= SMALL)
          parts[parts.length - 1] = Buffer.concat([last, chunk]);
        else parts.push(chunk);
        held += chunk.length;
      }
    },
    next: () => {
      tellGap();
      const gathered: Buffer[] = [];
      let room = limits.atOnce;
      for (const part of parts) {
        if (isGap(part) || room === 0) break;
        gathered.push(part.subarray(0, room));
        room -= gathered.at(-1)!.length;
      }
      return { offset: had, body: Buffer.concat(gathered) };
    },
    answered: ({ body }, size) => {
      const taken = Math.min(Math.max(0, size - had), body.length);
      // it once had more, which we no longer have: the server lost the last moments on its disk
      if (size < had) parts.unshift({ missing: had - size });
      drop(taken);
      had = size;
      return taken > 0;
    },
    clear: () => {
      parts = [];
      held = 0;
    },
  };
};
