import { SlipwayError } from "../errors.ts";
import { FRACTION, type Resources } from "../core/resources.ts";
import { DevicePool } from "./device-pool.ts";

/** What one task holds while it runs. */
export interface Slot {
  /** Core ids, a shared one (fraction of a cpu) last. Negative ids are cores that exist only in clusters.yaml. */
  readonly cpus: readonly number[];
  /** Devices with the units held on each, a shared one last. */
  readonly gpus: readonly { readonly index: string; readonly fraction: number }[];
  readonly amounts: Resources;
}

export interface SlotPoolOptions {
  readonly capacity: Resources;
  /** Cores that exist; the rest of `capacity.cpus` becomes virtual cores. */
  readonly cpus: readonly number[];
  readonly gpus: readonly string[];
}

const NO_CPUS: readonly number[] = [];
const NO_GPUS: Slot["gpus"] = [];

/** Cores to bind a task to. None when part of the slot is virtual: half a binding would only slow the task down. */
export const pinnableCpus = (slot: Slot): readonly number[] => (slot.cpus.every((id) => id >= 0) ? slot.cpus : NO_CPUS);

/**
 * The resources of one agent. The sum of what is held never exceeds the capacity; a whole cpu or gpu is held by one
 * slot alone; a fraction comes from one device. Releasing gives back exactly what was taken.
 */
export class SlotPool {
  readonly capacity: Resources;
  private readonly cores: DevicePool;
  private readonly coreIds: readonly number[];
  private readonly devices: DevicePool;
  private readonly deviceIds: readonly string[];
  private readonly free = new Map<string, number>();
  private readonly held = new Map<Slot, { readonly cores: readonly number[]; readonly devices: readonly number[] }>();

  constructor({ capacity, cpus, gpus }: SlotPoolOptions) {
    this.capacity = capacity;
    this.cores = new DevicePool(capacity["cpus"] ?? 0);
    this.coreIds = Array.from({ length: this.cores.count }, (_, at) => cpus[at] ?? cpus.length - at - 1);
    this.devices = new DevicePool(capacity["gpus"] ?? 0);
    this.deviceIds = gpus;
    if (gpus.length < this.devices.count) {
      throw new SlipwayError("internal", { detail: `${this.devices.count} gpus declared with ${gpus.length} indices` });
    }
    for (const name in capacity) if (name !== "cpus" && name !== "gpus") this.free.set(name, capacity[name]!);
  }

  /** How many slots are held now. */
  get size(): number {
    return this.held.size;
  }

  /** Amounts that nobody holds. A free sum may still be spread over several devices. */
  available(): Resources {
    const amounts: Record<string, number> = Object.fromEntries(this.free);
    if ("cpus" in this.capacity) amounts["cpus"] = this.cores.available;
    if ("gpus" in this.capacity) amounts["gpus"] = this.devices.available;
    return amounts;
  }

  /** Whether the request would fit if nothing ran. */
  couldFit(request: Resources): boolean {
    for (const name in request) {
      const amount = request[name]!;
      const capable =
        name === "cpus"
          ? this.cores.couldTake(amount)
          : name === "gpus"
            ? this.devices.couldTake(amount)
            : amount <= (this.free.has(name) ? this.capacity[name]! : 0);
      if (!capable) return false;
    }
    return true;
  }

  /** Takes all of a request or nothing. */
  allocate(request: Resources): Slot | undefined {
    let cpuUnits = 0;
    let gpuUnits = 0;
    for (const name in request) {
      const amount = request[name]!;
      if (!Number.isSafeInteger(amount) || amount < 0) {
        throw new SlipwayError("internal", { detail: `a request of ${amount} units of ${name}` });
      }
      if (name === "cpus") cpuUnits = amount;
      else if (name === "gpus") gpuUnits = amount;
      else if (amount > (this.free.get(name) ?? 0)) return undefined;
    }
    const cores = this.cores.take(cpuUnits);
    if (cores === undefined) return undefined;
    const devices = this.devices.take(gpuUnits);
    if (devices === undefined) {
      this.cores.give(cores, cpuUnits);
      return undefined;
    }
    for (const name in request) {
      const amount = request[name]!;
      if (amount > 0 && name !== "cpus" && name !== "gpus") this.free.set(name, this.free.get(name)! - amount);
    }
    const slot: Slot = {
      cpus: cores.length === 0 ? NO_CPUS : cores.map((at) => this.coreIds[at]!),
      gpus: devices.length === 0 ? NO_GPUS : this.nameDevices(devices, gpuUnits),
      amounts: request,
    };
    this.held.set(slot, { cores, devices });
    return slot;
  }

  /** Releasing a slot twice changes nothing. */
  release(slot: Slot): void {
    const places = this.held.get(slot);
    if (places === undefined) return;
    this.held.delete(slot);
    const { amounts } = slot;
    this.cores.give(places.cores, amounts["cpus"] ?? 0);
    this.devices.give(places.devices, amounts["gpus"] ?? 0);
    for (const name in amounts) {
      const amount = amounts[name]!;
      if (amount > 0 && name !== "cpus" && name !== "gpus") this.free.set(name, this.free.get(name)! + amount);
    }
  }

  private nameDevices(devices: readonly number[], units: number): Slot["gpus"] {
    const whole = Math.floor(units / FRACTION);
    return devices.map((at, nth) => ({
      index: this.deviceIds[at]!,
      fraction: nth < whole ? FRACTION : units % FRACTION,
    }));
  }
}
