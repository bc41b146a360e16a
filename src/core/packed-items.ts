/**
 * A compact list of up to ten million texts: about their bytes plus four each. Texts live in blocks of 4096, each one
 * buffer and one table of offsets; a block is also the unit of the journal.
 */
const BITS = 12;
const PER_BLOCK = 1 << BITS;
const MASK = PER_BLOCK - 1;
const FIRST_BYTES = 16_384;
/** Bounds the memory a hostile list can take. */
export const MAX_PACKED_BYTES = 2 ** 32 - 1;

interface Block {
  bytes: Buffer;
  /** Where each text ends; a text starts where the one before ends. */
  ends: Uint32Array;
}

const damaged = (): RangeError => new RangeError("a block of items is damaged");

export class PackedItems {
  /** Whether each text is JSON, so that `{item.key}` can look inside. */
  readonly json: boolean;
  #blocks: Block[] = [];
  #length = 0;
  #bytes = 0;

  constructor(json = false) {
    this.json = json;
  }

  get length(): number {
    return this.#length;
  }

  /** Bytes of the texts alone. */
  get bytes(): number {
    return this.#bytes;
  }

  get blockCount(): number {
    return this.#blocks.length;
  }

  /** Appends a text. Throws a RangeError when the list would grow beyond 4 GiB. */
  add(text: string): void {
    // UTF-8 needs at most three bytes per UTF-16 unit: measured exactly only when that might not fit.
    const { block, start } = this.#room(text.length * 3 <= FIRST_BYTES ? text.length * 3 : Buffer.byteLength(text));
    this.#append(block, start + block.bytes.write(text, start));
  }

  /** The text at a position; a RangeError outside the list. */
  get(index: number): string {
    if (!(index >= 0 && index < this.#length) || !Number.isInteger(index)) {
      throw new RangeError(`no item ${index} in a list of ${this.#length}`);
    }
    const block = this.#blocks[index >>> BITS]!;
    const at = index & MASK;
    return block.bytes.toString("utf8", at === 0 ? 0 : block.ends[at - 1]!, block.ends[at]!);
  }

  *[Symbol.iterator](): Generator<string> {
    for (let i = 0; i < this.#length; i++) yield this.get(i);
  }

  /** One block as bytes: count, ends, texts; little-endian. Only the last block ever changes. */
  encodeBlock(number: number): Buffer {
    const block = this.#blocks[number];
    if (block === undefined) throw new RangeError(`no block ${number} in a list of ${this.#blocks.length}`);
    const count = Math.min(PER_BLOCK, this.#length - number * PER_BLOCK);
    const used = block.ends[count - 1]!;
    const out = Buffer.allocUnsafeSlow(4 + 4 * count + used);
    out.writeUInt32LE(count, 0);
    for (let i = 0; i < count; i++) out.writeUInt32LE(block.ends[i]!, 4 + 4 * i);
    block.bytes.copy(out, 4 + 4 * count, 0, used);
    return out;
  }

  /** Appends a block that encodeBlock made. The blocks before it must be full; a RangeError for damaged bytes. */
  addBlock(encoded: Uint8Array): void {
    const view = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength);
    const count = view.length < 4 ? 0 : view.readUInt32LE(0);
    if (count < 1 || count > PER_BLOCK || view.length < 4 + 4 * count || (this.#length & MASK) !== 0) throw damaged();
    const ends = new Uint32Array(PER_BLOCK);
    let last = 0;
    for (let i = 0; i < count; i++) {
      const end = view.readUInt32LE(4 + 4 * i);
      if (end < last) throw damaged();
      ends[i] = last = end;
    }
    if (view.length !== 4 + 4 * count + last) throw damaged();
    if (this.#bytes + last > MAX_PACKED_BYTES) throw new RangeError("the items of a run can take at most 4 GiB");
    const bytes = Buffer.allocUnsafeSlow(last);
    view.copy(bytes, 0, 4 + 4 * count);
    this.#blocks.push({ bytes, ends });
    this.#length += count;
    this.#bytes += last;
  }

  /** All blocks in order. */
  *serialise(): Generator<Buffer> {
    for (let i = 0; i < this.#blocks.length; i++) yield this.encodeBlock(i);
  }

  static deserialise(blocks: Iterable<Uint8Array>, json = false): PackedItems {
    const items = new PackedItems(json);
    for (const block of blocks) items.addBlock(block);
    return items;
  }

  /** The last block with room for `needed` more bytes, and where its next text starts. */
  #room(needed: number): { block: Block; start: number } {
    const at = this.#length & MASK;
    if (at === 0) {
      this.#trim();
      this.#blocks.push({ bytes: Buffer.allocUnsafeSlow(FIRST_BYTES), ends: new Uint32Array(PER_BLOCK) });
    }
    const block = this.#blocks.at(-1)!;
    const start = at === 0 ? 0 : block.ends[at - 1]!;
    if (this.#bytes + needed > MAX_PACKED_BYTES) throw new RangeError("the items of a run can take at most 4 GiB");
    if (start + needed > block.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(block.bytes.length * 2, start + needed));
      block.bytes.copy(grown, 0, 0, start);
      block.bytes = grown;
    }
    return { block, start };
  }

  #append(block: Block, end: number): void {
    const at = this.#length & MASK;
    this.#bytes += end - (at === 0 ? 0 : block.ends[at - 1]!);
    block.ends[at] = end;
    this.#length++;
  }

  /** Gives back what the full last block does not use. */
  #trim(): void {
    const block = this.#blocks.at(-1);
    if (block === undefined) return;
    const used = block.ends[MASK]!;
    if (block.bytes.length === used) return;
    const exact = Buffer.allocUnsafeSlow(used);
    block.bytes.copy(exact, 0, 0, used);
    block.bytes = exact;
  }
}
