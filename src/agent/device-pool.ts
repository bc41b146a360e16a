import { FRACTION } from "../core/resources.ts";

const NOTHING: readonly number[] = [];

/**
 * Devices (cores or gpus) that are taken whole by one holder or shared in fractions. Every device is either idle
 * (wholly free: its bit is set), shared with room (in `shared`), or full. A fractional capacity ends in one device that
 * holds the remainder and can only be shared.
 *
 * Whole devices are taken from the lowest number up, so that several tend to be neighbours; a fraction goes to the
 * fullest device that still has room, so that whole devices stay whole.
 */
export class DevicePool {
  readonly count: number;
  available: number;
  private readonly capacity: number;
  private readonly room: Int32Array;
  private readonly idle: Uint32Array;
  private idleCount: number;
  /** No word below this one has a bit set. */
  private firstWord = 0;
  private readonly shared: number[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
    this.available = capacity;
    this.count = Math.ceil(capacity / FRACTION);
    this.idleCount = Math.floor(capacity / FRACTION);
    this.room = new Int32Array(this.count).fill(FRACTION);
    this.idle = new Uint32Array(Math.ceil(this.count / 32));
    for (let at = 0; at < this.idleCount; at++) this.idle[at >>> 5]! |= 1 << (at & 31);
    if (this.count > this.idleCount) {
      this.room[this.idleCount] = capacity % FRACTION;
      this.shared.push(this.idleCount);
    }
  }

  /** Whether an empty pool could give this much. */
  couldTake(units: number): boolean {
    if (units > this.capacity) return false;
    const rest = units % FRACTION;
    return rest === 0 || rest <= this.capacity % FRACTION || Math.ceil(units / FRACTION) * FRACTION <= this.capacity;
  }

  /** Device numbers, whole ones first and a shared one last; undefined, and nothing taken, when there is no room. */
  take(units: number): readonly number[] | undefined {
    if (units === 0) return NOTHING;
    if (units > this.available) return undefined;
    const rest = units % FRACTION;
    const whole = (units - rest) / FRACTION;
    const place = rest === 0 ? -1 : this.bestShared(rest);
    if (this.idleCount < whole + (rest > 0 && place < 0 ? 1 : 0)) return undefined;
    this.available -= units;
    const devices: number[] = [];
    for (let nth = 0; nth < whole; nth++) devices.push(this.takeIdle());
    if (rest > 0) devices.push(this.takeShared(place, rest));
    return devices;
  }

  give(devices: readonly number[], units: number): void {
    if (units === 0) return;
    this.available += units;
    const rest = units % FRACTION;
    const whole = (units - rest) / FRACTION;
    for (let nth = 0; nth < whole; nth++) this.setIdle(devices[nth]!);
    if (rest === 0) return;
    const device = devices[whole]!;
    const room = this.room[device]!;
    this.room[device] = room + rest;
    if (room + rest === FRACTION) {
      if (room > 0) this.removeShared(this.shared.indexOf(device));
      this.setIdle(device);
    } else if (room === 0) this.shared.push(device);
  }

  /** The place in `shared` of the device with the least sufficient room, or -1. */
  private bestShared(rest: number): number {
    let best = -1;
    let bestRoom = FRACTION + 1;
    for (let place = 0; place < this.shared.length; place++) {
      const room = this.room[this.shared[place]!]!;
      if (room >= rest && room < bestRoom) {
        best = place;
        bestRoom = room;
        if (room === rest) break;
      }
    }
    return best;
  }

  private takeShared(place: number, rest: number): number {
    const device = place < 0 ? this.takeIdle() : this.shared[place]!;
    this.room[device]! -= rest;
    if (place < 0) this.shared.push(device);
    else if (this.room[device] === 0) this.removeShared(place);
    return device;
  }

  private removeShared(place: number): void {
    const last = this.shared.pop()!;
    if (place < this.shared.length) this.shared[place] = last;
  }

  private takeIdle(): number {
    while (this.idle[this.firstWord] === 0) this.firstWord++;
    const word = this.idle[this.firstWord]!;
    const bit = 31 - Math.clz32(word & -word);
    this.idle[this.firstWord] = word & ~(1 << bit);
    this.idleCount--;
    return this.firstWord * 32 + bit;
  }

  private setIdle(device: number): void {
    const at = device >>> 5;
    this.idle[at]! |= 1 << (device & 31);
    this.idleCount++;
    if (at < this.firstWord) this.firstWord = at;
  }
}
