import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RunDocument, inBatches } from "../../src/client/index.ts";
import { SlipwayError } from "../../src/errors.ts";
import type { RunPlan } from "./schedule.ts";
import type { World } from "./world.ts";

/** A run under way: what was asked for, and what the server said. */
export interface Submitted {
  readonly plan: RunPlan;
  readonly uuid: string;
  readonly name: string;
  /** The run that it waits for. */
  readonly after: Submitted | undefined;
  /** Its number; undefined before it was acknowledged. */
  id: number | undefined;
  /** We asked to cancel it; the request may or may not have arrived. */
  canceled: boolean;
  /** How often it was retried, and whether that ever included all tasks. */
  retried: number;
  retriedAll: boolean;
  /** The command line gave up on it: it may exist a second time, under a uuid that nobody knows. */
  maybeTwice: boolean;
}

const PATIENCE_MS = 120_000;
const RETRY_MS = 50;

/** Errors after which the same request is sent again: the server is gone or about to go. */
export const isPassing = (error: unknown): boolean =>
  error instanceof SlipwayError && ["no-server", "server-gone", "stopping"].includes(error.code);

const linkName = (nth: number): string => `link-${nth}`;

/** Which of the tasks in a row a group is; undefined for other groups. */
export const linkNumber = (name: string): number | undefined =>
  name.startsWith("link-") ? Number(name.slice("link-".length)) : undefined;

/** Groups of a run and their tasks, in order. */
export const groupsOf = (plan: RunPlan): { readonly name: string; readonly tasks: number }[] =>
  [
    { name: "first", tasks: plan.tasks },
    { name: "behind", tasks: plan.behind },
    { name: "alarm", tasks: plan.alarm ?? 0 },
    { name: "always", tasks: plan.always ?? 0 },
    ...Array.from({ length: plan.links ?? 0 }, (_, i) => ({ name: linkName(i), tasks: 1 })),
  ].filter(({ tasks }) => tasks > 0);

export const expectedTotal = (plan: RunPlan): number => groupsOf(plan).reduce((sum, { tasks }) => sum + tasks, 0);

export const createSubmitted = (plan: RunPlan, nth: number, after?: Submitted): Submitted => ({
  plan,
  uuid: randomUUID(),
  name: `work-${nth}`,
  after,
  id: undefined,
  canceled: false,
  retried: 0,
  retriedAll: false,
  maybeTwice: false,
});

const AFTER = { behind: "first", alarm: { first: "failed" }, always: { first: "any" } } as const;

const documentOf = (world: World, { plan, uuid, name, after }: Submitted): RunDocument => {
  const command = [world.tools.appender, world.ran, String(plan.ms), String(plan.every), String(plan.times)];
  const how = plan.jobs === true ? { via: "job", cluster: "sim" } : {};
  const each = plan.lines ? { stream: "lines" } : { array: `0-${plan.tasks - 1}` };
  return {
    uuid,
    name,
    cwd: world.root,
    environment: {},
    ...(after === undefined ? {} : { after: { [String(after.id)]: plan.after!.on } }),
    tasks: groupsOf(plan).map((group) => {
      const link = linkNumber(group.name);
      if (link !== undefined)
        return {
          name: group.name,
          run: plan.kills === undefined ? command : [...command.slice(0, 3), "0", "0"],
          retries: plan.retries,
          ...(link === 0 ? {} : { after: linkName(link - 1) }),
        };
      return group.name === "first"
        ? {
            ...how,
            name: "first",
            run: plan.kills === undefined ? command : [...command, plan.kills],
            each,
            retries: plan.retries,
            ...(plan.retryDelay === undefined ? {} : { "retry-delay": plan.retryDelay }),
            ...(plan.timeLimit === undefined ? {} : { "time-limit": plan.timeLimit }),
          }
        : {
            ...how,
            name: group.name,
            run: [world.tools.appender, world.ran, "0", "0", "0"],
            each: { array: `1-${group.tasks}` },
            after: AFTER[group.name as keyof typeof AFTER],
          };
    }),
  };
};

async function* paced<T>(batches: AsyncIterable<T>, ms: number): AsyncGenerator<T> {
  for await (const batch of batches) {
    if (ms > 0) await sleep(ms);
    yield batch;
  }
}

/** One try. Resolves when the server has acknowledged it. */
export const submitOnce = async (world: World, submitted: Submitted): Promise<number> => {
  const { plan } = submitted;
  const lines = Array.from({ length: plan.tasks }, (_, i) => `line ${i}`);
  const pace = plan.repeat?.pace ?? 0;
  // `once`: reports a lost connection instead of hiding it behind the client's own retries
  const stream = plan.lines
    ? { group: 0, batches: () => paced(inBatches(lines, 50), pace), once: true }
    : { group: -1, batches: () => paced(inBatches([]), pace), once: true };
  const { run } = await world.client.submit(documentOf(world, submitted), [stream]);
  submitted.id = run;
  return run;
};

/** The command line makes a new uuid at each call, so only a complete failure may be retried. */
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

/** Equal requests in quick succession: all that are answered name the same run. */
const submitRepeated = async (world: World, submitted: Submitted): Promise<void> => {
  const { times, apart } = submitted.plan.repeat!;
  const answers = await Promise.allSettled(
    Array.from({ length: times }, (_, i) => sleep(i * apart).then(() => submitOnce(world, submitted))),
  );
  const runs = new Set<number>();
  for (const answer of answers) {
    if (answer.status === "fulfilled") runs.add(answer.value);
    // one that comes while the first is under way may be refused for that reason, but not with an internal error
    else if (!(answer.reason instanceof SlipwayError) || answer.reason.code === "internal") throw answer.reason;
  }
  world.note(`${submitted.name} was sent ${times} times and acknowledged as run ${[...runs].join(" and ") || "none"}`);
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
  } else if (submitted.plan.repeat !== undefined) await submitRepeated(world, submitted);
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
