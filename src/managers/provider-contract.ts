/* oxlint-disable max-lines-per-function -- a suite is one list of promises, read from top to bottom */
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type * as Vitest from "vitest";
import type { PilotAsk } from "./manager.ts";
import type { JobRequest, JobStatus, Provider } from "./provider.ts";
import { type WaitingRow, waitingReason } from "./waiting-reason.ts";

/**
 * What every provider promises. A driver of another workload manager, even one from outside, passes this suite
 * unchanged; `skip` names what it cannot do, by the title of the promise, with the reason.
 */
export interface ProviderUnderTest {
  readonly name: string;
  /** Why none of it can be tested here. */
  readonly unavailable?: string | undefined;
  boot(): Promise<BootedManager>;
  readonly skip?: Readonly<Record<string, string>>;
  /** Its words for waiting, with what they mean. */
  readonly reasons?: readonly WaitingRow[];
  /** Options that hold a job, and options that make it wait for something that never comes. */
  readonly held?: readonly string[];
  readonly waiting?: readonly string[];
  /** Options with which the manager refuses a job, and words of its message that the error must contain. */
  readonly refused?: { readonly options: readonly string[]; readonly words: RegExp };
  /** The end of a name with unusual but allowed characters; names reach the manager unchanged. */
  readonly oddName?: string;
  /** It has arrays. */
  readonly array?: ArrayUnderTest;
  /** The id of a job that never existed, as the manager would write it. */
  readonly strangerId?: (n: number) => string;
}

export interface ArrayUnderTest {
  /** The variable with an element's number in its job, and the number of the first one. */
  readonly variable: string;
  readonly first: number;
  /** Options with which an array waits or is held, where those of `waiting` do not do. */
  readonly waiting?: readonly string[];
}

export interface BootedManager {
  /** A driver that knows nothing of the others. */
  create(): Promise<Provider>;
  /** A job that runs this line of shell; `scriptRequest` for managers that take scripts. */
  request(job: ContractJob): Promise<JobRequest>;
  /**
   * A driver whose manager does not answer until `mend` is called. `endless`: a submission waits for it for ever; if it
   * is cut short, nobody knows whether the manager took the job.
   */
  unreachable?(): Promise<{ readonly provider: Provider; readonly endless?: boolean; mend?(): Promise<void> }>;
  /** How many commands all its drivers have executed so far. */
  commands?(): number;
  stop?(): Promise<void>;
}

export interface ContractJob {
  readonly name: string;
  /** Exists, for this job alone, writable by everyone. */
  readonly directory: string;
  readonly line: string;
  readonly options: readonly string[];
}

/** One node, one core, five minutes: what each dialect must be able to express. */
export const scriptRequest = async <Own = unknown>(
  job: ContractJob,
  directives: (ask: PilotAsk<Own>) => readonly string[],
  ask: Partial<PilotAsk<Own>> = {},
): Promise<JobRequest> => {
  const lines = directives({
    name: job.name,
    stdout: join(job.directory, "stdout"),
    stderr: join(job.directory, "stderr"),
    nodes: 1,
    cores: 1,
    walltime: 300,
    options: [],
    skipOptions: [],
    own: {} as Own,
    ...ask,
  });
  const script = join(job.directory, "script.sh");
  await writeFile(script, ["#!/bin/sh", ...lines, job.line, ""].join("\n"), { mode: 0o755 });
  return { name: job.name, directory: job.directory, command: [], script, options: job.options };
};

/** One listing and one query of the history, whatever the number of jobs. */
const MOST_COMMANDS = 2;
const PATIENCE_MS = 150_000;

/** Asks until there is an answer: outside of this repository the suite stands alone. */
const awaited = async <T>(what: () => string, ask: () => Promise<T | undefined>): Promise<T> => {
  for (const start = performance.now(); ; await sleep(50)) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() - start > PATIENCE_MS) throw new Error(`waited ${PATIENCE_MS / 1000} s in vain: ${what()}`);
  }
};

const WAITS: readonly string[] = ["queued", "held"];

/** Waits until a job is in one of these states and looks like this; managers take their time. */
const untilIn = (
  provider: Provider,
  id: string,
  states: readonly string[],
  looks: (status: JobStatus) => boolean = () => true,
): Promise<JobStatus> => {
  let status: JobStatus | undefined;
  return awaited(
    () => `job ${id} to be ${states.join(" or ")}, which is ${JSON.stringify(status)}`,
    async () => {
      status = (await provider.poll([id])).get(id);
      return status !== undefined && states.includes(status.state) && looks(status) ? status : undefined;
    },
  );
};

const untilThere = (path: string): Promise<boolean> =>
  awaited(
    () => path,
    async () => existsSync(path) || undefined,
  );

/** What the suite is written with: `import * as vitest from "vitest"`, whichever version is installed. */
export type TestTools = Pick<typeof Vitest, "describe" | "it" | "expect" | "beforeAll" | "afterAll">;

export const providerContract = (
  { describe, it, expect, beforeAll, afterAll }: TestTools,
  manager: ProviderUnderTest,
): void => {
  const { name, skip = {}, unavailable } = manager;
  const stranger = manager.strangerId ?? ((n) => String(900_000_000 + n));
  const promise = (title: string, test: () => Promise<void>): void => {
    const reason = skip[title];
    it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, test);
  };
  /** Promises of managers that have arrays. */
  const ofArrays = (title: string, test: (array: ArrayUnderTest) => Promise<void>): void => {
    const { array } = manager;
    if (array === undefined) it.skip(`${title} (skipped: it has no arrays)`, async () => undefined);
    else promise(title, () => test(array));
  };
  const given = <T>(value: T | undefined, what: string): T => {
    if (value === undefined) throw new Error(`say \`${what}\` of ${name}, or why not in \`skip\``);
    return value;
  };
  const title = `provider contract: ${name}${unavailable === undefined ? "" : ` (skipped: ${unavailable})`}`;

  describe.skipIf(unavailable !== undefined)(title, () => {
    let booted: BootedManager;
    let provider: Provider;
    let directory: string;
    let jobs = 0;
    const prefix = `slipway-contract-${process.pid}`;
    const request = async (line: string, options: readonly string[] = [], suffix = ""): Promise<JobRequest> => {
      jobs += 1;
      const own = join(directory, String(jobs));
      await mkdir(own);
      await chmod(own, 0o777);
      return await booted.request({ name: `${prefix}-${jobs}${suffix}`, directory: own, line, options });
    };
    const submit = async (...job: Parameters<typeof request>): Promise<{ name: string; nativeId: string }> => {
      const asked = await request(...job);
      return { name: asked.name, nativeId: (await provider.submit(asked)).nativeId };
    };
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), "slw-"));
      await chmod(directory, 0o755);
      booted = await manager.boot();
      provider = await booted.create();
    });
    /** A job that has begun: some managers forget a cancellation that arrives while they start a job. */
    const submitBegun = async (suffix?: string): Promise<{ name: string; nativeId: string }> => {
      const begun = join(directory, String(jobs + 1), "begun");
      const job = await submit(`touch ${begun}; sleep 1000`, [], suffix);
      await untilThere(begun);
      await untilIn(provider, job.nativeId, ["active"]);
      return job;
    };

    afterAll(async () => {
      try {
        const left = await provider.list(prefix);
        await provider.cancel(left.map(({ nativeId }) => nativeId));
        for (const { nativeId } of left) await untilIn(provider, nativeId, ["ended"]);
      } finally {
        await booted.stop?.();
        await rm(directory, { recursive: true, force: true });
      }
    });

    promise("describes the largest node it could offer", async () => {
      const { version, largest, partitions } = await provider.describe();
      expect(version).not.toBe("");
      expect(largest["cpus"]).toBeGreaterThan(0);
      for (const partition of partitions ?? []) {
        expect(partition.name).not.toBe("");
        expect(partition.nodes).toBeGreaterThanOrEqual(0);
      }
    });

    promise("runs a job to its end, and says when it has ended", async () => {
      const gate = join(directory, "gate");
      const { nativeId } = await submit(`until [ -e ${gate} ]; do sleep 0.02; done`);
      expect(await untilIn(provider, nativeId, ["active", "ended"])).toMatchObject({ state: "active" });
      await writeFile(gate, "");
      expect(await untilIn(provider, nativeId, ["ended"])).toMatchObject({ outcome: "done", exitCode: 0 });
    });

    promise("says of a job that failed with which exit code", async () => {
      const { nativeId } = await submit("exit 3");
      expect(await untilIn(provider, nativeId, ["ended"])).toMatchObject({ outcome: "failed", exitCode: 3 });
    });

    promise("tells a cancelled job from one that failed", async () => {
      const { nativeId } = await submitBegun();
      await provider.cancel([nativeId]);
      expect(await untilIn(provider, nativeId, ["ended"])).toMatchObject({ outcome: "cancelled" });
    });

    promise("answers about many jobs at once, also about those it never had", async () => {
      const { nativeId } = await submitBegun();
      const answers = await provider.poll([nativeId, stranger(1), nativeId, "no such id", ""]);
      expect(answers.get(nativeId)?.state).toMatch(/queued|active/);
      for (const id of [stranger(1), "no such id", ""])
        expect(answers.get(id)).toMatchObject({ state: "ended", outcome: "unknown" });
      await provider.cancel([nativeId]);
      expect((await provider.poll([])).size).toBe(0);
    });

    promise("asks and cancels 200 jobs with at most two commands each", async () => {
      const count = given(booted.commands, "commands");
      const ended = await submit("exit 0");
      await untilIn(provider, ended.nativeId, ["ended"]);
      const alive = await submitBegun();
      const ids = [ended.nativeId, alive.nativeId, ...Array.from({ length: 198 }, (_, n) => stranger(n))];
      const before = count();
      const answers = await provider.poll(ids);
      expect(count() - before).toBeLessThanOrEqual(MOST_COMMANDS);
      expect(answers.size).toBe(200);
      expect(answers.get(ended.nativeId)?.state).toBe("ended");
      expect(answers.get(alive.nativeId)?.state).toMatch(/queued|active/);
      const between = count();
      await provider.cancel(ids);
      expect(count() - between).toBeLessThanOrEqual(MOST_COMMANDS);
      await untilIn(provider, alive.nativeId, ["ended"]);
    });

    promise("shows a held job as held", async () => {
      const { name: job, nativeId } = await submit("sleep 1000", given(manager.held, "held"));
      expect(await untilIn(provider, nativeId, ["held", "active", "ended"])).toMatchObject({ state: "held" });
      expect(await provider.list(prefix)).toContainEqual({ name: job, nativeId });
      await provider.cancel([nativeId]);
      await untilIn(provider, nativeId, ["ended"]);
    });

    promise("shows a job that waits as queued", async () => {
      const { nativeId } = await submit("sleep 1000", given(manager.waiting, "waiting"));
      const { state, raw } = await untilIn(provider, nativeId, ["queued", "active", "ended"]);
      expect(state).toBe("queued");
      expect(raw).not.toBe("");
      await provider.cancel([nativeId]);
      expect(await untilIn(provider, nativeId, ["ended"])).toMatchObject({ outcome: "cancelled" });
    });

    promise("says why a job is held, and why one waits, in words that have a plain meaning", async () => {
      const reasons = given(manager.reasons, "reasons");
      for (const [options, state] of [
        [given(manager.held, "held"), "held"],
        [given(manager.waiting, "waiting"), "queued"],
      ] as const) {
        const { nativeId } = await submit("sleep 1000", options);
        // the scheduler says so once it has looked at the job
        const status = await untilIn(
          provider,
          nativeId,
          [state],
          ({ raw, reason = "" }) => waitingReason(reasons, reason === "" ? raw : reason) !== undefined,
        );
        expect(waitingReason(reasons, status.reason ?? status.raw)).toEqual({
          meaning: expect.stringMatching(/^[a-z].*[a-z]$/),
          remedy: expect.stringMatching(/\.$/),
        });
        await provider.cancel([nativeId]);
        await untilIn(provider, nativeId, ["ended"]);
      }
    });

    promise(
      "does not take a manager that gives no answer for one that has no jobs, and says that it gives none",
      async () => {
        const { provider: cut, endless = false, mend } = await given(booted.unreachable, "unreachable")();
        try {
          const asked = await request("true");
          const calls: Readonly<Record<string, () => Promise<unknown>>> = {
            describe: () => cut.describe(),
            submit: () => cut.submit(asked),
            poll: () => cut.poll([stranger(1)]),
            cancel: () => cut.cancel([stranger(1)]),
            list: () => cut.list(prefix),
            ...(cut.tryOut === undefined ? {} : { tryOut: () => cut.tryOut!(asked) }),
          };
          for (const [call, act] of Object.entries(calls)) {
            const error: unknown = await act().catch((cause: unknown) => cause);
            const isOpen = endless && (call === "submit" || call === "tryOut");
            const wanted = isOpen
              ? { name: "CommandError", timedOut: true }
              : { code: "cluster-unreachable", facts: { detail: expect.stringMatching(/\w/) } };
            expect([call, error]).toMatchObject([call, wanted]);
          }
        } finally {
          await mend?.();
        }
        expect(await provider.list(`${prefix}-no-such-job`)).toEqual([]);
      },
    );

    promise("refuses with the manager's own words", async () => {
      const { options, words } = given(manager.refused, "refused");
      const asked = await request("true", options);
      await expect(provider.submit(asked)).rejects.toMatchObject({
        code: "cluster-refused",
        facts: { detail: expect.stringMatching(words) },
      });
      expect((await provider.list(prefix)).map(({ name: job }) => job)).not.toContain(asked.name);
    });

    promise("lets the manager judge a job without running it", async () => {
      const judge = given(provider.tryOut, "tryOut");
      const good = await request(`touch ${directory}/ran`);
      expect(await judge(good)).toEqual(expect.any(String));
      const { options, words } = given(manager.refused, "refused");
      await expect(judge(await request("true", options))).rejects.toMatchObject({
        code: "cluster-refused",
        facts: { detail: expect.stringMatching(words) },
      });
      expect((await provider.list(prefix)).map(({ name: job }) => job)).not.toContain(good.name);
    });

    promise("finds living jobs by the beginning of their name, and no others", async () => {
      const { name: job, nativeId } = await submitBegun();
      expect(await provider.list(prefix)).toContainEqual({ name: job, nativeId });
      expect(await provider.list(`${prefix}-no-such-job`)).toEqual([]);
      await provider.cancel([nativeId]);
      await untilIn(provider, nativeId, ["ended"]);
      expect((await provider.list(prefix)).map(({ nativeId: id }) => id)).not.toContain(nativeId);
    });

    promise("takes names with unusual characters, and finds them as they were given", async () => {
      const { name: job, nativeId } = await submitBegun(given(manager.oddName, "oddName"));
      expect(await provider.list(job)).toEqual([{ name: job, nativeId }]);
      await provider.cancel([nativeId]);
      await untilIn(provider, nativeId, ["ended"]);
    });

    promise("cancels; cancelling what has ended, or what never was, is no error", async () => {
      const { nativeId } = await submitBegun();
      await provider.cancel([stranger(1), nativeId, "no such id", ""]);
      await untilIn(provider, nativeId, ["ended"]);
      await provider.cancel([nativeId]);
      await provider.cancel([]);
    });

    const idle = ({ waiting = given(manager.waiting, "waiting") }: ArrayUnderTest): readonly string[] => waiting;
    const submitArray = async (
      count: number,
      ...job: Parameters<typeof request>
    ): Promise<{ name: string; nativeId: string; elements: readonly string[] }> => {
      const asked = await request(...job);
      const { nativeId, elements = [] } = await provider.submit({ ...asked, array: count });
      expect(new Set(elements).size).toBe(count);
      return { name: asked.name, nativeId, elements };
    };

    ofArrays(
      "runs an array as jobs with numbers of their own, and tells how each ended",
      async ({ variable, first }) => {
        const own = join(directory, String(jobs + 1));
        const line = `touch ${own}/ran.$${variable}; [ "$${variable}" -ne ${first + 1} ] || exit 3`;
        const { elements } = await submitArray(3, line);
        const ends = await Promise.all(elements.map((id) => untilIn(provider, id, ["ended"])));
        expect(ends.map(({ outcome }) => outcome)).toEqual(["done", "failed", "done"]);
        expect(ends[1]).toMatchObject({ exitCode: 3 });
        for (const element of [0, 1, 2]) expect(existsSync(join(own, `ran.${first + element}`))).toBe(true);
      },
    );

    ofArrays("cancels elements one by one: those that wait and those that run; the others stay", async (array) => {
      const waiting = await submitArray(3, "sleep 1000", idle(array));
      const [kept, taken] = [waiting.elements[0]!, waiting.elements[1]!];
      await untilIn(provider, taken, WAITS);
      await provider.cancel([taken]);
      expect(await untilIn(provider, taken, ["ended"])).toMatchObject({ outcome: "cancelled" });
      expect(WAITS).toContain((await provider.poll([kept])).get(kept)?.state);
      await provider.cancel(waiting.elements);
      const own = join(directory, String(jobs + 1));
      const running = await submitArray(2, `touch ${own}/begun.$${array.variable}; sleep 1000`);
      for (const element of [0, 1]) await untilThere(join(own, `begun.${array.first + element}`));
      for (const id of running.elements) await untilIn(provider, id, ["active"]);
      await provider.cancel([running.elements[1]!]);
      expect(await untilIn(provider, running.elements[1]!, ["ended"])).toMatchObject({ outcome: "cancelled" });
      expect((await provider.poll(running.elements)).get(running.elements[0]!)?.state).toBe("active");
      await provider.cancel(running.elements);
    });

    ofArrays(
      "rule 3: lists the living elements of an array with their places, also to a driver that is new",
      async (array) => {
        const { name: job, nativeId, elements } = await submitArray(3, "sleep 1000", idle(array));
        await provider.cancel([elements[1]!]);
        await untilIn(provider, elements[1]!, ["ended"]);
        const successor = await booted.create();
        const found = (await successor.list(job)).toSorted((a, b) => a.array!.element - b.array!.element);
        expect(found).toEqual(
          [0, 2].map((element) => ({ name: job, nativeId: elements[element], array: { nativeId, element } })),
        );
        expect(WAITS).toContain((await successor.poll(elements)).get(elements[2]!)?.state);
        await successor.cancel(elements);
      },
    );

    ofArrays("asks and cancels an array of 12 with at most two commands each", async (array) => {
      const count = given(booted.commands, "commands");
      const { elements } = await submitArray(12, "sleep 1000", idle(array));
      await untilIn(provider, elements[11]!, WAITS);
      const before = count();
      const answers = await provider.poll([...elements, stranger(1)]);
      expect(count() - before).toBeLessThanOrEqual(MOST_COMMANDS);
      for (const id of elements) expect([id, WAITS.includes(answers.get(id)?.state ?? "")]).toEqual([id, true]);
      const between = count();
      await provider.cancel(elements);
      expect(count() - between).toBeLessThanOrEqual(MOST_COMMANDS);
    });

    promise("rule 3: answers a driver that did not submit the job, which adopts it", async () => {
      const { nativeId } = await submitBegun();
      const successor = await booted.create();
      expect((await successor.poll([nativeId])).get(nativeId)?.state).toMatch(/queued|active/);
      await successor.cancel([nativeId]);
      await untilIn(successor, nativeId, ["ended"]);
    });
  });
};
