import { spawn, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ROOT } from "./slipway-process.ts";

/** The benchmarks still run, with a handful of tasks: no number is judged here. */

interface Results {
  readonly machine: object;
  readonly experiments: readonly {
    readonly name: string;
    readonly ours: number;
    readonly measured: { readonly at: string; readonly commit: string; readonly size: string };
  }[];
  readonly broken: Readonly<Record<string, string>>;
  readonly skipped: Readonly<Record<string, string>>;
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "slw-bench-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const bench = (...args: readonly string[]): Promise<Ended> => benchUnder([], ...args);

/** `words` come before the command, and change its surroundings. */
const benchUnder = (words: readonly string[], ...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const [program = "", ...rest] = [...words, process.execPath, join(ROOT, "bench", "main.mjs"), ...args];
    const child = spawn(program, rest, { stdio: ["ignore", "pipe", "pipe"] });
    const text = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (data: string) => {
        text[name] += data;
      });
    child.once("error", reject);
    child.once("close", (status) => resolve({ status, ...text }));
  });

const smoke = async (only: string, ...more: readonly string[]): Promise<Results> => {
  const output = join(directory, "results.json");
  const homes = join(directory, "homes");
  await mkdir(homes, { recursive: true });
  const ended = await bench("--smoke", "--json", "--only", only, "--dir", homes, "--output", output, ...more);
  expect(ended.status, ended.stderr).toBe(0);
  expect(await readdir(homes), "homes are removed").toEqual([]);
  const results = JSON.parse(await readFile(output, "utf8")) as Results;
  expect(results.broken).toEqual({});
  for (const { name, ours } of results.experiments) expect(ours, name).toBeGreaterThanOrEqual(0);
  const printed = JSON.parse(ended.stdout) as { experiments: { name: string }[] };
  expect(results.experiments.map(({ name }) => name)).toEqual(
    expect.arrayContaining(printed.experiments.map(({ name }) => name)),
  );
  return results;
};

const namesOf = ({ experiments }: Results): string[] => experiments.map(({ name }) => name);

it("npm run bench: processes, null tasks and the scheduler alone are measured", { timeout: 300_000 }, async () => {
  const names = namesOf(
    await smoke("process,process-cores,peaks,agent-loop,null,scheduler,pressure,makespan,makespan-large"),
  );
  expect(names.filter((name) => !name.startsWith("makespan-"))).toEqual([
    "process",
    "process-typed",
    "process-cores",
    "process-cores-typed",
    "peaks",
    "agent-rate-64",
    "agent-loop-64",
    "agent-rate-128",
    "agent-loop-128",
    "null-1000",
    "null-typed-1000",
    "growth",
    "scheduler",
    "scheduler-large",
    "scheduler-own",
    "pressure",
  ]);
  // six families, and the worst of all in three ways, each with two kinds of knowledge; of large graphs the worst alone
  expect(names.filter((name) => name.startsWith("makespan-"))).toHaveLength(24);
});

it("npm run bench: light agents still connect and answer; graphs and pilots run", { timeout: 300_000 }, async () => {
  expect(namesOf(await smoke("growth,graphs,stages,prices,agents,login-node,pilots"))).toEqual([
    "growth-agents",
    "growth-agents-learned",
    "growth-agents-unlearned",
    "growth-shapes",
    "graph-chain",
    "graph-fan",
    "graph-layered",
    "stages",
    "stages-cpu",
    "stages-memory",
    "price-usage",
    "price-events",
    "price-pressure",
    "agents-memory",
    "agents-back",
    "login-node",
    "login-node-idle",
    "pilot-start",
    "pilots-idle",
  ]);
});

it(
  "npm run bench: latency, memory and restart are measured, and partial runs are put together",
  { timeout: 300_000 },
  async () => {
    const first = await smoke("latency,memory");
    expect(namesOf(first)).toEqual([
      "latency",
      "latency-tail",
      "latency-loaded",
      "looking",
      "memory",
      "memory-running",
      "submit",
    ]);
    const whole = await smoke("restart", "--merge");
    expect(namesOf(whole)).toEqual([...namesOf(first), "restart", "restart-size", "reconnect"]);
    expect(whole.experiments.slice(0, namesOf(first).length), "the earlier ones stay as they were").toEqual(
      first.experiments,
    );
    const { section, growthChart } = (await import(pathToFileURL(join(ROOT, "bench", "docs-section.mjs")).href)) as {
      section(results: Results): string;
      growthChart(curves: readonly { name: string; points: readonly (readonly [number, number])[] }[]): string;
    };
    const text = section(whole);
    for (const { name, measured } of whole.experiments) {
      expect(text).toContain(`### ${name}: `);
      expect(text).toContain(`commit ${measured.commit}`);
    }
    expect(text, "short runs say so").toContain("do not quote");
    const drawing = growthChart([
      {
        name: "a<b",
        points: [
          [1, 0.5],
          [1000, 20],
        ],
      },
    ]);
    expect(drawing).toContain("a&lt;b");
    expect(drawing).not.toMatch(/NaN|undefined|Infinity/);
  },
);

it("npm run bench: --write-docs puts what was measured in its place, and what was not stays as it was", async () => {
  const { withSection } = (await import(pathToFileURL(join(ROOT, "bench", "docs-section.mjs")).href)) as {
    withSection(text: string, results: object): string;
  };
  const machine = (cpu: string): object => ({
    cores: 2,
    cpu,
    memoryGb: 8,
    kernel: "6",
    node: "v20",
    spawner: "native",
  });
  const found = (name: string, ours: number): object => {
    const spread = { median: ours, min: ours, max: ours };
    return {
      name,
      title: "a title",
      unit: "s",
      ours,
      spread: { ours: spread, peer: spread },
      labels: { peer: "another" },
      parts: [],
      ratios: { peer: spread },
      targets: [{ of: "peer", atMost: 1, value: ours, met: true, text: "wanted ≤ 1: met" }],
      skipped: {},
      measured: { at: "2026-11-16T00:00:00Z", commit: "c0ffee", rounds: 5, size: "full", load: 0 },
    };
  };
  const begin = "<!-- bench: written by `npm run bench -- --write-docs` -->";
  const empty = `before\n\n${begin}\n\n<!-- /bench -->\n\nafter\n`;
  const whole = withSection(empty, { machine: machine("A"), experiments: [found("one", 0.25), found("two", 0.5)] });
  const part = { machine: machine("B"), experiments: [found("two", 0.75), found("three", 0.125)] };
  const merged = withSection(whole, part);
  expect(merged).toMatch(/^before\n[\s\S]*\nafter\n$/);
  expect([...merged.matchAll(/^### (\w+)/gm)].map(([, name]) => name)).toEqual(["Targets", "one", "two", "three"]);
  expect([...merged.matchAll(/^\| (\w+) ÷ another .*? (0\.\d+) /gm)].map(([, name, ours]) => [name, ours])).toEqual([
    ["one", "0.25"],
    ["two", "0.75"],
    ["three", "0.125"],
  ]);
  // the machine of most is named at the top; the others name theirs
  expect([...merged.matchAll(/^On 2 cores \((.)\)/gm)].map(([, cpu]) => cpu)).toEqual(["A"]);
  expect([...merged.matchAll(/On another machine: 2 cores \((.)\)/g)].map(([, cpu]) => cpu)).toEqual(["B", "B"]);
  expect(withSection(merged, part)).toBe(merged);
  expect(
    withSection(merged, { machine: machine("B"), experiments: ["one", "two", "three"].map((n) => found(n, 1)) }),
  ).not.toContain("another machine");
});

it("npm run bench: an experiment that is not possible here is skipped with its reason, and not broken", async (ctx) => {
  // a user namespace in which nobody is root; booting a Slurm needs root
  const words = process.getuid?.() === 0 ? ["unshare", "--user"] : [];
  const [program, ...rest] = [...words, "true"];
  if (spawnSync(program!, rest).status !== 0) ctx.skip("no user name spaces here");
  const output = join(directory, "results.json");
  const args = ["--smoke", "--json", "--only", "pilots-slurm,dask", "--dir", directory, "--output", output];
  const { status, stdout, stderr } = await benchUnder(words, ...args);
  expect(status, stderr).toBe(0);
  const skipped = { "pilots-slurm": "a Slurm of its own needs root", dask: "a Slurm of its own needs root" };
  expect(JSON.parse(stdout)).toEqual({ experiments: [], skipped });
  expect(JSON.parse(await readFile(output, "utf8"))).toMatchObject({ experiments: [], broken: {}, skipped });
});

it("npm run bench: what it does not know it says, with exit status 2", async () => {
  for (const args of [["--only", "nothing"], ["--merge"], ["--rounds", "0"], ["--wrong"]]) {
    const { status, stderr } = await bench(...args);
    expect(status, stderr).toBe(2);
    expect(stderr).toMatch(/^error: /);
  }
});
