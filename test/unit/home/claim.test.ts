import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { refusalOf } from "../../refusal.ts";
import { type HomeClaim, type HomeClock, claimHome, prepareHome } from "../../../src/home/index.ts";
import { identify, whereabouts } from "../../../src/process-identity.ts";
import { until } from "../../until.ts";

let home: string;
let scripts: string;
const children: ChildProcess[] = [];
const claims: HomeClaim[] = [];

/** A real second server process: claims, reports the result, and holds on until it is asked to release or is killed. */
const CLAIMER = `
import { claimHome } from ${JSON.stringify(fileURLToPath(new URL("../../../src/home/index.ts", import.meta.url)))};
const say = (value) => process.stdout.write(JSON.stringify(value) + "\\n");
process.stdin.once("data", async () => {
  try {
    const claim = await claimHome(process.argv[2], { address: "there:1" });
    say({ epoch: claim.epoch });
    process.stdin.once("data", async () => { await claim.release(); say({ released: true }); process.exit(0); });
  } catch (error) { say({ code: error.code, facts: error.facts }); process.exit(0); }
});
say({ ready: true });
`;

beforeAll(async () => {
  scripts = await mkdtemp(join(tmpdir(), "slipway-claimer-"));
  const outfile = join(scripts, "claimer.mjs");
  const stdin = { contents: CLAIMER, resolveDir: process.cwd() };
  await build({ stdin, bundle: true, platform: "node", format: "esm", outfile, external: ["@peculiar/x509"] });
});
afterAll(() => rm(scripts, { recursive: true, force: true }));
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "slipway-home-"));
});
afterEach(async () => {
  for (const claim of claims.splice(0)) await claim.release().catch(() => undefined);
  for (const child of children.splice(0)) await end(child);
  await rm(home, { recursive: true, force: true });
});

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once("exit", () => resolve());
  });

const end = async (child: ChildProcess): Promise<void> => {
  child.kill("SIGKILL");
  await ended(child);
};

interface Claimer {
  readonly child: ChildProcess;
  go(): void;
  next(): Promise<Record<string, unknown>>;
}

const claimer = async (): Promise<Claimer> => {
  const child = spawn(process.execPath, [join(scripts, "claimer.mjs"), home], { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  const lines: Record<string, unknown>[] = [];
  const waiting: ((line: Record<string, unknown>) => void)[] = [];
  let rest = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    for (const part of parts) {
      const line = JSON.parse(part) as Record<string, unknown>;
      const waiter = waiting.shift();
      if (waiter === undefined) lines.push(line);
      else waiter(line);
    }
  });
  const next = (): Promise<Record<string, unknown>> =>
    new Promise((resolve) => {
      const line = lines.shift();
      if (line === undefined) waiting.push(resolve);
      else resolve(line);
    });
  await next();
  return { child, next, go: () => void child.stdin!.write("\n") };
};

/** Time that passes only on request, or by sleeping. */
const fakeClock = (): HomeClock & { advance(ms: number): void; onSleep?: () => Promise<void> } => {
  let now = 0;
  const timers = new Set<{ ms: number; due: number; call: () => void }>();
  const clock: HomeClock & { advance(ms: number): void; onSleep?: () => Promise<void> } = {
    now: () => now,
    sleep: async (ms) => {
      now += ms;
      await clock.onSleep?.();
    },
    every: (ms, call) => {
      const timer = { ms, due: now + ms, call };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance: (ms) => {
      now += ms;
      for (const timer of timers) {
        if (timer.due > now) continue;
        timer.due = now + timer.ms;
        timer.call();
      }
    },
  };
  return clock;
};

const hold = async (...args: Parameters<typeof claimHome>): Promise<HomeClaim> => {
  const claim = await claimHome(...args);
  claims.push(claim);
  return claim;
};

const leaseOf = async (): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(join(home, "lease.json"), "utf8")) as Record<string, unknown>;

const elsewhere = async (more: object = {}): Promise<void> => {
  const lease = { ...identify(4711, "far"), bootId: "other", pidStart: "1", epoch: 3, counter: 7, started: "" };
  await mkdir(join(home, "epochs"), { recursive: true });
  await writeFile(join(home, "epochs", "00000003"), JSON.stringify(lease));
  await writeFile(join(home, "lease.json"), JSON.stringify({ ...lease, ...more }));
};

describe("claiming a home on one host", () => {
  it("rule 1: each claim has the next epoch, above those of the journal too; old epoch files go", async () => {
    await prepareHome(home);
    for (let epoch = 1; epoch <= 12; epoch += 1) {
      const claim = await claimHome(home);
      expect(claim.epoch).toBe(epoch);
      await claim.release();
    }
    expect((await readdir(join(home, "epochs"))).length).toBeLessThanOrEqual(8);
    await writeFile(join(home, "journal", "00000020-00000001.log"), "");
    expect((await hold(home)).epoch).toBe(0x21);
  });

  it("rule 1: a second server is told which one runs: pid, host, address", async () => {
    const claim = await hold(home);
    expect((await refusalOf(claimHome(home))).facts).toMatchObject({ pid: process.pid, address: "still starting" });
    await claim.setAddress("https://here:1");
    const error = await refusalOf(claimHome(home));
    expect(error.code).toBe("server-running");
    expect(error.facts).toMatchObject({ home, pid: process.pid, host: claim.lease.host, address: "https://here:1" });
    await rm(join(home, "lease.json"));
    expect((await refusalOf(claimHome(home))).code).toBe("server-running");
  });

  it("rule 1: of several processes that start at once exactly one wins, every time", async () => {
    for (let round = 1; round <= Number(process.env["CLAIM_ROUNDS"] ?? 3); round += 1) {
      const all = await Promise.all([claimer(), claimer(), claimer(), claimer()]);
      for (const one of all) one.go();
      const answers = await Promise.all(all.map((one) => one.next()));
      const winners = answers.filter((answer) => "epoch" in answer);
      expect(winners).toHaveLength(1);
      const pid = all[answers.indexOf(winners[0]!)]!.child.pid;
      for (const loser of answers.filter((answer) => !("epoch" in answer))) {
        expect(loser).toMatchObject({ code: "server-running", facts: { pid } });
      }
      for (const one of all) await end(one.child);
    }
  });

  it("rule 1: the lease of a killed server is recognised at once", async () => {
    const other = await claimer();
    other.go();
    expect(await other.next()).toEqual({ epoch: 1 });
    expect((await refusalOf(claimHome(home))).facts).toMatchObject({ pid: other.child.pid, address: "there:1" });
    await end(other.child);
    expect((await hold(home)).epoch).toBe(2);
  });

  it("a stopped process is alive; it keeps its home", async () => {
    const other = await claimer();
    other.go();
    await other.next();
    other.child.kill("SIGSTOP");
    expect((await refusalOf(claimHome(home))).code).toBe("server-running");
    other.child.kill("SIGCONT");
    other.go();
    expect(await other.next()).toEqual({ released: true });
    await hold(home);
  });

  it("a pid that now belongs to another process, and a zombie, are dead", async () => {
    const self = identify();
    expect(await whereabouts(self, self)).toBe("alive");
    expect(await whereabouts({ ...self, pidStart: "1" }, self)).toBe("dead");
    expect(await whereabouts({ ...self, pid: 2 ** 22 + 1 }, self)).toBe("dead");
    expect(await whereabouts({ ...self, host: "x" }, self)).toBe("elsewhere");
    expect(await whereabouts({ ...self, bootId: "x" }, self)).toBe("elsewhere");
    expect(await whereabouts({ ...self, pidNamespace: "pid:[1]" }, self)).toBe("elsewhere");
    // A shell that becomes `cat` never waits for its child, which therefore stays a zombie.
    const parent = spawn("/bin/sh", ["-c", "sleep 0 & echo $!; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
    children.push(parent);
    const pid = await new Promise<number>((resolve) => {
      parent.stdout.once("data", (data: Buffer) => resolve(Number(data.toString())));
    });
    const stateOf = async (): Promise<string> => (await readFile(`/proc/${pid}/stat`, "latin1")).split(") ")[1]![0]!;
    await until("the child is a zombie", async () => (await stateOf()) === "Z");
    const zombie = identify(pid);
    expect(zombie.pidStart).not.toBe("");
    expect(await whereabouts(zombie, self)).toBe("dead");
  });
});

describe("claiming a home that another host holds", () => {
  it("rules 1 and 10: a lease unchanged for 60 s of our own monotonic clock is taken over, and no earlier", async () => {
    await elsewhere({ started: "2999-01-01T00:00:00Z" });
    const clock = fakeClock();
    const waits: unknown[] = [];
    const claim = await hold(home, { onWait: (wait) => waits.push(wait) }, clock);
    expect(claim.epoch).toBe(4);
    expect(clock.now()).toBeGreaterThanOrEqual(60_000);
    expect(clock.now()).toBeLessThan(63_000);
    expect(waits).toEqual([{ host: "far", pid: 4711, ms: 60_000 }]);
  });

  it("rule 1: a lease that is renewed is left alone: home-held", async () => {
    await elsewhere();
    const clock = fakeClock();
    clock.onSleep = async () => {
      if (clock.now() === 59_000) await elsewhere({ counter: 8 });
    };
    const error = await refusalOf(claimHome(home, {}, clock));
    expect(error.code).toBe("home-held");
    expect(error.facts).toMatchObject({ host: "far", pid: 4711 });
    expect((await refusalOf(claimHome(home, { times: { takeOver: 0 } }))).code).toBe("home-held");
  });

  it("a home that its holder gives back meanwhile is taken at once; one that cannot be understood is outwaited", async () => {
    await elsewhere();
    const clock = fakeClock();
    clock.onSleep = async () => {
      await writeFile(join(home, "epochs", "00000003"), '{"released":true}');
      await rm(join(home, "lease.json"), { force: true });
    };
    const claim = await claimHome(home, {}, clock);
    expect(clock.now()).toBe(1000);
    await claim.release();
    await writeFile(join(home, "epochs", "00000009"), "{");
    const other = fakeClock();
    expect((await hold(home, {}, other)).epoch).toBe(10);
    expect(other.now()).toBeGreaterThanOrEqual(60_000);
  });
});

describe("holding a home", () => {
  it("renews its lease every 5 s", async () => {
    const clock = fakeClock();
    await hold(home, {}, clock);
    clock.advance(4999);
    expect((await leaseOf())["counter"]).toBe(0);
    for (let n = 1; n <= 3; n += 1) {
      // A tick that finds the last renewal still under way leaves it alone.
      await until(`renewal ${n}`, async () => {
        clock.advance(n === 1 ? 1 : 5000);
        return Number((await leaseOf())["counter"]) >= n;
      });
    }
  });

  it("rule 1: a holder that sees another epoch, in the lease or beside it, is lost and says so once", async () => {
    for (const sign of ["lease", "epoch"]) {
      const clock = fakeClock();
      const claim = await hold(home, {}, clock);
      const reasons: string[] = [];
      claim.onLost((reason) => reasons.push(reason));
      expect(claim.fence()).toBe(true);
      const next = claim.epoch + 1;
      const successor = JSON.stringify({ ...claim.lease, epoch: next, host: "far", counter: 0 });
      if (sign === "lease") await writeFile(join(home, "lease.json"), successor);
      else await writeFile(join(home, "epochs", next.toString(16).padStart(8, "0")), '{"released":true}');
      clock.advance(5000);
      await until("the holder is lost", () => reasons.length > 0);
      clock.advance(5000);
      expect(reasons).toHaveLength(1);
      expect(reasons[0]).toContain(`epoch ${next}`);
      expect(claim.fence()).toBe(false);
      claim.onLost((reason) => expect(reason).toBe(reasons[0]));
      await claim.release();
      await rm(join(home, "lease.json"), { force: true });
      await writeFile(join(home, "epochs", next.toString(16).padStart(8, "0")), '{"released":true}');
    }
  });

  it("rule 1: a holder that cannot renew for 30 s is lost, one that was only stopped for long is not", async () => {
    const clock = fakeClock();
    const claim = await hold(home, {}, clock);
    const reasons: string[] = [];
    claim.onLost((reason) => reasons.push(reason));
    // Stopped for 50 s, then it finds its lease unchanged: renewing comes before giving up.
    clock.advance(50_000);
    expect(await claim.fence()).toBe(true);
    expect(reasons).toEqual([]);
    await rm(join(home, "epochs"), { recursive: true });
    await rm(join(home, "lease.json"));
    await mkdir(join(home, "lease.json"));
    for (let n = 0; n < 5; n += 1) {
      clock.advance(5000);
      expect(claim.fence()).toBe(true);
      await new Promise((resolve) => void setTimeout(resolve, 5));
    }
    expect(reasons).toEqual([]);
    clock.advance(5000);
    await until("the holder is lost", () => reasons.length > 0);
    expect(reasons[0]).toContain("could not be renewed");
    expect(claim.fence()).toBe(false);
    await rm(join(home, "lease.json"), { recursive: true });
  });

  it("release gives the home back, and leaves a successor's lease alone", async () => {
    const claim = await claimHome(home);
    await claim.release();
    await claim.release();
    expect(await readdir(home)).toEqual(["epochs"]);
    const second = await claimHome(home, {}, fakeClock());
    await writeFile(join(home, "lease.json"), JSON.stringify({ ...second.lease, epoch: 9 }));
    await second.release();
    expect((await leaseOf())["epoch"]).toBe(9);
  });
});

describe("a home that is removed under its server", () => {
  it("rule 1: its server ends, also when another home has been made in its place", async () => {
    await prepareHome(home);
    const claim = await claimHome(home, { times: { renew: 20 } });
    // the first renewal notes which directory it is
    await claim.setAddress("here:1");
    const lost = new Promise<string>((resolve) => claim.onLost(resolve));
    // the old one is kept aside, so that the new one cannot get its inode number
    await rename(home, `${home}.old`);
    await mkdir(home);
    expect(await lost).toMatch(/removed|could not be renewed/);
    await rm(`${home}.old`, { recursive: true, force: true });
  });
});
