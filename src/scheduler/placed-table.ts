import { type Shape, sameShape } from "../core/run.ts";
import type { Placed } from "./agent-load.ts";

/**
 * What one agent has, by shape. Where each task asks for memory of its own, entries come and go with every task: a chain
 * for each few hashes is cheaper than a Map then, and looking one up reads no shape but the one asked for.
 */
export class PlacedTable {
  size = 0;
  /** A power of two of them. */
  private chains = emptyChains(LEAST);

  find(shape: Shape): Placed | undefined {
    const { hash } = shape;
    let placed = this.chains[chainOf(hash, this.chains.length)];
    while (placed !== undefined && (placed.hash !== hash || !sameShape(placed.shape, shape))) placed = placed.other;
    return placed;
  }

  /** It has none of this shape yet. */
  add(placed: Placed): void {
    this.size += 1;
    if (this.size > this.chains.length) this.resize(this.chains.length * 4);
    this.link(placed);
  }

  remove(placed: Placed): void {
    const { chains } = this;
    const chain = chainOf(placed.hash, chains.length);
    let before = chains[chain];
    if (before === placed) chains[chain] = placed.other;
    else {
      while (before !== undefined && before.other !== placed) before = before.other;
      if (before === undefined) return;
      before.other = placed.other;
    }
    placed.other = undefined;
    this.size -= 1;
    if (chains.length > KEPT && this.size * 16 < chains.length) this.resize(chains.length / 4);
  }

  *[Symbol.iterator](): Generator<Placed> {
    for (const first of this.chains) for (let placed = first; placed !== undefined; placed = placed.other) yield placed;
  }

  private link(placed: Placed): void {
    const chain = chainOf(placed.hash, this.chains.length);
    placed.other = this.chains[chain];
    this.chains[chain] = placed;
  }

  private resize(length: number): void {
    const all = [...this];
    this.chains = emptyChains(length);
    for (const placed of all) this.link(placed);
  }
}

const LEAST = 16;
/** A table with this many chains is not made smaller: agents report many tasks at once and get as many again. */
const KEPT = 1024;

const emptyChains = (length: number): (Placed | undefined)[] => Array.from({ length }, () => undefined);

const chainOf = (hash: number, chains: number): number => {
  const mixed = Math.imul(hash, 0x9e3779b1);
  return (mixed ^ (mixed >>> 15)) & (chains - 1);
};
