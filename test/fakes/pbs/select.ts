import type { NodeConfig } from "./config.ts";

/** Chunks, where they go, and what is left of the nodes. Pure. */

export interface Chunk {
  readonly ncpus: number;
  readonly ngpus: number;
  readonly memKb: number;
  readonly mpiprocs: number;
  readonly host?: string;
  /** Resources that a node must have with this value. */
  readonly needs: Readonly<Record<string, string>>;
  /** As it is printed: `ncpus=2:ngpus=1:mem=102400kb`. */
  readonly text: string;
}

const UNITS: Readonly<Record<string, number>> = { "": 1 / 1024, k: 1, m: 1024, g: 1024 ** 2, t: 1024 ** 3 };

export const toKb = (size: string): number => {
  const [, number = "0", unit = "", kind = ""] = /^(\d+)([kmgt]?)([bw]?)$/i.exec(size) ?? [];
  return Math.ceil(Number(number) * (UNITS[unit.toLowerCase()] ?? 1) * (kind.toLowerCase() === "w" ? 8 : 1));
};

export const toSeconds = (time: string): number => time.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);

/** `2:ncpus=2:ngpus=1+1:ncpus=4` as one chunk per unit, in order; each pair is checked first. */
export const readSelect = (select: string, check: (name: string, value: string) => void): Chunk[] =>
  select.split("+").flatMap((part) => {
    const words = part.split(":");
    const count = /^\d+$/.test(words[0]!) ? Number(words.shift()) : 1;
    const pairs = new Map(words.map((word) => word.split("=") as [string, string]));
    for (const [name, value] of pairs) check(name, value ?? "");
    if (!pairs.has("ncpus")) pairs.set("ncpus", "1");
    const { ncpus, ngpus, mem, mpiprocs, host, vnode, ompthreads, vmem, ...needs } = Object.fromEntries(pairs);
    void [ompthreads, vmem];
    const where = host ?? vnode;
    const chunk: Chunk = {
      ncpus: Number(ncpus),
      ngpus: Number(ngpus ?? 0),
      memKb: mem === undefined ? 0 : toKb(mem),
      mpiprocs: Number(mpiprocs ?? 1),
      ...(where === undefined ? {} : { host: where }),
      needs,
      text: [
        `ncpus=${ncpus}`,
        ...(ngpus === undefined ? [] : [`ngpus=${ngpus}`]),
        ...(mem === undefined ? [] : [`mem=${toKb(mem)}kb`]),
      ].join(":"),
    };
    return Array.from({ length: count }, () => chunk);
  });

export interface Usage {
  ncpus: number;
  ngpus: number;
  memKb: number;
  /** Jobs with chunks here; one that wants the node to itself counts for all. */
  jobs: number;
  exclusive: boolean;
  /** Slot numbers of exec_host in use. */
  readonly slots: Set<number>;
}

export const newUsage = (): Usage => ({
  ncpus: 0,
  ngpus: 0,
  memKb: 0,
  jobs: 0,
  exclusive: false,
  slots: new Set(),
});

/** A node as the scheduler sees it. */
export interface Place {
  readonly node: NodeConfig;
  readonly usage: Usage;
  readonly isUp: boolean;
}

const suits = (chunk: Chunk, node: NodeConfig): boolean =>
  (chunk.host === undefined || chunk.host === node.name) &&
  Object.entries(chunk.needs).every(([name, value]) => node.custom[name] === value);

type Left = Pick<Usage, "ncpus" | "ngpus" | "memKb">;

const leftOf = ({ node, usage }: Place): Left => ({
  ncpus: node.ncpus - usage.ncpus,
  ngpus: node.ngpus - usage.ngpus,
  memKb: node.memKb - usage.memKb,
});

const holds = (left: Left, chunk: Chunk): boolean =>
  left.ncpus >= chunk.ncpus && left.ngpus >= chunk.ngpus && left.memKb >= chunk.memKb;

const take = (left: Left, chunk: Chunk): void => {
  left.ncpus -= chunk.ncpus;
  left.ngpus -= chunk.ngpus;
  left.memKb -= chunk.memKb;
};

/** A node for each chunk, in order; undefined if they do not fit. */
export const place = (chunks: readonly Chunk[], how: string, places: readonly Place[]): Place[] | undefined => {
  const words = how.split(":");
  const isExclusive = words.includes("excl") || words.includes("exclhost");
  const usable = places.filter(({ usage, isUp }) => isUp && !usage.exclusive && !(isExclusive && usage.jobs > 0));
  const left = new Map(usable.map((one) => [one, leftOf(one)]));
  const fits = (one: Place, chunk: Chunk): boolean => suits(chunk, one.node) && holds(left.get(one)!, chunk);

  if (words.includes("pack")) {
    const host = usable.find((one) => {
      const rest = { ...left.get(one)! };
      return chunks.every((chunk) => {
        if (!suits(chunk, one.node) || !holds(rest, chunk)) return false;
        take(rest, chunk);
        return true;
      });
    });
    return host === undefined ? undefined : chunks.map(() => host);
  }
  const isScattered = words.includes("scatter") || words.includes("vscatter");
  const chosen: Place[] = [];
  for (const chunk of chunks) {
    const one = usable.find((candidate) => fits(candidate, chunk) && !(isScattered && chosen.includes(candidate)));
    if (one === undefined) return undefined;
    take(left.get(one)!, chunk);
    chosen.push(one);
  }
  return chosen;
};

/** Whether it could run if every node were up and empty; if not, what PBS says about it. */
export const neverRuns = (chunks: readonly Chunk[], how: string, nodes: readonly NodeConfig[]): string | undefined => {
  const empty = nodes.map((node) => ({ node, usage: newUsage(), isUp: true }));
  if (place(chunks, how, empty) !== undefined) return undefined;
  for (const name of ["ncpus", "ngpus", "memKb"] as const) {
    const wanted = chunks.reduce((sum, chunk) => sum + chunk[name], 0);
    const largest = Math.max(0, ...chunks.map((chunk) => chunk[name]));
    const total = nodes.reduce((sum, node) => sum + node[name], 0);
    const perNode = Math.max(0, ...nodes.map((node) => node[name]));
    if (wanted > total || largest > perNode)
      return `Can Never Run: Insufficient amount of resource: ${name === "memKb" ? "mem" : name} (R: ${wanted} A: ${total} T: ${total})`;
  }
  return "Can Never Run: Not enough total nodes available";
};

export const occupy = (usage: Usage, chunks: readonly Chunk[], isExclusive: boolean): number => {
  let slot = 0;
  while (usage.slots.has(slot)) slot += 1;
  usage.slots.add(slot);
  for (const chunk of chunks) {
    usage.ncpus += chunk.ncpus;
    usage.ngpus += chunk.ngpus;
    usage.memKb += chunk.memKb;
  }
  usage.jobs += 1;
  usage.exclusive ||= isExclusive;
  return slot;
};

export const vacate = (usage: Usage, chunks: readonly Chunk[], slot: number): void => {
  usage.slots.delete(slot);
  for (const chunk of chunks) {
    usage.ncpus -= chunk.ncpus;
    usage.ngpus -= chunk.ngpus;
    usage.memKb -= chunk.memKb;
  }
  usage.jobs -= 1;
  if (usage.jobs === 0) usage.exclusive = false;
};
