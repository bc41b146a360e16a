import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isDead, readProcessStat } from "../../../src/process-stat.ts";
import { CommandError, createCommands } from "../../../src/managers/commands.ts";

const sh = (script: string, ...words: string[]): string[] => ["/bin/sh", "-c", script, "sh", ...words];

describe("running a manager's commands", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "slw-"));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  let files = 0;
  /** A new file, to which each execution of a command adds a line. */
  const book = async (): Promise<{ path: string; lines(): Promise<number> }> => {
    const path = join(directory, String((files += 1)));
    await writeFile(path, "");
    return { path, lines: async () => (await readFile(path, "utf8")).split("\n").length - 1 };
  };

  it("gives back what was printed and how it ended", async () => {
    const run = createCommands();
    const argv = sh("cat; echo err >&2; exit 3");
    expect(await run(argv, { input: "in" })).toEqual({ argv, code: 3, stdout: "in", stderr: "err\n", timedOut: false });
    expect(await run(sh("kill -9 $$"))).toMatchObject({ code: null });
    expect(await run(sh("exit 0"), { input: "x".repeat(1_000_000) })).toMatchObject({ code: 0 });
  });

  it("never passes through a shell, and words stay as they are", async () => {
    const odd = "a b'\"$(id)`\n*;|&\\ü";
    expect((await createCommands()(["/usr/bin/printf", "%s", odd])).stdout).toBe(odd);
  });

  it("adds to the environment and takes out of it", async () => {
    process.env["SLW_TEST_GONE"] = "here";
    try {
      const run = createCommands({ env: { SLW_A: "1", SLW_B: "2", SLW_TEST_GONE: undefined } });
      const { stdout } = await run(sh('echo "$SLW_A $SLW_B ${SLW_TEST_GONE-unset} $LC_ALL"'), { env: { SLW_B: "3" } });
      expect(stdout).toBe("1 3 unset C.UTF-8\n");
    } finally {
      delete process.env["SLW_TEST_GONE"];
    }
  });

  it("says when a command is not there, and when its directory is not", async () => {
    const run = createCommands();
    await expect(run(["/no/such/sbatch"])).rejects.toMatchObject({
      message: "/no/such/sbatch: not found",
      timedOut: false,
    });
    await expect(run(["/bin/true"], { cwd: "/no/such/place" })).rejects.toBeInstanceOf(CommandError);
  });

  it("ends a command that does not answer in time, with all that it started", async () => {
    const { path } = await book();
    const run = createCommands({ timeoutMs: 300, pausesMs: [] });
    await expect(run(sh('sleep 1000 & echo $! > "$1"; wait', path))).rejects.toMatchObject({
      name: "CommandError",
      timedOut: true,
      message: "/bin/sh did not answer within 0.3 s",
    });
    const pid = (await readFile(path, "utf8")).trim();
    if (pid !== "") await expect.poll(async () => isDead(await readProcessStat(pid)), { timeout: 30_000 }).toBe(true);
  });

  it("waits for no longer than that for what a command left behind with its output", async () => {
    const { path } = await book();
    const run = createCommands({ timeoutMs: 2000, pausesMs: [] });
    const script = 'setsid sh -c \'echo $$ > "$1"; exec sleep 1000\' sh "$1" & until [ -s "$1" ]; do sleep 0.01; done';
    await expect(run(sh(script, path))).rejects.toMatchObject({ timedOut: true });
    process.kill(Number(await readFile(path, "utf8")), "SIGKILL");
  });

  it("asks again after a time-out, but never gives a submission twice", async () => {
    const run = createCommands({ timeoutMs: 300, pausesMs: [1, 1] });
    const asked = await book();
    // the line is written before the limit can pass: the first statement of a shell
    await expect(run(sh('echo x >> "$1"; sleep 1000', asked.path), { timeoutMs: 2000 })).rejects.toMatchObject({
      timedOut: true,
    });
    expect(await asked.lines()).toBe(3);
    const submitted = await book();
    await expect(
      run(sh('echo x >> "$1"; sleep 1000', submitted.path), { timeoutMs: 2000, once: true }),
    ).rejects.toMatchObject({ timedOut: true });
    expect(await submitted.lines()).toBe(1);
  });

  it("tries what is transient again, until it passes or the pauses are used up", async () => {
    const run = createCommands({ pausesMs: [1, 1, 1], isTransient: ({ stderr }) => stderr.includes("try later") });
    const passing = await book();
    const script = 'echo x >> "$1"; [ "$(wc -l < "$1")" -ge 3 ] || { echo try later >&2; exit 1; }; echo ok';
    expect(await run(sh(script, passing.path))).toMatchObject({ code: 0, stdout: "ok\n" });
    expect(await passing.lines()).toBe(3);
    const stuck = await book();
    expect(await run(sh('echo x >> "$1"; echo try later >&2; exit 1', stuck.path))).toMatchObject({ code: 1 });
    expect(await stuck.lines()).toBe(4);
    const refused = await book();
    expect(await run(sh('echo x >> "$1"; echo no >&2; exit 1', refused.path))).toMatchObject({ code: 1 });
    expect(await refused.lines()).toBe(1);
  });

  it("tells the judge of transience whether a second try could do harm", async () => {
    const run = createCommands({ pausesMs: [1], isTransient: (_, { once }) => once !== true });
    const { path, lines } = await book();
    await run(sh('echo x >> "$1"; exit 1', path), { once: true });
    expect(await lines()).toBe(1);
    await run(sh('echo x >> "$1"; exit 1', path));
    expect(await lines()).toBe(3);
  });

  it("runs no more than so many at once, and all of them in the end", async () => {
    const { path } = await book();
    const run = createCommands({ mostAtOnce: 3 });
    const script = 'echo + >> "$1"; sleep 0.05; echo - >> "$1"';
    await Promise.all(Array.from({ length: 12 }, () => run(sh(script, path))));
    let now = 0;
    let most = 0;
    for (const line of (await readFile(path, "utf8")).trim().split("\n")) {
      now += line === "+" ? 1 : -1;
      most = Math.max(most, now);
    }
    expect(now).toBe(0);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(3);
  });

  it("a failure gives its place to the next", async () => {
    const run = createCommands({ mostAtOnce: 1 });
    const results = await Promise.allSettled([run(["/no/such"]), run(["/no/such"]), run(sh("echo ok"))]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  });

  it("bounds what a command may print", async () => {
    const run = createCommands({ mostOutput: 100_000 });
    expect((await run(sh("head -c 90000 /dev/zero"))).stdout).toHaveLength(90_000);
    await expect(run(sh("cat /dev/zero"))).rejects.toMatchObject({
      message: "/bin/sh: printed more than 100000 bytes",
      timedOut: false,
    });
  });

  it("acts in another's name only by the words it was given, with the environment as words", async () => {
    const run = createCommands({
      env: { SLW_A: "1", SLW_GONE: undefined },
      become: (user, argv, env) => ["/usr/bin/env", `WHO=${user}`, `GIVEN=${JSON.stringify(env)}`, ...argv],
    });
    const print = sh('echo "$WHO $GIVEN"');
    expect((await run(print, { user: "alice", env: { SLW_B: "2" } })).stdout).toBe('alice {"SLW_A":"1","SLW_B":"2"}\n');
    expect((await run(print)).stdout).toBe(" \n");
    await expect(createCommands()(print, { user: "alice" })).rejects.toBeInstanceOf(CommandError);
  });
});
