import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunCommand } from "../../../../src/managers/commands.ts";
import { createStorage } from "../../../../src/launch/service/storage.ts";
import { ROOT } from "../../../cli/slipway-process.ts";

/** Removes job directories while their user fights for them. Accounts are numbers: they need not exist. */

const [ALICE, SERVICE] = [54_321, 54_323];
const isRoot = process.getuid?.() === 0;
const hasCompiler = spawnSync("cc", ["--version"]).status === 0;
const reason = !isRoot ? "needs root to act as several users" : hasCompiler ? undefined : "there is no C compiler";

let root: string;
let jobs: string;
/** What a link in a job's directory leads to. */
let victim: string;
let program: string;
let racing: ChildProcessWithoutNullStreams | undefined;
const PRECIOUS = Array.from({ length: 8 }, (_, i) => `file-${i}`);

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-removal-"));
  await chmod(root, 0o755);
  [jobs, victim, program] = ["jobs", "victim", "exchange"].map((name) => join(root, name)) as [string, string, string];
  await mkdir(jobs);
  await mkdir(join(victim, "x"), { recursive: true });
  for (const name of PRECIOUS) await writeFile(join(victim, name), name, { mode: 0o600 });
  if (hasCompiler) execFileSync("cc", ["-O1", "-o", program, join(ROOT, "test", "fixtures", "exchange.c")]);
});
afterEach(async () => {
  racing?.kill("SIGKILL");
  racing = undefined;
  vi.restoreAllMocks();
  await rm(root, { recursive: true, force: true });
});

const NONE: RunCommand = () => Promise.reject(new Error("no command is needed"));

const directoryOf = (number: number): string => join(jobs, number.toString(16).padStart(32, "0"));

const makeJob = (directory: string, owner: number): void => {
  mkdirSync(directory);
  chownSync(directory, owner, 0);
};

/** Alice, who makes `x` and `link` in a directory and swaps them until she no longer may. */
const startRacer = (): {
  race: (directory: string) => Promise<void>;
  times: () => number;
  stop: () => Promise<void>;
} => {
  const child = spawn(program, [victim], { uid: ALICE, gid: ALICE, stdio: "pipe" });
  racing = child;
  let [ready, times] = [(): void => undefined, 0];
  createInterface(child.stdout).on("line", (line) => {
    if (line === "ready") ready();
    else times += Number(line);
  });
  return {
    race: (directory) =>
      new Promise((resolve) => {
        ready = resolve;
        child.stdin.write(`${directory}\n`);
      }),
    times: () => times,
    stop: () =>
      new Promise((resolve) => {
        child.once("close", () => resolve());
        child.stdin.end();
      }),
  };
};

const expectUntouched = async (owner: number): Promise<void> => {
  expect((await readdir(victim)).sort()).toEqual([...PRECIOUS, "x"].sort());
  for (const name of ["", "x", ...PRECIOUS]) expect((await stat(join(victim, name))).uid, name).toBe(owner);
  for (const name of PRECIOUS) {
    expect((await stat(join(victim, name))).mode & 0o777, name).toBe(0o600);
    expect(await readFile(join(victim, name), "utf8")).toBe(name);
  }
};

/** The account of a server without privileges, for which root carries out a command. */
const becomeService = (): { asRoot: <T>(work: () => T) => T; run: RunCommand; leave: () => void } => {
  const asRoot = <T>(work: () => T): T => {
    process.seteuid!(0);
    process.setegid!(0);
    try {
      return work();
    } finally {
      process.setegid!(SERVICE);
      process.seteuid!(SERVICE);
    }
  };
  vi.spyOn(process, "getuid").mockReturnValue(SERVICE);
  vi.spyOn(process, "getgid").mockReturnValue(SERVICE);
  process.setegid!(SERVICE);
  process.seteuid!(SERVICE);
  return {
    asRoot,
    run: async (argv) => {
      expect(argv.slice(0, 4)).toEqual(["sudo", "-n", "--", "chown"]);
      const { status, stderr } = asRoot(() => spawnSync(argv[3]!, argv.slice(4), { encoding: "utf8" }));
      return { argv, code: status ?? 1, stdout: "", stderr, timedOut: false };
    },
    leave: () => {
      process.seteuid!(0);
      process.setegid!(0);
    },
  };
};

describe.skipIf(reason !== undefined)(
  `clearing a job's directory away${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    const fight = async (times: number, run: RunCommand, asRoot: <T>(work: () => T) => T): Promise<void> => {
      const storage = createStorage(run, "mine");
      const racer = asRoot(startRacer);
      for (let i = 0; i < times; i += 1) {
        const directory = directoryOf(i);
        asRoot(() => makeJob(directory, ALICE));
        await racer.race(directory);
        const removed = storage.remove(directory, true);
        await removed.catch(() => undefined);
        expect(asRoot(() => readdirSync(victim))).toHaveLength(PRECIOUS.length + 1);
        await removed;
        expect(existsSync(directory)).toBe(false);
      }
      await racer.stop();
      expect(racer.times()).toBeGreaterThan(times);
      expect(await readdir(jobs)).toEqual([]);
    };

    it("a directory and a link that are exchanged all the time lead a server of root's nowhere, 1,000 times", async () => {
      await fight(1000, NONE, (work) => work());
      await expectUntouched(0);
    }, 300_000);

    it("nor a server without privileges, also when its user goes on adding to it", async () => {
      for (const path of [jobs, victim, join(victim, "x"), ...PRECIOUS.map((name) => join(victim, name))])
        await chown(path, SERVICE, SERVICE);
      const { run, asRoot, leave } = becomeService();
      try {
        await fight(100, run, asRoot);
      } finally {
        leave();
      }
      await expectUntouched(SERVICE);
    }, 300_000);

    it("whatever its depth, names and modes are", async () => {
      const storage = createStorage(NONE, "mine");
      for (const owner of [0, ALICE]) {
        const directory = directoryOf(owner);
        makeJob(directory, owner);
        // deeper than a path can be long
        execFileSync(program, ["deep", "100"], { uid: owner, gid: owner, cwd: directory });
        await writeFile(Buffer.from(`${directory}/\xff\xfe`, "latin1"), "");
        await mkdir(Buffer.from(`${directory}/\xfd`, "latin1"));
        await writeFile(Buffer.from(`${directory}/\xfd/ a\n`, "latin1"), "");
        await symlink(victim, join(directory, "link"));
        await mkdir(join(directory, "closed", "more"), { recursive: true });
        execFileSync("mkfifo", [join(directory, "closed", "pipe")]);
        for (const path of ["closed/more", "closed", "d".repeat(200), ""]) await chmod(join(directory, path), 0);
        await storage.remove(directory, true);
      }
      expect(await readdir(jobs)).toEqual([]);
      await expectUntouched(0);
    });

    it("a read-only tree of the server's own account is removed too", async () => {
      await chown(jobs, SERVICE, SERVICE);
      const { leave } = becomeService();
      try {
        const storage = createStorage(NONE, "mine");
        const directory = directoryOf(1);
        await mkdir(join(directory, "cache", "module"), { recursive: true });
        await writeFile(join(directory, "cache", "module", "file"), "");
        for (const path of ["cache/module", "cache", ""]) await chmod(join(directory, path), 0o500);
        await storage.remove(directory, false);
        expect(await readdir(jobs)).toEqual([]);
      } finally {
        leave();
      }
    });

    it("goes on after a crash, wherever that was", async () => {
      const storage = createStorage(NONE, "mine");
      const files = [{ path: "a/file", content: "", encoding: "utf8" as const, mode: 0o600 }];
      const [begun, moved] = [directoryOf(1), directoryOf(2)];
      for (const directory of [begun, moved]) await storage.make({ directory, directories: ["a"], files });
      const box = (directory: string): string => directory.replace(/([^/]+)$/, ".$1.removed");
      await mkdir(box(begun), { mode: 0o700 });
      await mkdir(join(box(moved), "one", "two"), { recursive: true, mode: 0o700 });
      await writeFile(join(box(moved), "one", "two", "file"), "");
      await rm(moved, { recursive: true });
      await storage.sweep(jobs, () => false);
      expect(await readdir(jobs)).toEqual([]);
    });

    it("one that cannot be taken back is left where it is, and says why", async () => {
      await chown(jobs, SERVICE, SERVICE);
      makeJob(directoryOf(1), ALICE);
      const { leave } = becomeService();
      try {
        const refused: RunCommand = async (argv) => ({
          argv,
          code: 1,
          stdout: "",
          stderr: "sudo: a password is required",
          timedOut: false,
        });
        await expect(createStorage(refused, "mine").remove(directoryOf(1), true)).rejects.toMatchObject({
          code: "launch-failed",
          message: expect.stringContaining("a password is required") as string,
        });
      } finally {
        leave();
      }
      expect(existsSync(directoryOf(1))).toBe(true);
    });
  },
);
