import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { tmpdirsOf } from "../../../src/agent/spawner/protocol.ts";
import { until } from "../../until.ts";
import {
  leftIn,
  directory,
  type Ended,
  implementations,
  openSession,
  powersStay,
  removeDirectory,
  type Session,
  WITHOUT_POWERS,
} from "./spawner-harness.ts";

afterAll(removeDirectory);

const KB = 1024;
const MB = 1024 * KB;

for (const { kind, absent } of implementations) {
  describe.skipIf(absent !== "")(`the ${kind} spawner starts tasks${absent && ` (skipped: ${absent})`}`, () => {
    let session: Session;
    beforeAll(async () => {
      session = await openSession(kind);
    });
    afterAll(() => session.spawner.close());

    it("is the one that was asked for", () => {
      expect(session.spawner.kind).toBe(kind);
      expect(session.spawner.pid).toBeGreaterThan(0);
    });

    it("tells every exit code exactly", async () => {
      const codes = Array.from({ length: 256 }, (_, code) => code);
      const ends = await Promise.all(codes.map((code) => session.sh(`exit ${code}`)));
      expect(ends.map((end) => end.code)).toEqual(codes);
      expect(ends.every((end) => end.signal === null && end.error === null && end.strays === 0)).toBe(true);
    });

    it("tells signals apart from exit codes", async () => {
      for (const signal of [1, 6, 9, 11, 15]) {
        const end = await session.sh(`kill -${signal} $$`);
        expect([end.code, end.signal]).toEqual([null, signal]);
      }
      expect(await session.sh("exit 137")).toMatchObject({ code: 137, signal: null });
    });

    it("hands over arguments unchanged", async () => {
      const args = ["", "a b", "new\nline", `quotes '"\`$(x)\\`, "grüße 世界 🚢", "-n", "*", "\u0001"];
      const end = await session.run(["/bin/sh", "-c", 'printf "%s\\0" "$@"', "sh", ...args]);
      expect(end.stdout.toString("utf8").split("\0").slice(0, -1)).toEqual(args);
    });

    it("merges environments: extras win, the last of equal names wins, nothing is inherited", async () => {
      session.spawner.defineEnv(2, ["A=1", "B=old", "C=x=y", "A=2", "EMPTY="]);
      const end = await session.run(["/usr/bin/env", "-0"], { env: 2, extraEnv: ["B=1", "N=1", "B=new\nline", "N=2"] });
      const entries = end.stdout.toString("utf8").split("\0").slice(0, -1);
      const own = entries.filter((entry) => !/^(SLIPWAY_TOKEN|TMPDIR)=/.test(entry)).toSorted();
      expect(own).toEqual(["A=2", "B=new\nline", "C=x=y", "EMPTY=", "N=2"]);
      session.spawner.dropEnv(2);
      expect(() => session.start(["/bin/true"], { env: 2 })).toThrow(/not defined/);
    });

    it("hands over environments up to the system's limits, and names E2BIG beyond", async () => {
      const large = Array.from({ length: 12 }, (_, i) => `LARGE${i}=${"x".repeat(120 * KB)}`);
      const many = Array.from({ length: 1000 }, (_, i) => `MANY${i}=${"y".repeat(60)}`);
      session.spawner.defineEnv(3, [...large, ...many]);
      const end = await session.run(["/usr/bin/env", "-0"], { env: 3 });
      const entries = new Set(end.stdout.toString("utf8").split("\0"));
      expect([...large, ...many].every((entry) => entries.has(entry))).toBe(true);

      session.spawner.defineEnv(4, [...large, ...large.map((entry) => `MORE_${entry}`)]);
      for (const request of [
        { env: 4 },
        { extraEnv: [`X=${"x".repeat(200 * KB)}`] },
        { extraEnv: [`X=${"x".repeat(9 * MB)}`] },
      ]) {
        const failed = await session.run(["/bin/true"], request);
        expect(failed).toMatchObject({ code: 126, error: { stage: "exec", code: "E2BIG", errno: 7 } });
      }
      session.spawner.dropEnv(3);
      session.spawner.dropEnv(4);
    });

    it("refuses a NUL and an empty command instead of changing them", async () => {
      for (const argv of [["/bin/echo", "a\0b"], []]) {
        expect(await session.run(argv)).toMatchObject({ error: { stage: "exec", code: "EINVAL" } });
      }
    });

    it("looks commands up in the task's own PATH", async () => {
      const bin = join(session.scratch, "bin");
      mkdirSync(join(bin, "adirectory"), { recursive: true });
      writeFileSync(join(bin, "a-script"), 'echo "no shebang $0 $1"', { mode: 0o755 });
      writeFileSync(join(bin, "data"), "x", { mode: 0o644 });
      const found = (argv: string[], path: string): Promise<Ended> => session.run(argv, { extraEnv: [`PATH=${path}`] });
      expect((await found(["a-script", "arg"], `/nonexistent:${bin}`)).stdout.toString()).toBe(
        `no shebang ${bin}/a-script arg\n`,
      );
      expect((await found(["a-script", "arg"], "bin")).stdout.toString()).toBe("no shebang bin/a-script arg\n");
      expect((await found(["bin/a-script", "arg"], "")).stdout.toString()).toBe("no shebang bin/a-script arg\n");
      expect((await session.run(["true"])).code).toBe(0);
      const missing = { code: 127, signal: null, error: { stage: "exec", errno: 2, code: "ENOENT" } };
      for (const name of ["a-script", "no-such-command", "./no-such-command", "/no/such"]) {
        expect(await found([name], "/usr/bin:/bin"), name).toMatchObject(missing);
      }
      expect(await found([""], "/usr/bin")).toMatchObject(missing);
      const denied = { code: 126, error: { stage: "exec", code: "EACCES" } };
      for (const name of ["data", `${bin}/data`, bin]) {
        expect(await found([name], `${bin}:/usr/bin`), name).toMatchObject(denied);
      }
      expect(await found(["adirectory"], bin)).toMatchObject(missing);
    });

    it.skipIf(powersStay !== "")(
      `a directory in PATH that may not be entered is passed over, as shells do${powersStay && ` (skipped: ${powersStay})`}`,
      async () => {
        const [closed, bin] = [join(directory, `closed-${kind}`), join(directory, `open-${kind}`)];
        for (const path of [closed, bin]) mkdirSync(path);
        for (const path of [closed, bin]) writeFileSync(join(path, "a-script"), "echo here", { mode: 0o755 });
        writeFileSync(join(bin, "data"), "x", { mode: 0o644 });
        chmodSync(closed, 0);
        const lowly = await openSession(kind, { prefix: WITHOUT_POWERS });
        onTestFinished(() => lowly.spawner.close());
        const path = `${closed}:${bin}:/usr/bin:/bin:${closed}`;
        for (const cpus of [null, [0]]) {
          const run = (name: string): Promise<Ended> => lowly.run([name], { cpus, extraEnv: [`PATH=${path}`] });
          expect(await run("no-such-command")).toMatchObject({ code: 127, error: { stage: "exec", code: "ENOENT" } });
          expect(await run("data")).toMatchObject({ code: 126, error: { stage: "exec", code: "EACCES" } });
          expect(await run(`${closed}/a-script`)).toMatchObject({
            code: 126,
            error: { stage: "exec", code: "EACCES" },
          });
          expect((await run("a-script")).stdout.toString()).toBe("here\n");
        }
      },
    );

    it("runs in the directory it was given, or names it", async () => {
      expect((await session.run(["pwd"], { cwd: "/usr" })).stdout.toString()).toBe("/usr\n");
      const cwd = join(session.scratch, "absent");
      const missing = { code: null, signal: null, error: { stage: "cwd", code: "ENOENT" } };
      expect(await session.run(["/bin/true"], { cwd })).toMatchObject(missing);
      expect(await session.run(["/bin/true"], { cwd: "/etc/passwd" })).toMatchObject({
        error: { stage: "cwd", code: "ENOTDIR" },
      });
      expect(await session.run(["/bin/true"], { cwd, cpus: [0] })).toMatchObject(missing);
    });

    it("writes output files: truncated, apart or shared", async () => {
      const [out, err, both] = ["out", "err", "both"].map((name) => join(session.scratch, name)) as [
        string,
        string,
        string,
      ];
      writeFileSync(out, "what was there before, and longer");
      const script = "echo one; echo two >&2; echo three";
      const apart = await session.sh(script, { stdout: out, stderr: err });
      expect([apart.stdout.length, apart.stderr.length]).toEqual([0, 0]);
      expect([readFileSync(out, "utf8"), readFileSync(err, "utf8")]).toEqual(["one\nthree\n", "two\n"]);
      expect(statSync(err).mode & 0o777).toBe(0o666 & ~process.umask());
      await session.sh(script, { stdout: both, stderr: both });
      expect(readFileSync(both, "utf8")).toBe("one\ntwo\nthree\n");
      const half = await session.sh(script, { stdout: out });
      expect([readFileSync(out, "utf8"), half.stderr.toString()]).toEqual(["one\nthree\n", "two\n"]);
    });

    it("appends where it is told so: what was there stays, and one write of many at once never tears", async () => {
      const shared = join(session.scratch, "shared");
      writeFileSync(shared, "before\n");
      const bytes = 200_000;
      const letters = [..."abcdefghijkl"];
      for (const letter of letters) writeFileSync(join(session.scratch, `piece-${letter}`), letter.repeat(bytes));
      const script =
        "for i in 1 2 3; do dd if=$0 bs=1M count=1 status=none; dd if=$0 bs=1M count=1 status=none >&2; done";
      await Promise.all(
        letters.map((letter) =>
          session.run(["/bin/sh", "-c", script, join(session.scratch, `piece-${letter}`)], {
            stdout: shared,
            stderr: shared,
            append: true,
          }),
        ),
      );
      const text = readFileSync(shared, "utf8");
      expect(text.slice(0, 7)).toBe("before\n");
      const runs = text
        .slice(7)
        .match(/([a-l])\1*/g)!
        .map((run) => [run[0]!, run.length / bytes] as const);
      const total = new Map<string, number>();
      for (const [letter, times] of runs) total.set(letter, (total.get(letter) ?? 0) + times);
      expect(runs.every(([, times]) => Number.isInteger(times))).toBe(true);
      expect([...total].toSorted()).toEqual(letters.map((letter) => [letter, 6]));
      // one of them in the file, the other captured
      const half = await session.sh("echo out; echo err >&2", { stdout: shared, append: true });
      expect(readFileSync(shared, "utf8")).toBe(`${text}out\n`);
      expect(half.stderr.toString()).toBe("err\n");
    });

    it("names the output that cannot be opened, and leaves no TMPDIR", async () => {
      const fifo = join(session.scratch, "fifo");
      await session.run(["mkfifo", fifo]);
      const cases = [
        [{ stdout: "/no/such/file" }, "stdout", "ENOENT"],
        [{ stdout: session.scratch }, "stdout", "EISDIR"],
        [{ stderr: "/no/such/file" }, "stderr", "ENOENT"],
        [{ stdout: fifo }, "stdout", "ENXIO"], // nobody reads it: an error, not a spawner that waits for ever
      ] as const;
      for (const [request, stage, code] of cases) {
        const task = session.start(["/bin/true"], request);
        expect(await task.ended).toMatchObject({ code: null, signal: null, error: { stage, code } });
        expect(leftIn(task.tmpdirs)).toEqual([]);
      }
    });

    it("captures both outputs apart and to the byte, through pipes", async () => {
      const file = join(session.scratch, "random");
      const bytes = randomBytes(300 * KB);
      writeFileSync(file, bytes);
      const end = await session.sh(`cat ${file}; cat ${file} ${file} >&2; printf tail`);
      expect(end.stdout.equals(Buffer.concat([bytes, Buffer.from("tail")]))).toBe(true);
      expect(end.stderr.equals(Buffer.concat([bytes, bytes]))).toBe(true);
      // sockets cannot be opened by path, so this needs a pipe
      const named = await session.sh("echo a > /dev/stdout; echo b > /dev/stderr; echo c >> /proc/self/fd/2");
      expect([named.stdout.toString(), named.stderr.toString()]).toEqual(["a\n", "b\nc\n"]);
    });

    it("sends output while the task runs, and all of it before the exit", async () => {
      const go = join(session.scratch, "go");
      const task = session.start(["/bin/sh", "-c", `echo ready; until [ -e ${go} ]; do sleep 0.01; done; echo last`]);
      await task.said("ready");
      writeFileSync(go, "");
      expect((await task.ended).stdout.toString()).toBe("ready\nlast\n");
    });

    it("gives a task nothing but its three descriptors, default signals and a session", async () => {
      // (the descriptors that this process inherited itself, whatever they are, are part of the test)
      const { stdout } = await session.sh("ls -m /proc/$$/fd; readlink /proc/$$/fd/0");
      expect(stdout.toString()).toBe("0, 1, 2\n/dev/null\n");
      const status = (await session.run(["cat", "/proc/self/status"])).stdout.toString();
      for (const mask of ["SigBlk", "SigIgn"]) {
        const bits = BigInt(`0x${new RegExp(`^${mask}:\\s*(\\w+)`, "m").exec(status)![1]}`);
        expect(bits & 0x7fff_ffffn, mask).toBe(0n);
      }
      const task = session.start(["cat", "/proc/self/stat"]);
      const stat = (await task.ended).stdout.toString().split(" ");
      const pid = String(await task.pid);
      expect([stat[0], stat[4], stat[5]]).toEqual([pid, pid, pid]);
    });

    it("makes a private TMPDIR and names one that it cannot make", async () => {
      const task = session.start(["/bin/sh", "-c", 'stat -c %a "$TMPDIR"; ls -A "$TMPDIR"; echo x > "$TMPDIR/x"']);
      expect((await task.ended).stdout.toString()).toBe("700\n");
      expect(leftIn(task.tmpdirs)).toEqual([]);
      const there = join(session.scratch, "there");
      mkdirSync(tmpdirsOf(there, session.spawner.pid));
      const taken = await session.run(["/bin/true"], { tmpdir: there });
      expect(taken).toMatchObject({ code: null, error: { stage: "tmpdir", code: "EEXIST" } });
      expect(existsSync(tmpdirsOf(there, session.spawner.pid))).toBe(true);
      expect((await session.run(["/bin/true"], { tmpdir: null })).code).toBe(0);
    });

    it("removes a TMPDIR whatever is in it, without following links", async () => {
      const outside = join(directory, `outside-${kind}`);
      mkdirSync(outside);
      writeFileSync(join(outside, "precious"), "x");
      const script = `cd "$TMPDIR" && ln -s ${outside} link && ln -s ${outside}/precious file && ln -s / root &&
        mkdir -p closed/inner && touch closed/inner/x && chmod 000 closed/inner && chmod 000 closed &&
        mkdir many && (cd many && i=0; while [ $i -lt 400 ]; do : > $i; i=$((i+1)); done) &&
        i=0; while [ $i -lt 300 ]; do mkdir d_______________________ && cd d_______________________; i=$((i+1)); done; : > bottom`;
      const task = session.start(["/bin/sh", "-c", script]);
      expect(await task.ended).toMatchObject({ code: 0 });
      expect(leftIn(task.tmpdirs)).toEqual([]);
      expect(readFileSync(join(outside, "precious"), "utf8")).toBe("x");
      chmodSync(outside, 0o755);
    });

    it("binds tasks to cores, as far as these exist", async () => {
      const grep = ["grep", "Cpus_allowed_list", "/proc/self/status"];
      const free = (await session.run(grep)).stdout.toString();
      const first = /\d+/.exec(free)![0];
      const pinned = await session.run(grep, { cpus: [Number(first)] });
      expect(pinned.stdout.toString()).toBe(`Cpus_allowed_list:\t${first}\n`);
      expect((await session.run(grep, { cpus: [Number(first), 60_000] })).stdout.toString()).toContain(`:\t${first}\n`);
      expect((await session.run(grep, { cpus: [60_000] })).stdout.toString()).toBe(free);
      const missing = { cpus: [Number(first)], extraEnv: ["PATH=/usr/bin:/bin"] };
      expect(await session.run(["no-such-command"], missing)).toMatchObject({ code: 127 });
    });

    it("tells when a task ran and what it used", async () => {
      const before = Date.now();
      const end = await session.sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
      expect(end.startedAt).toBeGreaterThanOrEqual(before - 1);
      expect(end.endedAt).toBeGreaterThan(end.startedAt);
      expect(end.endedAt).toBeLessThanOrEqual(Date.now() + 1);
      if (kind === "native") {
        expect(end.userMs + end.systemMs).toBeGreaterThan(0);
        expect(end.maxRssBytes).toBeGreaterThan(500 * KB);
      }
    });

    it("tells the largest of a task's processes, whoever waited for it", async (ctx) => {
      if (kind === "node") ctx.skip("Node does not say what a child used");
      const large = "head -c 60000000 /dev/zero | tail -c 60000000 >/dev/null";
      const small = (await session.sh("true")).maxRssBytes;
      expect(small).toBeLessThan(30_000 * KB);
      const below = await session.sh(`sh -c 'sh -c "${large}; true"; true'; true`);
      expect(below.maxRssBytes).toBeGreaterThan(60_000_000);
      // its parent is gone before it ends, and it ends before the task
      const orphan = await session.sh(`mkfifo gone; (sh -c '${large}; : >gone' &); : <gone; rm gone`);
      expect(orphan.maxRssBytes).toBeGreaterThan(60_000_000);
      expect((await session.sh("true")).maxRssBytes, "another task").toBeLessThan(30_000 * KB);
    });

    it("tells what a task's cgroup counted, and nothing where it does not count", async () => {
      const parent = join(session.scratch, "cgroup");
      // not a real one: the spawner only reads and writes its files
      mkdirSync(join(parent, "counts"), { recursive: true });
      writeFileSync(join(parent, "counts", "memory.peak"), "209715200\n");
      mkdirSync(join(parent, "odd"));
      writeFileSync(join(parent, "odd", "memory.peak"), "none\n");
      const run = async (token: string) => (await session.run(["true"], { cgroup: parent, token })).cgroupPeakBytes;
      expect([await run("counts"), await run("odd"), await run("plain")]).toEqual([209_715_200, 0, 0]);
      expect((await session.run(["true"])).cgroupPeakBytes).toBe(0);
      expect(readdirSync(parent).toSorted()).toEqual(["counts", "odd"]);
    });

    it("tells how many processes of its cgroup the kernel killed for memory", async () => {
      const parent = join(session.scratch, "events");
      // as Linux 6.1 writes it; other lines begin or go on alike
      const events = (kills: number): string => `low 0\nhigh 0\nmax 12\noom 3\noom_kill ${kills}\noom_group_kill 7\n`;
      for (const [token, text] of Object.entries({ killed: events(2), not: events(0), odd: "oom_kill\n" })) {
        mkdirSync(join(parent, token), { recursive: true });
        writeFileSync(join(parent, token, "memory.events"), text);
      }
      const run = async (token: string, command = "false") =>
        (await session.run([command], { cgroup: parent, token })).oomKills;
      expect([await run("killed"), await run("not"), await run("odd"), await run("plain")]).toEqual([2, 0, 0, 0]);
      expect((await session.sh("kill -KILL $$", { cgroup: parent, token: "killed" })).oomKills).toBe(2);
      expect(await run("killed", "true"), "of one that ended well").toBe(0);
      expect((await session.run(["false"])).oomKills).toBe(0);
    });

    it("keeps many tasks apart", async () => {
      const ends = await Promise.all(
        Array.from({ length: 200 }, (_, i) => session.sh(`echo out ${i}; echo err ${i} >&2; exit ${i % 200}`)),
      );
      for (const [i, end] of ends.entries()) {
        expect([end.code, end.stdout.toString(), end.stderr.toString()]).toEqual([i % 200, `out ${i}\n`, `err ${i}\n`]);
      }
    });

    it("moves 50 MB with bounded memory, and serves other requests while nobody reads", async () => {
      const apart = await openSession(kind);
      const residentMB = (): number =>
        Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${apart.spawner.pid}/status`, "latin1"))![1]) / KB;
      expect((await apart.run(["/bin/true"])).code).toBe(0);
      const before = residentMB();
      apart.spawner.pause();
      const task = apart.start(["head", "-c", String(50 * MB), "/dev/zero"]);
      // it still does what it cannot report yet
      for (let i = 0; i < 3; i++) {
        const file = join(apart.scratch, `file${i}`);
        void apart.sh("echo done", { stdout: file });
        await until("the task is done", () => existsSync(file) && readFileSync(file, "utf8") === "done\n");
      }
      expect(residentMB() - before).toBeLessThan(40);
      apart.spawner.resume();
      const end = await task.ended;
      expect(end).toMatchObject({ code: 0 });
      expect(end.stdout.length).toBe(50 * MB);
      expect(end.stdout.every((byte) => byte === 0)).toBe(true);
      expect(residentMB() - before).toBeLessThan(60);
      await apart.spawner.close();
    });
  });
}
