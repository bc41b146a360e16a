import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchMemory, type WatchedTask } from "../../../src/agent/memory-watch.ts";
import { parseStat, readPageSize, readProcessTable, readVariable } from "../../../src/agent/proc-table.ts";

const KB = 1024;
const MB = 1024 * KB;

interface Fixture {
  readonly parent?: number;
  readonly group?: number;
  readonly session?: number;
  readonly started?: number;
  /** Kilobytes; a page is one kilobyte here. */
  readonly rss: number;
  readonly pss?: number | "missing";
  readonly environ?: string[];
}

let proc: string;
beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), "slipway-proc-"));
});
afterEach(() => rmSync(proc, { recursive: true, force: true }));

const put = (pid: number, fixture: Fixture): void => {
  const { parent = 1, group = pid, session = pid, started = 7, rss, pss = rss, environ = [] } = fixture;
  const directory = join(proc, String(pid));
  mkdirSync(directory, { recursive: true });
  const middle = Array.from({ length: 15 }, () => "0").join(" ");
  writeFileSync(
    join(directory, "stat"),
    `${pid} (a) b (c) S ${parent} ${group} ${session} ${middle} ${started} 99 ${rss} 18446744073709551615 1 1 0\n`,
  );
  writeFileSync(join(directory, "environ"), environ.map((each) => `${each}\0`).join(""));
  if (pss !== "missing") writeFileSync(join(directory, "smaps_rollup"), `0-1 ---p\nRss: 5 kB\nPss: ${pss} kB\n`);
};

const drop = (pid: number): void => rmSync(join(proc, String(pid)), { recursive: true });

const watch = (tasks: WatchedTask<string>[], intervalMs = 1000) => {
  const exceeded: [string, number][] = [];
  const memory = watchMemory<string>(
    { tasks: () => tasks, onExceeded: (id, bytes) => exceeded.push([id, bytes]) },
    { procRoot: proc, pageSize: KB, intervalMs },
  );
  return { exceeded, memory };
};

/** Old enough to be measured. */
const unlimited = (pid: number): WatchedTask<string> => ({
  id: `t${pid}`,
  pid,
  token: `token-${pid}`,
  started: -Infinity,
});

const task = (pid: number, limit: number): WatchedTask<string> => ({ ...unlimited(pid), limitBytes: limit * KB });

describe("the process table", () => {
  it("parses names with spaces and brackets", () => {
    put(12, { parent: 3, group: 4, session: 5, started: 6, rss: 8 });
    const line = "12 (a) b (c) S 3 4 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 6 99 8 1 1";
    expect(parseStat(line)).toEqual({ pid: 12, parent: 3, group: 4, session: 5, started: 6, rssPages: 8 });
    expect(parseStat("")).toBeUndefined();
    expect(parseStat("12 (x) S 1")).toBeUndefined();
  });

  it("reads a variable only where it begins", () => {
    put(9, { rss: 1, environ: ["A=SLIPWAY_TOKEN=no", "XSLIPWAY_TOKEN=no", "SLIPWAY_TOKEN=yes", "B=1"] });
    expect(readVariable(proc, 9, "SLIPWAY_TOKEN")).toBe("yes");
    expect(readVariable(proc, 9, "NONE")).toBeNull();
    expect(readVariable(proc, 10, "SLIPWAY_TOKEN")).toBeNull();
  });

  it("knows the page size", () => expect([4096, 16_384, 65_536]).toContain(readPageSize("/proc")));
});

describe("watchMemory", () => {
  it("adds up main process, descendants, session, group and reparented bearers of the token", async () => {
    put(100, { rss: 10 });
    put(101, { parent: 100, group: 50, session: 50, rss: 10 });
    put(102, { parent: 101, group: 50, session: 50, rss: 10 });
    put(103, { session: 100, rss: 10 });
    put(104, { group: 100, session: 1, rss: 10 });
    put(105, { session: 105, rss: 10, environ: ["SLIPWAY_TOKEN=token-100"] });
    put(106, { rss: 10_000, environ: ["SLIPWAY_TOKEN=another"] });
    const within = watch([task(100, 60)]);
    await within.memory.scan();
    expect(within.exceeded).toEqual([]);
    const over = watch([task(100, 59), task(106, 20_000)]);
    await over.memory.scan();
    expect(over.exceeded).toEqual([["t100", 60 * KB]]);
    await over.memory.scan();
    expect(over.exceeded.length).toBe(1);
  });

  it("rule 15: does not report shared pages counted again and again", async () => {
    put(100, { rss: 1000, pss: 260 });
    for (let pid = 101; pid < 104; pid++) put(pid, { parent: 100, rss: 1000, pss: 250 });
    const { exceeded, memory } = watch([task(100, 1500)]);
    await memory.scan();
    expect(exceeded).toEqual([]);
    // The children write to what they shared: resident sizes stay, proportional ones grow.
    for (let pid = 101; pid < 104; pid++) put(pid, { parent: 100, rss: 1000, pss: 900 });
    await vi.waitFor(async () => {
      await memory.scan();
      expect(exceeded.length).toBe(1);
    });
  });

  it("falls back to resident sizes where the kernel does not tell", async () => {
    put(100, { rss: 700, pss: "missing" });
    put(101, { parent: 100, rss: 700, pss: 1 });
    const { exceeded, memory } = watch([task(100, 650)]);
    await memory.scan();
    expect(exceeded).toEqual([["t100", 700 * KB]]);
  });

  it("keeps a process with its task after its parent is gone, but not its successor with the same pid", async () => {
    put(100, { rss: 1 });
    put(101, { parent: 100, session: 100, rss: 1 });
    put(102, { parent: 101, group: 102, session: 102, rss: 1 });
    const { exceeded, memory } = watch([task(100, 50)]);
    await memory.scan();
    drop(101);
    put(102, { parent: 1, rss: 90, started: 8 });
    await memory.scan();
    expect(exceeded).toEqual([]);
    put(102, { parent: 100, rss: 1, started: 9 });
    await memory.scan();
    put(102, { parent: 1, rss: 90, started: 9 });
    await memory.scan();
    expect(exceeded).toEqual([["t100", 91 * KB]]);
  });

  it("is not confused by a circle in a table that changed while it was read", async () => {
    put(200, { parent: 201, rss: 9 });
    put(201, { parent: 200, rss: 9 });
    put(100, { rss: 5 });
    const { exceeded, memory } = watch([task(100, 6)]);
    await memory.scan();
    expect(exceeded).toEqual([]);
  });

  it("runs a timer only while a task runs, and says when the table cannot be read", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const tasks: WatchedTask<string>[] = [{ ...unlimited(0), id: "not started" }];
      const onError = vi.fn();
      const memory = watchMemory<string>(
        { tasks: () => tasks, onExceeded: () => undefined, onError },
        { procRoot: join(proc, "missing"), pageSize: KB },
      );
      memory.wake();
      expect(vi.getTimerCount()).toBe(0);
      tasks.push(task(100, 5));
      memory.wake();
      memory.wake();
      expect(vi.getTimerCount()).toBe(1);
      await vi.advanceTimersByTimeAsync(1000);
      await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce());
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
      tasks.pop();
      await vi.advanceTimersByTimeAsync(60_000);
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(0));
      memory.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("watchMemory measures", () => {
  it("all tasks, with a limit or without: one process by its size, several by what each has for itself", async () => {
    put(100, { rss: 500, pss: 300 });
    put(200, { rss: 1000, pss: 400 });
    put(201, { parent: 200, rss: 1000, pss: 350 });
    put(300, { rss: 70 });
    const { exceeded, memory } = watch([unlimited(100), unlimited(200), task(300, 90)]);
    await memory.scan();
    expect(["t100", "t200", "t300", "t400"].map(memory.takePeak)).toEqual([500 * KB, 750 * KB, 70 * KB, 0]);
    expect(exceeded).toEqual([]);
    expect(memory.takePeak("t100"), "taken, so forgotten").toBe(0);
  });

  it("the highest of all scans, not the last", async () => {
    put(100, { rss: 500 });
    const { memory } = watch([unlimited(100)]);
    await memory.scan();
    put(100, { rss: 900 });
    await memory.scan();
    put(100, { rss: 20 });
    await memory.scan();
    expect(memory.takePeak("t100")).toBe(900 * KB);
  });

  it("what a task had when it was found over its limit", async () => {
    put(100, { rss: 700, pss: 650 });
    const { exceeded, memory } = watch([task(100, 600)]);
    await memory.scan();
    expect(exceeded).toEqual([["t100", 650 * KB]]);
    expect(memory.takePeak("t100")).toBe(650 * KB);
  });

  it("in turn, when one scan has no time for all: whoever waited longest comes first", async () => {
    const pids = [100, 200, 300];
    for (const pid of pids) {
      put(pid, { rss: 1000, pss: 10 });
      put(pid + 1, { parent: pid, rss: 1000, pss: 10 });
    }
    const { memory } = watch(pids.map(unlimited), 0);
    for (const _ of pids) await memory.scan();
    expect(pids.map((pid) => memory.takePeak(`t${pid}`))).toEqual(pids.map(() => 20 * KB));
  });

  it("a task without a limit only when it is as old as an interval: short ones cost no scan", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const tasks: WatchedTask<string>[] = [{ ...unlimited(100), started: Infinity }];
      const onError = vi.fn();
      const memory = watchMemory<string>(
        { tasks: () => tasks, onExceeded: () => undefined, onError },
        { procRoot: join(proc, "missing"), pageSize: KB },
      );
      memory.wake();
      await vi.advanceTimersByTimeAsync(5000);
      expect([onError.mock.calls.length, vi.getTimerCount()]).toEqual([0, 1]);
      tasks.push(unlimited(200));
      await vi.advanceTimersByTimeAsync(1000);
      await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce());
      memory.stop();
    } finally {
      vi.useRealTimers();
    }
  });
});

const LIMIT = 90 * MB;

const report = async (pid: number): Promise<number[]> => {
  const used: number[] = [];
  const memory = watchMemory<string>({
    tasks: () => [{ id: "real", pid, token: "none", limitBytes: LIMIT, started: 0 }],
    onExceeded: (_, bytes) => used.push(bytes),
  });
  await memory.scan();
  memory.stop();
  return used;
};

const residentSum = async (session: number): Promise<number> => {
  let pages = 0;
  for (const each of (await readProcessTable("/proc")).values()) if (each.session === session) pages += each.rssPages;
  return pages * readPageSize("/proc");
};

describe("watchMemory on real processes", () => {
  let child: ChildProcess | undefined;
  afterEach(async () => {
    if (child === undefined) return;
    process.kill(-child.pid!, "SIGKILL");
    await once(child, "close");
    child = undefined;
  });

  /** A shell with a variable of 20 MB, and six subshells that each run `body`, all alive when this resolves. */
  const shells = async (body: string): Promise<number> => {
    const script = `
      x=$(head -c 20000000 /dev/zero | tr '\\0' a)
      for n in 1 2 3 4 5 6; do (${body}; echo ready; read line </dev/null; cat "$0"; : "$x") & done
      wait`;
    const pipe = join(proc, "pipe");
    await once(spawn("mkfifo", [pipe]), "close");
    child = spawn("/bin/sh", ["-c", script, pipe], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
    const lines = createInterface(child.stdout!);
    let ready = 0;
    for await (const line of lines) if (line === "ready" && ++ready === 6) break;
    return child.pid!;
  };

  it("leaves alone children that share their parent's memory", async () => {
    const pid = await shells(":");
    expect(await residentSum(pid)).toBeGreaterThan(LIMIT);
    expect(await report(pid)).toEqual([]);
  });

  it("reports children that allocate memory of their own", async () => {
    const used = await report(await shells('y="$x"; z="$y$x"'));
    expect(used.length).toBe(1);
    expect(used[0]).toBeGreaterThan(LIMIT);
  });
});
