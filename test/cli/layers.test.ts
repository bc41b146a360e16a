import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";

/** slipway.yaml and .slipway.yaml as a user has them: the examples of docs/layers.md, in a repository. */

let slipway: SlipwayHome;
let project: string;
let below: string;
let example: Record<string, string>;

beforeAll(async () => {
  slipway = await createHome();
  project = join(slipway.root, "project");
  below = join(project, "analysis");
  await mkdir(join(slipway.home, "clusters"), { recursive: true });
  await mkdir(join(project, ".git"), { recursive: true });
  await mkdir(below);
  const text = await readFile(join(ROOT, "docs/layers.md"), "utf8");
  example = Object.fromEntries(
    [...text.matchAll(/^```yaml\n# (\S+)\n(.*?)^```$/gms)].map(([, name, body]) => [name!, body!]),
  );
  await writeFile(join(slipway.home, "clusters/hpc.yaml"), example["~/.slipway/clusters/hpc.yaml"]!);
  await writeFile(join(project, "slipway.yaml"), example["slipway.yaml"]!);
  await writeFile(join(project, ".slipway.yaml"), example[".slipway.yaml"]!);
  await slipway.own(slipway.root);
});
afterAll(() => slipway.cleanup());

interface Shown {
  readonly cluster: string;
  readonly stage: string | null;
  readonly values: readonly { key: string; value: unknown; file: string | null; line: number | null }[];
  readonly tasks: Shown["values"];
}

const lineOf = (name: string, pattern: RegExp): number =>
  example[name]!.split("\n").findIndex((line) => pattern.test(line)) + 1;

describe("rows 002-58 to 002-61: clusters show --effective", () => {
  it("tells each value with file and line, without a server", async () => {
    const shown = await slipway.json<Shown>(["clusters", "show", "hpc", "--effective", "--stage", "train.fine"], {
      cwd: below,
    });
    expect(shown).toMatchObject({ cluster: "hpc", stage: "train.fine" });
    const from = (rows: Shown["values"], key: string) => {
      const { value, file, line } = rows.find((row) => row.key === key)!;
      return [value, file, line];
    };
    const home = join(slipway.home, "clusters/hpc.yaml");
    const versioned = join(project, "slipway.yaml");
    expect(from(shown.values, "type")).toEqual(["slurm", home, lineOf("~/.slipway/clusters/hpc.yaml", /type:/)]);
    expect(from(shown.values, "queues.cpu.account")).toEqual([
      "physics",
      versioned,
      lineOf("slipway.yaml", /account: physics/),
    ]);
    expect(from(shown.values, "queues.cpu.fleet.idle")).toEqual(["2m", null, null]);
    expect(from(shown.tasks, "queue")).toEqual([
      "short",
      join(project, ".slipway.yaml"),
      lineOf(".slipway.yaml", /queue:/),
    ]);
    expect(from(shown.tasks, "mem")).toEqual(["64G", versioned, lineOf("slipway.yaml", /mem: 64G/)]);
    const screen = await slipway.run(["clusters", "show", "hpc", "--effective"], { cwd: project });
    expect(screen.stdout).toMatch(/^queues\.cpu\.account +physics +\S+\/slipway\.yaml:\d+$/m);
    const unknown = await slipway.run(["clusters", "show", "hpc", "--effective", "--stage", "tran"], { cwd: project });
    expect(unknown).toMatchObject({ status: 2, stderr: expect.stringMatching(/did you mean 'train'/) });
  });
});

describe("rows 002-60, 002-61: a run in a project", () => {
  it("gets what the files choose; options are stronger; a server that runs without the overrides refuses", async () => {
    await writeFile(join(project, ".slipway.yaml"), "local: true\nmem: 10M\n");
    const seen = await slipway.run(
      [
        "run",
        "--quiet",
        "--env",
        "PROJECT_SEED=9",
        "--",
        "sh",
        "-c",
        "echo $OMP_NUM_THREADS $PROJECT_SEED $SLIPWAY_MEM",
      ],
      { cwd: below },
    );
    expect(seen).toMatchObject({ status: 0, stdout: `2 9 ${10 * 2 ** 20}\n` });

    await slipway.run(["up"]);
    // What is overridden of hpc does not concern a run that stays here.
    expect(await slipway.run(["submit", "--", "true"], { cwd: below })).toMatchObject({
      status: 0,
      stderr: `with ${join(project, "slipway.yaml")} and ${join(project, ".slipway.yaml")}\n`,
    });
    await writeFile(join(project, ".slipway.yaml"), "local: true\nclusters: { local: { grace: 3s } }\n");
    for (const verb of ["run", "submit"])
      expect(await slipway.run([verb, "--", "true"], { cwd: below })).toMatchObject({
        status: 2,
        stderr: expect.stringMatching(
          /\.slipway\.yaml:2: clusters\.local\.grace: the running server did not start with what this project overrides of .local.[^]*slipway down/,
        ),
      });
    expect(await slipway.run(["down"])).toMatchObject({ status: 0 });

    const up = await slipway.run(["up"], { cwd: below });
    expect(up.stderr).toContain(`with the queues' parameters of ${join(project, "slipway.yaml")} and`);
    expect(await slipway.run(["run", "--quiet", "--", "true"], { cwd: project })).toMatchObject({ status: 0 });
  });

  it("is refused where a file names a program: file, line, key and remedy; nothing is started", async () => {
    await writeFile(join(project, ".slipway.yaml"), "local: true\nenv:\n  LD_PRELOAD: ./evil.so\n");
    expect(await slipway.run(["run", "--", "true"], { cwd: below })).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringMatching(/\.slipway\.yaml:3:\d+: env\.LD_PRELOAD: .*anybody[^]*--env LD_PRELOAD=/),
    });
  });
});
