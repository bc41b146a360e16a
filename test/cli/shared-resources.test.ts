import { appendFileSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, StatusView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * What this machine and a cluster have in all, counted from inside the tasks: each writes a line when it has begun and one
 * before it ends, to one file. Lines stand in the order in which they were written, so whatever is open at a line was
 * held at that moment.
 */

const HAS: Readonly<Record<string, number>> = { cpus: 3, licence: 2, token: 2 };

const CLUSTERS = `
clusters:
  local: { resources: { cpus: 3, licence: 2, mem: 8G }, grace: 1s, queues: { a: {}, b: {} } }
  sim:
    type: simulated
    simulation: { nodes: 3, cores-per-node: 4 }
    licences: { token: 2 }
    queues: { q: { nodes: 1, fleet: { max: 3, period: 1s } } }
  grid: { type: slurm, bin: /no/such/directory, queues: { q: { cores: 2 } } }
`;

let slipway: SlipwayHome;
let notes: string;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), CLUSTERS);
  notes = join(slipway.cwd, "notes");
  appendFileSync(notes, "");
  expect((await slipway.run(["up"])).status).toBe(0);
});
afterAll(() => slipway.cleanup());

const linesOf = (): string[][] =>
  readFileSync(notes, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "));

/** The most that was held at once, and what ran beside a task that must be alone. */
const count = (): { most: Record<string, number>; besideAlone: string[]; open: number } => {
  const held = new Map<string, [string, number][]>();
  const most: Record<string, number> = {};
  const besideAlone: string[] = [];
  for (const [sign, id, ...amounts] of linesOf()) {
    if (sign === "-") {
      held.delete(id!);
      continue;
    }
    held.set(
      id!,
      amounts.map((text) => [text.split("=")[0]!, Number(text.split("=")[1])]),
    );
    const sums: Record<string, number> = {};
    for (const all of held.values()) for (const [name, n] of all) sums[name] = (sums[name] ?? 0) + n;
    for (const [name, n] of Object.entries(sums)) most[name] = Math.max(most[name] ?? 0, n);
    const here = [...held].filter(([, all]) => all.some(([name]) => name === "cpus" || name === "alone"));
    if (here.length > 1 && here.some(([, all]) => all.some(([name]) => name === "alone")))
      besideAlone.push(here.map(([one]) => one).join("+"));
  }
  return { most, besideAlone, open: held.size };
};

const ID = "$SLIPWAY_RUN.$SLIPWAY_TASK.$SLIPWAY_ATTEMPT";
const submit = async (array: number, says: string, ...words: string[]): Promise<number> => {
  const script = `echo "+ ${ID} ${says}" >> '${notes}'; sleep 0.0$(( SLIPWAY_TASK % 7 + 2 )); echo "- ${ID}" >> '${notes}'`;
  const all = ["submit", "--array", `1-${array}`, ...words, "--", "sh", "-c", script];
  return (await slipway.json<{ run: number }>(all)).run;
};

const crash = async (): Promise<void> => {
  process.kill((await slipway.json<StatusView>(["status"])).server.pid, "SIGKILL");
  await slipway.run(["up"]);
};

describe("what is shared is never exceeded", () => {
  it("row 001-36: by two queues, pilots and agents added by hand, tasks sent here from elsewhere, across crashes", async () => {
    const licence = ["--resource", "licence=1"];
    const runs = [
      await submit(25, "cpus=1 licence=1", "--queue", "a", ...licence),
      await submit(25, "cpus=1 licence=1", "--queue", "b", ...licence),
      await submit(20, "cpus=2", "--queue", "b", "--cpus", "2"),
      await submit(30, "cpus=1", "--queue", "a"),
      await submit(20, "cpus=1", "--local"),
      await submit(20, "cpus=1", "--cluster", "grid"),
      await submit(4, "alone=1", "--cluster", "grid", "--resource", "ghost=1"),
      await submit(2, "alone=1", "--local", "--cpus", "64"),
      await submit(30, "token=1", "--cluster", "sim", "--resource", "token=1"),
    ];
    for (const queue of ["a", "b"])
      expect((await slipway.run(["pilots", "add", "--queue", queue, "--count", "2"])).status).toBe(0);
    const hands = ["a", "b"].map((queue) =>
      slipway.start(["agent", "--cpus", "3", "--resource", "licence=2", "--queue", queue], { timeoutMs: 110_000 }),
    );
    for (const hand of hands) await hand.saw(/agent [0-9a-f-]{36} on /, "stderr");
    for (const share of [20, 70]) {
      await until(`${share} tasks to have begun`, () => (linesOf().length >= 2 * share ? true : undefined));
      await crash();
    }
    runs.push(await submit(20, "cpus=1 licence=2", "--queue", "b", "--resource", "licence=2"));
    const waited = await slipway.run(["wait", ...runs.map(String)], { timeoutMs: 100_000 });
    expect(waited.status).toBe(0);
    const views = await slipway.json<RunView[]>(["list"]);
    expect(views.every(({ state, losses }) => state === "DONE" && losses === 0)).toBe(true);
    const { most, besideAlone, open } = count();
    expect(open).toBe(0);
    expect(linesOf()).toHaveLength(2 * (25 + 25 + 20 + 30 + 20 + 20 + 4 + 2 + 30 + 20));
    expect(besideAlone).toEqual([]);
    // all of it was used, and never more
    expect(most).toEqual({ ...HAS, alone: 1 });
    for (const hand of hands) {
      hand.child.kill("SIGTERM");
      await hand.ended;
    }
  });
});
