import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunDocument, inBatches } from "../../src/client/index.ts";
import { SlipwayError } from "../../src/errors.ts";
import type { RunPlan } from "./schedule.ts";
import type { World } from "./world.ts";

/** A run on its way: what was asked for, and what the server said. */
export interface Submitted {
  readonly plan: RunPlan;
  readonly uuid: string;
  readonly name: string;
  /** Its number; undefined before it was acknowledged. */
  id: number | undefined;
  /** A request to cancel it was made; it may or may not have arrived. */
  canceled: boolean;
  /** Its failed tasks were told to run again. */
  retried: boolean;
  /** The command line gave up on it: it may be there under a uuid that nobody knows, besides the one acknowledged. */
  maybeTwice: boolean;
}

const PATIENCE_MS = 120_000;
const RETRY_MS = 50;

/** Errors after which the same request is sent again: the server is gone, or on its way out. */
const isPassing = (error: unknown): boolean =>
  error instanceof SlipwayError && ["no-server", "server-gone", "stopping"].includes(error.code);

export const expectedTotal = (plan: RunPlan): number => plan.tasks + plan.behind;

export const createSubmitted = (plan: RunPlan, nth: number): Submitted => ({
  plan,
  uuid: randomUUID(),
  name: `work-${nth}`,
  id: undefined,
  canceled: false,
  retried: false,
  maybeTwice: false,
});

const documentOf = (world: World, { plan, uuid, name }: Submitted): RunDocument => {
  const command = [world.tools.appender, world.ran, String(plan.ms), String(plan.every), String(plan.times)];
  const each = plan.lines ? { stream: "lines" } : { array: `0-${plan.tasks - 1}` };
  return {
    uuid,
    name,
    cwd: world.root,
    environment: {},
    tasks: [
      {
        name: "first",
        run: command,
        each,
        retries: plan.retries,
        ...(plan.retryDelay === undefined ? {} : { "retry-delay": plan.retryDelay }),
        ...(plan.timeLimit === undefined ? {} : { "time-limit": plan.timeLimit }),
      },
      ...(plan.behind > 0
        ? [
            {
              name: "behind",
              run: [world.tools.appender, world.ran, "0", "0", "0"],
              each: { array: `1-${plan.behind}` },
              after: "first",
            },
          ]
        : []),
    ],
  };
};

/** One try. Resolves when the server has acknowledged it. */
export const submitOnce = async (world: World, submitted: Submitted): Promise<void> => {
  const { plan } = submitted;
  const lines = {
    group: 0,
    batches: () =>
      inBatches(
        Array.from({ length: plan.tasks }, (_, i) => `line ${i}`),
        50,
      ),
  };
  // `once`: a lost connection is told, not hidden by the client's own tries
  const { run } = await world.client.submit(
    documentOf(world, submitted),
    plan.lines ? [{ ...lines, once: true }] : [{ group: -1, batches: () => inBatches([]), once: true }],
  );
  submitted.id = run;
};

/** The command line makes a new uuid at each call, so that only a whole failure may be tried again. */
const submitByCli = async (world: World, submitted: Submitted): Promise<boolean> => {
  const file = join(world.root, `${submitted.name}.yaml`);
  const { uuid: _, environment: __, ...document } = documentOf(world, submitted) as Record<string, unknown>;
  const lines = join(world.root, `${submitted.name}.txt`);
  const tasks = (document["tasks"] as Record<string, unknown>[]).map((task) =>
    "stream" in ((task["each"] ?? {}) as object) ? { ...task, each: { lines } } : task,
  );
  await writeFile(lines, Array.from({ length: submitted.plan.tasks }, (_, i) => `line ${i}\n`).join(""));
  await writeFile(file, JSON.stringify({ ...document, tasks }));
  const { status, stdout } = await world.cli(["submit", "--json", file]);
  if (status !== 0) return false;
  submitted.id = (JSON.parse(stdout) as { run: number }).run;
  return true;
};

/** Submits until it is acknowledged, whatever happens to the server meanwhile. */
export const submitSurely = async (world: World, submitted: Submitted): Promise<void> => {
  const began = performance.now();
  if (submitted.plan.by === "cli") {
    if (await submitByCli(world, submitted)) {
      world.note(`run ${submitted.id} (${submitted.name}) acknowledged to the command line`);
      return;
    }
    submitted.maybeTwice = true;
  }
  for (;;) {
    try {
      await submitOnce(world, submitted);
      world.note(`run ${submitted.id} (${submitted.name}) acknowledged`);
      return;
    } catch (error) {
      if (!isPassing(error) || performance.now() - began > PATIENCE_MS) throw error;
      await sleep(RETRY_MS);
    }
  }
};
