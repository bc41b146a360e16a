import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Request, tmpdirsOf } from "../../../src/agent/spawner/protocol.ts";
import { writeEnv, writeStart } from "../../../src/agent/spawner/requests.ts";
import { until } from "../../until.ts";
import {
  directory,
  implementations,
  isAlive,
  leftIn,
  nativePath,
  nodeEntry,
  openRaw,
  openSession,
  readPid,
  removeDirectory,
  type Session,
} from "./spawner-harness.ts";

afterAll(removeDirectory);

/** Rule 15: ending a task ends everything that it started. */

/** A process in a session of its own, whose parent is gone; writes its pid to a file. `body` is what it runs. */
const daemon = (file: string, body = "exec sleep 300"): string =>
  `(setsid sh -c 'echo $$ > ${file}; ${body}' >/dev/null 2>&1 &); until [ -s ${file} ]; do sleep 0.01; done`;

const trapping = (trap: string): string[] => ["/bin/sh", "-c", `${trap}; echo up; while :; do sleep 0.01; done`];

const u32 = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);

const writableCgroup = (): string | undefined => {
  for (const root of ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]) {
    const path = join(root, `slipway-test-${process.pid}`);
    try {
      if (
        !existsSync(join(root, "cgroup.procs")) ||
        !readFileSync("/proc/self/mountinfo", "utf8").includes(` ${root} `)
      )
        continue;
      mkdirSync(path);
      return path;
    } catch {
      continue; // not delegated to us
    }
  }
  return undefined;
};

for (const { kind, absent } of implementations) {
  describe.skipIf(absent !== "")(
    `the ${kind} spawner ends tasks wholly (rule 15)${absent && ` (skipped: ${absent})`}`,
    () => {
      let session: Session;
      let files = 0;
      const newFile = (): string => join(session.scratch, `pid${++files}`);
      beforeAll(async () => {
        session = await openSession(kind);
      });
      afterAll(() => session.spawner.close());

      it("kills what the main process leaves in its group and session", async () => {
        const [a, b] = [newFile(), newFile()];
        const script = `sleep 300 & echo $! > ${a}; set -m; sleep 301 & echo $! > ${b}; echo said; exit 3`;
        const end = await session.sh(script);
        expect(end).toMatchObject({ code: 3, signal: null, strays: 2, ended: false });
        expect(end.stdout.toString()).toBe("said\n");
        for (const file of [a, b]) expect(isAlive(await readPid(file))).toBe(false);
      });

      it("kills double-forked children with sessions of their own, and their children", async () => {
        const [parent, child] = [newFile(), newFile()];
        const end = await session.sh(
          daemon(parent, `trap "" TERM; sleep 300 & echo $! > ${child}; wait`).replace(`-s ${parent}`, `-s ${child}`),
        );
        expect(end).toMatchObject({ code: 0, strays: 2 });
        for (const file of [parent, child]) expect(isAlive(await readPid(file))).toBe(false);
      });

      it("kills a task's strays and nobody else's", async () => {
        const [mine, theirs, go] = [newFile(), newFile(), newFile()];
        const other = session.start([
          "/bin/sh",
          "-c",
          `${daemon(theirs)}; echo up; until [ -e ${go} ]; do sleep 0.01; done`,
        ]);
        await other.said("up");
        expect(await session.sh(daemon(mine))).toMatchObject({ code: 0, strays: 1 });
        const pid = await readPid(theirs);
        expect(isAlive(await readPid(mine))).toBe(false);
        expect(isAlive(pid)).toBe(true);
        writeFileSync(go, "");
        expect(await other.ended).toMatchObject({ code: 0, strays: 1 });
        expect(isAlive(pid)).toBe(false);
      });

      it.skipIf(kind === "node")(
        `kills orphans without environment when no task is left that may have made them${kind === "node" ? " (skipped: Node cannot be their reaper; only a delegated cgroup finds them)" : ""}`,
        async () => {
          const [hidden, go] = [newFile(), newFile()];
          const other = session.start(["/bin/sh", "-c", `echo up; until [ -e ${go} ]; do sleep 0.01; done`]);
          await other.said("up");
          const env = `(env -i setsid sh -c 'echo $$ > ${hidden}; exec env -i sleep 300' >/dev/null 2>&1 &); until [ -s ${hidden} ]; do sleep 0.01; done`;
          expect(await session.sh(env)).toMatchObject({ code: 0 });
          const pid = await readPid(hidden);
          expect(isAlive(pid)).toBe(true); // it may belong to the other task
          writeFileSync(go, "");
          expect(await other.ended).toMatchObject({ code: 0, strays: 1 });
          expect(isAlive(pid)).toBe(false);
          const alone = newFile();
          expect(await session.sh(env.replaceAll(hidden, alone))).toMatchObject({ code: 0, strays: 1 });
          expect(isAlive(await readPid(alone))).toBe(false);
        },
      );

      it("asks with TERM first", async () => {
        const task = session.start([
          "/bin/sh",
          "-c",
          'trap "echo asked; exit 7" TERM; echo up; while :; do sleep 0.01; done',
        ]);
        await task.said("up");
        session.spawner.end(task.id, 60_000);
        const end = await task.ended;
        expect(end).toMatchObject({ code: 7, signal: null });
        expect(end.stdout.toString()).toBe("up\nasked\n");
      });

      it("kills after the grace what ignores TERM", async () => {
        const task = session.start(["/bin/sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.01; done']);
        await task.said("up");
        const before = performance.now();
        session.spawner.end(task.id, 120);
        expect(await task.ended).toMatchObject({ code: null, signal: 9 });
        expect(performance.now() - before).toBeGreaterThanOrEqual(119);
        expect(leftIn(task.tmpdirs)).toEqual([]);
      });

      it("uses the task's own grace, and a shorter one that comes later", async () => {
        const script = ["/bin/sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.01; done'];
        const [own, later] = [session.start(script, { graceMs: 50 }), session.start(script, { graceMs: 600_000 })];
        await Promise.all([own.said("up"), later.said("up")]);
        session.spawner.end(own.id);
        session.spawner.end(later.id);
        expect(await own.ended).toMatchObject({ signal: 9 });
        session.spawner.end(later.id, 0);
        expect(await later.ended).toMatchObject({ signal: 9 });
      });

      it("sends TERM to strays too, and they have the grace even if the main process goes first", async () => {
        const [file, note] = [newFile(), newFile()];
        const polite = `trap "sleep 0.1; echo bye > ${note}; exit" TERM; while :; do sleep 0.01; done`;
        const task = session.start(["/bin/sh", "-c", `${daemon(file, polite)}; echo up; exec sleep 300`]);
        await task.said("up");
        const pid = await readPid(file);
        session.spawner.end(task.id, 60_000);
        expect(await task.ended).toMatchObject({ signal: 15, strays: 0 });
        expect(readFileSync(note, "utf8")).toBe("bye\n");
        expect(isAlive(pid)).toBe(false);
      });

      it("leaves nothing of a task whose stray ignores TERM", async () => {
        const file = newFile();
        const task = session.start([
          "/bin/sh",
          "-c",
          `${daemon(file, 'trap "" TERM; while :; do sleep 0.01; done')}; echo up; exec sleep 300`,
        ]);
        await task.said("up");
        session.spawner.end(task.id, 100);
        const end = await task.ended;
        expect(end.signal).toBe(15);
        expect(end.strays).toBeGreaterThanOrEqual(1);
        expect(isAlive(await readPid(file))).toBe(false);
      });

      it("ends a stopped task", async () => {
        const task = session.start(["/bin/sh", "-c", "echo up; kill -STOP $$; sleep 300"]);
        await task.said("up");
        session.spawner.end(task.id, 60_000);
        expect(await task.ended).toMatchObject({ signal: 15, ended: true });
      });

      it("a task that was over by itself when its end was asked for was not ended by us", async () => {
        const gate = newFile();
        const task = session.start(["/bin/sh", "-c", `echo up; until [ -e ${gate} ]; do sleep 0.01; done`]);
        await task.said("up");
        const pid = await task.pid;
        // the spawner learns of its end and of our request in one turn
        process.kill(session.spawner.pid, "SIGSTOP");
        writeFileSync(gate, "");
        await until("it is a zombie", () => /^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "latin1")));
        session.spawner.end(task.id, 60_000);
        process.kill(session.spawner.pid, "SIGCONT");
        expect(await task.ended).toMatchObject({ code: 0, ended: false });
      });

      it("sends signals to the group", async () => {
        const task = session.start(["/bin/sh", "-c", 'trap "exit 9" USR1; echo up; while :; do sleep 0.01; done']);
        await task.said("up");
        session.spawner.signal(task.id, 10);
        expect(await task.ended).toMatchObject({ code: 9 });
        session.spawner.signal(task.id, 10); // gone: nothing happens
        session.spawner.end(task.id);
      });

      it("ends many at once", async () => {
        const tasks = Array.from({ length: 30 }, () => session.start(["sleep", "300"]));
        await Promise.all(tasks.map((task) => task.pid));
        for (const task of tasks) session.spawner.end(task.id, 60_000);
        for (const task of tasks) expect(await task.ended).toMatchObject({ signal: 15, strays: 0 });
      });

      it("closes: TERM, grace, KILL for every task, exits told, then gone", async () => {
        const closing = await openSession(kind);
        const polite = closing.start(trapping('trap "exit 5" TERM'), { graceMs: 60_000 });
        const stubborn = closing.start(trapping('trap "" TERM'), { graceMs: 50 });
        await Promise.all([polite.said("up"), stubborn.said("up")]);
        await closing.spawner.close();
        expect(await polite.ended).toMatchObject({ code: 5 });
        expect(await stubborn.ended).toMatchObject({ signal: 9 });
        expect(await closing.closed).toBe("closed");
        expect(isAlive(closing.spawner.pid)).toBe(false);
        expect(
          await new Promise((resolve) => {
            closing.start(["/bin/true"]).ended.then(resolve, resolve);
          }),
        ).toMatchObject({ error: { stage: "dropped", code: "EPIPE" } });
      });

      it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("ends its tasks on %s", async (signal) => {
        const closing = await openSession(kind);
        const task = closing.start(["/bin/sh", "-c", 'trap "exit 5" TERM; echo up; while :; do sleep 0.01; done']);
        await task.said("up");
        process.kill(closing.spawner.pid, signal);
        expect(await task.ended).toMatchObject({ code: 5 });
        expect(await closing.closed).toContain("exit status 0");
        expect(leftIn(task.tmpdirs)).toEqual([]);
      });

      it("ends its tasks when the agent is killed, though nobody reads their last words", async () => {
        const raw = openRaw(kind);
        await raw.hello;
        const [pid, tmpdir] = [join(directory, `lost-${kind}`), join(directory, `lost-tmp-${kind}`)];
        const script = `${daemon(`${pid}-stray`, 'trap "" TERM; while :; do sleep 0.01; done')}; trap "" TERM; echo $$ > ${pid}; while :; do echo noise; done`;
        raw.send((writer) => {
          writeEnv(writer, 1, [`PATH=${process.env["PATH"]}`]);
          writeStart(writer, {
            id: 1,
            argv: ["/bin/sh", "-c", script],
            env: 1,
            extraEnv: [`SLIPWAY_TOKEN=lost-${kind}-${process.pid}`],
            cwd: "/",
            stdout: null,
            stderr: null,
            tmpdir,
            cpus: null,
            token: `lost-${kind}-${process.pid}`,
            graceMs: 100,
            cgroup: null,
            after: null,
            append: false,
          });
        });
        const [main, stray] = [await readPid(pid), await readPid(`${pid}-stray`)];
        const tmpdirs = tmpdirsOf(tmpdir, raw.child.pid!);
        expect([isAlive(main), isAlive(stray), existsSync(tmpdirs)]).toEqual([true, true, true]);
        for (const stream of [raw.child.stdin, raw.child.stdout]) stream.destroy();
        expect(await raw.ended).toMatchObject({ code: 0, signal: null });
        expect([isAlive(main), isAlive(stray), existsSync(tmpdirs)]).toEqual([false, false, false]);
      });

      it("ends too when its agent died before it could say its first word", async () => {
        // the pipes of an agent that is gone, as one leaves them that is killed while it starts its spawner
        const argv = kind === "native" ? [nativePath] : nodeEntry;
        execFileSync("mkfifo", [`${directory}/gone-${kind}`]);
        const child = spawn("sh", ["-c", 'read -r _ < "$0"; exec "$@"', `${directory}/gone-${kind}`, ...argv], {
          stdio: ["pipe", "pipe", "ignore"],
        });
        const ended = new Promise((resolve) => void child.once("exit", resolve));
        for (const stream of [child.stdin, child.stdout]) stream.destroy();
        writeFileSync(`${directory}/gone-${kind}`, "\n");
        expect(await ended).toBe(0);
      });

      it("is itself no loss: when it is killed, the client kills its tasks", async () => {
        const lost = await openSession(kind);
        const file = join(lost.scratch, "stray");
        const task = lost.start(["/bin/sh", "-c", `${daemon(file)}; echo up; exec sleep 300`]);
        await task.said("up");
        const pids = [await task.pid, await readPid(file)];
        process.kill(lost.spawner.pid, "SIGKILL");
        expect(await lost.closed).toContain("killed by SIGKILL");
        expect(pids.map(isAlive)).toEqual([false, false]);
        expect(leftIn(task.tmpdirs)).toEqual([]);
      });

      it("exits with a message on malformed frames, after ending its tasks", async () => {
        const frames: Buffer[] = [
          u32(0),
          u32(9 * 1024 * 1024),
          Buffer.concat([u32(1), Buffer.from([99])]),
          Buffer.concat([u32(3), Buffer.from([Request.END, 1, 2])]),
          Buffer.concat([u32(13), Buffer.from([Request.ENV]), u32(1, 1, 0xffff)]),
          Buffer.concat([u32(15), Buffer.from([Request.ENV]), u32(1, 1, 1), Buffer.from("ab")]),
          Buffer.concat([u32(9), Buffer.from([Request.ENV]), u32(1, 0xffff_fff0)]),
          Buffer.concat([u32(13), Buffer.from([Request.START]), u32(1, 2, 3)]),
        ];
        for (const frame of frames) {
          const raw = openRaw(kind);
          await raw.hello;
          raw.child.stdin.write(frame);
          const { code, stderr } = await raw.ended;
          expect([code, /protocol error: \w+/.test(stderr)], frame.toString("hex")).toEqual([2, true]);
        }
      });

      const cgroup = writableCgroup();
      if (cgroup !== undefined) rmdirSync(cgroup);
      it.skipIf(cgroup === undefined)(
        "gives a task a cgroup where it may (skipped without a writable cgroup v2)",
        async () => {
          const parent = writableCgroup()!;
          try {
            const token = `odd/../token ${kind}`;
            const file = newFile();
            const hidden = `(env -i setsid sh -c 'echo $$ > ${file}; exec env -i sleep 300' >/dev/null 2>&1 &); until [ -s ${file} ]; do sleep 0.01; done`;
            const end = await session.sh(`sleep 0.1; grep ^0:: /proc/self/cgroup; ${hidden}`, {
              cgroup: parent,
              token,
            });
            expect(end.stdout.toString()).toContain(`slipway-test-${process.pid}/odd_.._token_${kind}`);
            expect(isAlive(await readPid(file))).toBe(false); // Node finds it too, with a cgroup
            expect(existsSync(join(parent, `odd_.._token_${kind}`))).toBe(false);
          } finally {
            rmdirSync(parent);
          }
          expect(await session.sh("exit 4", { cgroup: "/no/such/cgroup" })).toMatchObject({ code: 4, error: null });
        },
      );
    },
  );
}

describe("choosing a spawner", () => {
  it.skipIf(implementations[0]!.absent !== "")(
    "takes the native one where it runs (skipped without a compiler)",
    async () => {
      const session = await openSession("auto");
      expect(session.spawner.kind).toBe("native");
      await session.spawner.close();
    },
  );

  it("takes Node's where the native one is absent, cannot run, or is something else", async () => {
    const [text, mute, other] = ["text", "mute", "other"].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(text, "not a program", { mode: 0o644 });
    writeFileSync(mute, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    writeFileSync(other, "#!/bin/sh\nprintf '\\011\\0\\0\\0\\100\\377\\0\\0\\0\\0\\0\\0\\0'; exec cat >/dev/null\n", {
      mode: 0o755,
    });
    for (const nativePath of ["/no/such/file", text, mute, other]) {
      const session = await openSession("auto", { nativePath });
      expect(session.spawner.kind).toBe("node");
      expect((await session.run(["/bin/true"])).code).toBe(0);
      await session.spawner.close();
    }
    await expect(openSession("native", { nativePath: other })).rejects.toThrow(/version 255/);
    await expect(openSession("native", { nativePath: "/no/such/file" })).rejects.toThrow(/ENOENT/);
  });
});
