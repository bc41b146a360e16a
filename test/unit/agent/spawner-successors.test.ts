import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { implementations, leftIn, openSession, removeDirectory, type Session } from "./spawner-harness.ts";

afterAll(removeDirectory);

for (const { kind, absent } of implementations) {
  describe.skipIf(absent !== "")(
    `the ${kind} spawner starts successors by itself${absent && ` (skipped: ${absent})`}`,
    () => {
      let session: Session;
      let names = 0;
      /** A file that tasks append to, and one that lets the first of them end. */
      const files = (): { log: string; gate: string } => {
        names += 1;
        const log = join(session.scratch, `log${names}`);
        appendFileSync(log, "");
        return { log, gate: join(session.scratch, `gate${names}`) };
      };
      const sh = (script: string): string[] => ["/bin/sh", "-c", script];
      const gated = ({ log, gate }: { log: string; gate: string }): string[] =>
        sh(`echo up; until [ -e ${gate} ]; do sleep 0.01; done; echo first >> ${log}`);
      beforeAll(async () => {
        session = await openSession(kind);
      });
      afterAll(() => session.spawner.close());

      it("one after the other, each after all of the one before has ended", async () => {
        const at = files();
        const first = session.start(gated(at));
        const second = session.start(sh(`echo second >> ${at.log}`), { after: first.id });
        const third = session.start(sh(`echo third >> ${at.log}`), { after: second.id });
        await first.said("up");
        expect(readFileSync(at.log, "utf8")).toBe("");
        writeFileSync(at.gate, "");
        const exits = await Promise.all([first.ended, second.ended, third.ended]);
        expect(exits.map(({ code }) => code)).toEqual([0, 0, 0]);
        expect(readFileSync(at.log, "utf8")).toBe("first\nsecond\nthird\n");
        expect(exits[1]!.startedAt).toBeGreaterThanOrEqual(exits[0]!.endedAt);
      });

      it("at once, if the one before has ended already or never was", async () => {
        const first = await session.run(["true"]);
        expect((await session.run(["true"], { after: first.id })).code).toBe(0);
        expect((await session.run(["true"], { after: 4_000_000 })).code).toBe(0);
      });

      it("whatever the end of the one before, also if it could not start", async () => {
        const failed = session.start(["/no/such/program"]);
        const second = session.start(["true"], { after: failed.id, cwd: "/no/such/directory" });
        const third = session.start(["true"], { after: second.id, tmpdir: "/proc/no/tmpdir" });
        const fourth = session.start(sh("exit 4"), { after: third.id });
        expect((await failed.ended).code).toBe(127);
        expect((await second.ended).error?.stage).toBe("cwd");
        expect((await third.ended).error?.stage).toBe("tmpdir");
        expect((await fourth.ended).code).toBe(4);
      });

      it("not at all, if it is ended while it waits; those behind it keep their turn", async () => {
        const at = files();
        const first = session.start(gated(at));
        const dropped = session.start(sh(`echo dropped >> ${at.log}`), { after: first.id });
        const third = session.start(sh(`echo third >> ${at.log}`), { after: dropped.id });
        await first.said("up");
        session.spawner.end(dropped.id);
        expect((await dropped.ended).error).toMatchObject({ stage: "dropped", code: "ECANCELED" });
        expect(leftIn(dropped.tmpdirs)).toEqual([]);
        writeFileSync(at.gate, "");
        expect((await third.ended).code).toBe(0);
        expect(readFileSync(at.log, "utf8")).toBe("first\nthird\n");
      });

      it("not when the spawner is closed", async () => {
        const own = await openSession(kind);
        const mark = join(own.scratch, "mark");
        const first = own.start(sh("echo up; sleep 100"));
        own.start(sh(`echo > ${mark}`), { after: first.id });
        await first.said("up");
        await own.spawner.close();
        expect((await first.ended).signal).not.toBeNull();
        expect(existsSync(mark)).toBe(false);
      });
    },
  );
}
