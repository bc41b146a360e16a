import { mkdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView, TaskView, WhyView } from "../../src/api/schemas.ts";
import type { TaskRowView } from "../../src/api/task-table.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** What is done is not done again: a pipeline over files, as people type it. */

let slipway: SlipwayHome;

const SAMPLES = ["a", "b", "c"];

const pipeline = (call = "tr a-z A-Z", slow = "") => `
name: pipeline
tasks:
  - name: align
    each: { lines: samples.txt }
    run: ${slow}mkdir -p bam && cat reads/{item}.fq > bam/{item}.bam
    inputs: reads/{item}.fq
    outputs: bam/{item}.bam
  - name: call
    each: { lines: samples.txt }
    after: { align: same }
    run: mkdir -p vcf && ${call} < bam/{item}.bam > vcf/{item}.vcf
    inputs: ["bam/{item}.bam"]
    outputs: ["vcf/{item}.vcf"]
  - name: merge
    after: call
    run: cat vcf/*.vcf > all.vcf
    outputs: all.vcf
`;

const path = (name: string): string => join(slipway.cwd, name);
const text = (name: string): Promise<string> => readFile(path(name), "utf8");
const read = (sample: string, content = sample): Promise<void> => writeFile(path(`reads/${sample}.fq`), `${content}\n`);

/** Newer than all that was made until now, on file systems of any precision. */
let later = Date.now() / 1000;
const touch = (name: string): Promise<void> => utimes(path(name), (later += 10), later);

beforeEach(async () => {
  slipway = await createHome();
  await mkdir(path("reads"));
  await writeFile(path("samples.txt"), `${SAMPLES.join("\n")}\n`);
  for (const sample of SAMPLES) await read(sample);
  await writeFile(path("p.yaml"), pipeline());
});

afterEach(() => slipway.cleanup());

interface Ran {
  readonly run: RunView;
}

/** Runs it to its end; which tasks have run. */
const ran = async (...options: string[]): Promise<string[]> => {
  const { status, stdout, stderr } = await slipway.run(["run", "--json", ...options, "p.yaml"]);
  expect(status, stderr).toBe(0);
  const { id, skipped, total } = (JSON.parse(stdout) as Ran & RunView).run ?? (JSON.parse(stdout) as RunView);
  const rows = (await slipway.run(["tasks", id, "--json"].map(String))).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as TaskRowView);
  expect(rows.filter((row) => row.skipped === true)).toHaveLength(skipped!);
  expect(rows).toHaveLength(total);
  return rows.filter((row) => row.skipped !== true).map(({ name }) => name);
};

describe("skip what is done", () => {
  it("a touched input runs its own line; deleted outputs, changed commands and --force run what they should", async () => {
    await slipway.run(["up"]);
    expect(await ran()).toHaveLength(7);
    expect(await ran()).toEqual([]);
    const [last] = await slipway.json<RunView[]>(["list"]);
    expect(last).toMatchObject({ state: "DONE", skipped: 7, total: 7 });
    expect((await slipway.json<TaskView>(["show", `${last!.id}.0`])).skipped).toBe(true);
    expect((await slipway.json<WhyView>(["why", `${last!.id}.0`])).cause).toBe("skipped");

    await touch("reads/b.fq");
    const plan = await slipway.run(["run", "--dry-run", "p.yaml"]);
    expect(plan.stdout).toMatch(
      /align: 2 would be skipped, 1 would run\n {2}1 {2}reads\/b\.fq is newer than bam\/b\.bam/,
    );
    expect(plan.stdout).toMatch(/call: 2 would be skipped, 1 would run\n {2}4 {2}align, which it waits for, runs/);
    // as if it had been made after the touch
    const redo = await ran();
    expect(redo).toEqual(["align[b]", "call[b]", "merge"]);
    for (const name of ["bam/b.bam", "vcf/b.vcf", "all.vcf"]) await touch(name);

    await rm(path("vcf/a.vcf"));
    expect(await ran()).toEqual(["call[a]", "merge"]);
    await writeFile(path("p.yaml"), pipeline("rev"));
    expect(await ran()).toEqual(["call[a]", "call[b]", "call[c]", "merge"]);
    expect(await ran("--force")).toHaveLength(7);
    expect(await ran("--skip", "content")).toHaveLength(7);
    await touch("reads/c.fq");
    expect(await ran("--skip", "content")).toEqual([]);
    await read("c", "other");
    expect(await ran("--skip", "content")).toEqual(["align[c]", "call[c]", "merge"]);
  }, 120_000);

  it("a task without the output that it declares has failed, and the file is named; what cannot be read is refused", async () => {
    const { status, stderr, stdout } = await slipway.run([
      "run",
      "--outputs",
      "made/{item}",
      "--array",
      "1-2",
      "--",
      "sh",
      "-c",
      '[ "$SLIPWAY_ITEM" = 1 ] || { mkdir -p made && touch made/2; }',
    ]);
    expect([status, stdout + stderr]).toEqual([1, expect.stringContaining("made/1 is not there") as string]);
    const [run] = await slipway.json<RunView[]>(["list"]);
    expect(run).toMatchObject({ state: "FAILED", counts: { DONE: 1, FAILED: 1 } });
    const glob = await slipway.run(["run", "--outputs", "made/*", "--", "true"]);
    expect([glob.status, glob.stderr]).toEqual([2, expect.stringContaining("is a pattern") as string]);
  });

  it("a server that is killed in the middle neither loses nor skips what it should not", async () => {
    await slipway.run(["up"]);
    expect(await ran()).toHaveLength(7);
    for (const n of [1, 2, 3]) {
      const changed = SAMPLES[n % 3]!;
      await read(changed, `${changed}${n}`);
      await touch(`reads/${changed}.fq`);
      // slow enough to be killed while some of it runs; the command itself is another one
      await writeFile(path("p.yaml"), pipeline("tr a-z A-Z", `sleep 0.${n} && `));
      const { run } = await slipway.json<{ run: number }>(["submit", "p.yaml"]);
      const { pid } = (await readEndpoint(slipway.home))!;
      await until("something has begun", async () => {
        const { counts } = await slipway.json<RunView>(["show", String(run)]);
        return (counts["AGENT_EXECUTING"] ?? 0) + (counts["DONE"] ?? 0) > 0;
      });
      process.kill(pid, "SIGKILL");
      await slipway.run(["up"]);
      expect((await slipway.run(["wait", String(run)])).status).toBe(0);
      for (const sample of SAMPLES)
        expect(await text(`vcf/${sample}.vcf`)).toBe((await text(`reads/${sample}.fq`)).toUpperCase());
      expect(await text("all.vcf")).toBe(
        (await Promise.all(SAMPLES.map((sample) => text(`vcf/${sample}.vcf`)))).join(""),
      );
    }
    await slipway.run(["down"]);
    await touch("all.vcf");
    for (const sample of SAMPLES) for (const name of [`bam/${sample}.bam`, `vcf/${sample}.vcf`]) await touch(name);
    const again = await slipway.run(["run", "p.yaml"]);
    expect(again.stdout + again.stderr).toContain("7 of them skipped");
  }, 120_000);
});
