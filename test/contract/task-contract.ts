import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import type { RunView, TaskView } from "../../src/api/schemas.ts";
import { type Client, connect } from "../../src/client/index.ts";
import type { RunOptions, SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { SUBMITTED_ENV, type SheetTask, sheetOf } from "./task-sheet.ts";

/** What every task is promised, whether an agent of a pilot runs it or it is a job of its own. */
export interface TaskPlace {
  readonly slipway: SlipwayHome;
  /** Of all commands. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly cluster: string;
  readonly queue: string;
  /** No more tasks of one core than this run there at once. */
  readonly most: number;
  /** The manager's own cancel, or a kill of all its processes; absent: nobody but Slipway can end a job. */
  readonly cancelJob?: ((nativeId: string) => Promise<void>) | undefined;
}

const PATIENCE_MS = 170_000;

/** `together`: all at once, and beside the same for the other way, where there is room for that. */
export const taskContract = (
  via: "pilot" | "job",
  place: () => TaskPlace,
  { together = false }: { readonly together?: boolean } = {},
): void =>
  void (together ? describe.concurrent : describe)(
    via === "job" ? "a task as a job of its own" : "a task on a pilot's agent",
    () => {
      const stem = `sheet-${via}`;
      let client: Client;
      let gates = 0;

      beforeAll(() => {
        client = connect({ home: place().slipway.home });
      });
      afterAll(() => client?.close());

      const options = (): RunOptions => ({ env: { ...place().env, ...SUBMITTED_ENV }, timeoutMs: PATIENCE_MS });
      const submit = async ({ onTestFailed }: TestContext, ...words: string[]): Promise<number> => {
        const where = ["--cluster", place().cluster, "--queue", place().queue, "--via", via];
        const { run } = await place().slipway.json<{ run: number }>(["submit", ...where, ...words], options());
        // what a failed test left at its gate would block the others
        onTestFailed(() => client.cancel(run).then(() => undefined));
        return run;
      };
      const ended = async (id: number): Promise<RunView> => {
        let last: RunView | undefined;
        for await (const view of client.watch(id, { signal: AbortSignal.timeout(PATIENCE_MS) })) last = view;
        return last!;
      };
      const output = async (id: string, stream: "stdout" | "stderr" = "stdout"): Promise<string> => {
        const [run, index] = id.split(".").map(Number);
        const pieces: Buffer[] = [];
        for await (const piece of client.taskLogs(run!, index!, { stream })) pieces.push(piece);
        return Buffer.concat(pieces).toString();
      };
      /** Waits at a gate until its file is there. */
      const gate = (): { readonly path: string; readonly script: string } => {
        gates += 1;
        const path = join(place().slipway.cwd, `${stem}-gate-${gates}`);
        return { path, script: `echo begun; until [ -e ${path} ]; do sleep 0.1; done; echo over` };
      };
      const running = (id: number, attempts = 1): Promise<TaskView> =>
        until(`attempt ${attempts} of ${id}.0 to run`, async () => {
          const task = await client.task(id, 0);
          return task.state === "AGENT_EXECUTING" && task.attempts.length === attempts ? task : undefined;
        });
      /** No manager has a job of these runs any more. */
      const gone = (...runs: readonly number[]): Promise<boolean> =>
        until("the last job of a task to end", async () =>
          (await client.jobs({ kind: "task" })).every(({ id }) => !runs.includes(Number(String(id).split(".")[0]))),
        );

      describe("one run of many kinds", () => {
        const shown = new Map<string, TaskView>();
        let sheet: readonly SheetTask[] = [];

        beforeAll(async () => {
          const { slipway, cluster, queue } = place();
          sheet = sheetOf({ cwd: slipway.cwd, stem });
          for (const name of [stem, `${stem}-below`]) {
            await mkdir(join(slipway.cwd, name), { recursive: true });
            await slipway.own(join(slipway.cwd, name));
          }
          const file = join(slipway.cwd, `${stem}.yaml`);
          const tasks = sheet.map(({ name, keys }) => ({ name, ...keys }));
          await writeFile(file, stringify({ name: stem, defaults: { cluster, queue, via }, tasks }));
          const { run } = await slipway.json<{ run: number }>(["submit", file], options());
          expect(await ended(run)).toMatchObject({ state: "FAILED", losses: 0 });
          for (const task of await client.tasks(run, { limit: 1000 })) shown.set(task.name, task);
        }, PATIENCE_MS + 10_000);

        // what is in it does not depend on where it runs
        for (const { name } of sheetOf({ cwd: "/", stem }))
          it(name, async () => {
            const wanted = sheet.find((each) => each.name === name)!;
            const task = shown.get("each" in wanted.keys ? `${name}[1]` : name)!;
            expect(task).toMatchObject(wanted.shows ?? { state: "DONE", exitCode: 0, attempts: [{ n: 1 }] });
            const streams = { stdout: await output(task.id), stderr: await output(task.id, "stderr") };
            for (const stream of ["stdout", "stderr"] as const) {
              const text = wanted[stream];
              if (typeof text === "string") expect(streams[stream]).toBe(text);
              else if (text !== undefined) expect(streams[stream]).toMatch(text);
            }
            const file = (path: string) => readFile(join(place().slipway.cwd, path), "utf8").catch(() => undefined);
            await wanted.check?.({ task, ...streams, file, exists: existsSync });
            expect(task.via).toBe(via);
            for (const { pilot, job } of task.attempts)
              expect([pilot === null, job === null]).toEqual(via === "job" ? [true, false] : [false, true]);
          });
      });

      it("--export none and names reach it as they do everywhere", async (test) => {
        const runs = await Promise.all(
          ["none", "SHEET_WORD,PATH"].map((names) =>
            submit(test, "--export", names, "--", "sh", "-c", 'echo "${SHEET_WORD-unset}"'),
          ),
        );
        for (const id of runs) await ended(id);
        expect(await Promise.all(runs.map((id) => output(`${id}.0`)))).toEqual(["unset\n", "two words\n"]);
      });

      it("what it writes is seen while it runs; cancelled then, it ends, and nothing of it is left", async (test) => {
        const id = await submit(test, "--", "sh", "-c", gate().script);
        const following = place().slipway.start(["logs", `${id}.0`, "-f"], options());
        await following.saw(/begun/);
        const { job } = await running(id);
        // jobs of tasks that have just ended may still be there
        const listed = (await client.jobs({ kind: "task" })).filter((each) => each.id === `${id}.0`);
        if (via === "job") {
          expect(job).toMatchObject({ cluster: place().cluster, queue: place().queue, state: "running" });
          expect(listed).toMatchObject([{ id: `${id}.0`, state: "running", nativeId: job!.nativeId }]);
        } else expect([job, listed]).toEqual([null, []]);
        await client.cancel(id);
        expect(await ended(id)).toMatchObject({ state: "CANCELED" });
        expect((await following.ended).stdout).toBe("begun\n");
        await gone(id);
      });

      it("cancelled while it waits, it never runs; what runs and waits beside it ends as well", async (test) => {
        const { most, slipway } = place();
        const ran = join(slipway.cwd, `${stem}-ran`);
        const first = await submit(test, "--array", `1-${most + 2}`, "--", "sh", "-c", gate().script);
        await until("tasks to run", async () => ((await client.run(first)).counts["AGENT_EXECUTING"] ?? 0) > 0);
        const second = await submit(test, "--priority", "-1", "--", "sh", "-c", `echo ran >>${ran}`);
        const causes = via === "job" ? ["job-queued", "job-held"] : ["busy", "pilot-queued", "queued-at-agent"];
        await until("why to tell that it waits", async () => causes.includes((await client.why(second, 0)).cause));
        await client.cancel(second);
        expect(await ended(second)).toMatchObject({ state: "CANCELED", started: null });
        await client.cancel(first);
        expect(await ended(first)).toMatchObject({ counts: { CANCELED: most + 2 }, losses: 0 });
        expect(existsSync(ran)).toBe(false);
        await gone(first, second);
      });

      // the pilot that ends under it may have tasks of others
      const alone = via === "pilot" ? it.sequential : it;
      alone("lost with its job it runs again, at no cost to its retries", async (test) => {
        const { cancelJob } = place();
        if (cancelJob === undefined) return test.skip("nobody but Slipway can end its job");
        const { path, script } = gate();
        const id = await submit(test, "--", "sh", "-c", script);
        const [first] = (await running(id)).attempts;
        const pilot = (await client.pilots()).find((each) => each.id === first!.pilot);
        await cancelJob((pilot?.nativeId ?? first!.job)!);
        await running(id, 2);
        await writeFile(path, "");
        expect(await ended(id)).toMatchObject({ state: "DONE", retries: 0 });
        const { attempts } = await client.task(id, 0);
        expect(attempts.map(({ state }) => state)).toEqual(["LOST", "DONE"]);
        if (via === "job") expect(attempts[1]!.job).not.toBe(attempts[0]!.job);
        await gone(id);
      });
    },
  );
