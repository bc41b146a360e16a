import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { tmpdirsOf } from "../../../src/agent/spawner/protocol.ts";
import { until } from "../../until.ts";
import {
  directory,
  implementations,
  isAlive,
  openSession,
  readPid,
  removeDirectory,
  type Session,
} from "./spawner-harness.ts";

afterAll(removeDirectory);

/** Row 001-18: each task finds a TMPDIR of its own, empty and as new, whatever the one before did to its own. */

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args).error === undefined;

/** What a task sees of its TMPDIR: name, inode, mode, owner and what is in it. */
const LOOK = 'stat -c "%n %i %a %u %g" "$TMPDIR"; ls -A "$TMPDIR"';

/** A process in a session of its own that has cleared its environment. */
const daemon = (file: string, body: string): string =>
  `(setsid env -i PATH="$PATH" T="$TMPDIR" sh -c 'echo $$ > ${file}; ${body}' >/dev/null 2>&1 &); until [ -s ${file} ]; do sleep 0.01; done`;

/** Its main thread ends, and another one stays: /proc calls it a zombie. */
const THREAD_STAYS = `
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *stay(void *file) {
  FILE *out = fopen(file, "w");
  fprintf(out, "%d\\n", getpid());
  fclose(out);
  for (;;) pause();
}
int main(int argc, char **argv) {
  (void)argc;
  pthread_t thread;
  if (fork() != 0) return 0;
  setsid();
  pthread_create(&thread, 0, stay, argv[1]);
  pthread_exit(0);
}`;

for (const { kind, absent } of implementations) {
  describe.skipIf(absent !== "")(`TMPDIRs of the ${kind} spawner${absent && ` (skipped: ${absent})`}`, () => {
    let session: Session;
    let shared: string;
    let files = 0;
    const newFile = (): string => join(session.scratch, `pid${++files}`);
    const sh = async (script: string, tmpdir = shared): Promise<string> =>
      (await session.sh(script, { tmpdir })).stdout.toString().trim();
    const nameOf = (seen: string): string => seen.split(" ")[0]!;

    beforeAll(async () => {
      session = await openSession(kind);
    });
    beforeEach(() => {
      shared = join(session.scratch, `shared${++files}`);
    });
    afterAll(() => session.spawner.close());

    /** The one before did this; the next one must have another directory, as new. */
    const isReplaced = async (script: string, tmpdir = shared): Promise<void> => {
      const first = await sh(`${LOOK}; ${script}`, tmpdir);
      const next = await sh(LOOK, tmpdir);
      expect(nameOf(next), script).not.toBe(nameOf(first));
      expect(next, script).toMatch(new RegExp(`^\\S+ \\d+ 700 ${process.getuid!()} ${process.getgid!()}$`));
      expect(existsSync(nameOf(first)), script).toBe(false);
    };

    it("row 001-18: an empty one may serve the next task; at the same time each has its own", async () => {
      const first = await sh(LOOK);
      const next = await sh(LOOK);
      if (kind === "native") expect(next).toBe(first);
      else expect(nameOf(next)).not.toBe(nameOf(first));
      const gate = newFile();
      const three = [1, 2, 3].map(() => sh(`echo "$TMPDIR"; until [ -e ${gate} ]; do sleep 0.01; done`));
      await until(
        "three at once",
        () =>
          spawnSync("ls", [tmpdirsOf(shared, session.spawner.pid)])
            .stdout.toString()
            .split("\n").length > 3,
      );
      writeFileSync(gate, "");
      expect(new Set(await Promise.all(three)).size).toBe(3);
    });

    /** All that a task could do to its TMPDIR here. */
    const changes = (): string[] => {
      const all = [
        'echo x > "$TMPDIR/file"',
        'mkdir "$TMPDIR/.hidden"',
        'chmod 755 "$TMPDIR"',
        'chmod 1700 "$TMPDIR"',
        'rmdir "$TMPDIR"',
        'rmdir "$TMPDIR"; mkdir -m 700 "$TMPDIR"',
        'mv "$TMPDIR" "$TMPDIR.away"; mkdir -m 700 "$TMPDIR"; rmdir "$TMPDIR.away"',
        'rmdir "$TMPDIR"; echo x > "$TMPDIR"',
        'cd "$TMPDIR"; i=0; while [ $i -lt 600 ]; do : > long-name-to-fill-a-block-$i; i=$((i+1)); done; rm -f *',
      ];
      if (process.getuid!() === 0) all.push('chgrp 1 "$TMPDIR"');
      const probe = join(session.scratch, "probe");
      mkdirSync(probe, { recursive: true });
      if (process.getuid!() === 0 && has("chattr", "-V") && spawnSync("chattr", ["+A", probe]).status === 0)
        all.push('chattr +A "$TMPDIR"');
      if (!has("python3", "-c", "0")) return all;
      const set = (name: string, value: string): string =>
        `python3 -c 'import os; os.setxattr(os.environ["TMPDIR"], "${name}", ${value})'`;
      const probed = (script: string): boolean => spawnSync("sh", ["-c", `TMPDIR=${probe} ${script}`]).status === 0;
      // an ACL of another user, as setfacl writes it
      const acl =
        'bytes.fromhex("0200000001000700ffffffff020007000100000004000000ffffffff10000700ffffffff20000000ffffffff")';
      if (probed(set("user.probe", 'b"x"'))) all.push(set("user.mine", 'b"x"'));
      if (probed(set("system.posix_acl_default", acl))) all.push(set("system.posix_acl_default", acl));
      return all;
    };

    it("row 001-18: what is not as new never does: files, mode, owner, name, links, attributes", async () => {
      for (const change of changes()) await isReplaced(change);
    });

    it("row 001-18: nor where its times have been the same for a while", async () => {
      // the kernel's clock for files must have moved on
      const used = (tmpdir: string): Promise<string> => sh("sleep 0.2", tmpdir);
      await used(shared);
      const first = await sh(LOOK);
      if (kind === "native") expect(await sh(LOOK)).toBe(first);
      await Promise.all(
        changes().map(async (change, nth) => {
          const tmpdir = `${shared}-used${nth}`;
          await used(tmpdir);
          await isReplaced(change, tmpdir);
        }),
      );
    });

    it("row 001-18: a link in its place is removed, and nothing behind it", async () => {
      const precious = join(directory, `precious-${kind}`);
      mkdirSync(precious, { mode: 0o700 });
      await isReplaced(`rmdir "$TMPDIR"; ln -s ${precious} "$TMPDIR"`);
      writeFileSync(join(precious, "file"), "x");
      await isReplaced(`rmdir "$TMPDIR"; ln -s ${precious} "$TMPDIR"`);
      expect(readFileSync(join(precious, "file"), "utf8")).toBe("x");
      expect(lstatSync(precious).isDirectory()).toBe(true);
    });

    it("row 001-18: nor does one of a task that may still run somewhere", async () => {
      if (kind === "node") return; // it uses none again
      const [cwd, open, gate] = [newFile(), newFile(), newFile()];
      // while another task runs, nobody knows whose daemon it is: it is not killed yet, and it writes where it can
      const other = session.start(["/bin/sh", "-c", `echo up; until [ -e ${gate} ]; do sleep 0.01; done`]);
      await other.said("up");
      await isReplaced(daemon(cwd, `cd "$T"; while :; do echo x > mine; echo x > "$T/mine"; sleep 0.01; done`));
      await isReplaced(daemon(open, `exec 9<"$T"; while :; do echo x > /proc/self/fd/9/mine; sleep 0.01; done`));
      const [first, second] = [await readPid(cwd), await readPid(open)];
      expect([isAlive(first), isAlive(second)]).toEqual([true, true]);
      for (let round = 0; round < 5; round += 1) expect(await sh(`sleep 0.03; ls -A "$TMPDIR"`)).toBe("");
      writeFileSync(gate, "");
      await other.ended;
      await until("both are gone", () => !isAlive(first) && !isAlive(second));
      const again = await sh(LOOK);
      expect(await sh(LOOK), "nobody is left: used again").toBe(again);
    });

    it("rule 15: a process whose first thread has ended is ended too", async (ctx) => {
      if (!has("cc", "--version")) ctx.skip("no C compiler");
      if (kind === "node") ctx.skip("the Node spawner finds it by its token, and takes it for a zombie");
      const [source, program] = [join(directory, "stays.c"), join(directory, "stays")];
      writeFileSync(source, THREAD_STAYS);
      execFileSync("cc", ["-pthread", "-o", program, source]);
      const file = newFile();
      await sh(`cd "$TMPDIR"; ${program} ${file}; until [ -s ${file} ]; do sleep 0.01; done`);
      expect(existsSync(`/proc/${await readPid(file)}`)).toBe(false);
    });

    it("are gone when the spawner has been idle for a moment, and when it ends", async () => {
      const above = tmpdirsOf(shared, session.spawner.pid);
      await sh("true");
      await until("the directory above is gone", () => !existsSync(above));
      expect(nameOf(await sh(LOOK))).toContain(above);
      const own = await openSession(kind);
      const prefix = join(own.scratch, "own");
      await own.sh("true", { tmpdir: prefix });
      await own.spawner.close();
      expect(existsSync(tmpdirsOf(prefix, own.spawner.pid))).toBe(false);
    });

    it("are made again below a directory that a task has removed; that of a stranger is not used", async () => {
      await sh('rm -rf "$(dirname "$TMPDIR")"');
      expect(await sh(LOOK)).toMatch(/ 700 /);
      const foreign = join(session.scratch, "foreign");
      mkdirSync(tmpdirsOf(foreign, session.spawner.pid), { mode: 0o777 });
      const refused = await session.run(["true"], { tmpdir: foreign });
      expect(refused.error).toMatchObject({ stage: "tmpdir", code: "EEXIST" });
    });
  });
}
