import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { BUILT_IN } from "../../../src/config/cluster-keys.ts";
import { clusterNamed, combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { effectiveCluster } from "../../../src/config/effective.ts";
import { chooseStage, overrideLayers, readProjectFile } from "../../../src/config/project-file.ts";
import { settingsOf, withProject } from "../../../src/config/project-run.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { optionsFrom } from "../../../src/config/command-line.ts";
import { runFromCommand, withOptions } from "../../../src/config/run-from-command.ts";

/** Any combination of layers: the strongest that says something wins, and each value knows its file and line. */

/** Weakest first. The home's two never hold the same cluster: the folder's stands for both here. */
const PLACES = [
  "home",
  "beside",
  "slipway",
  "slipway a",
  "slipway a.b",
  ".slipway",
  ".slipway a",
  ".slipway a.b",
  "clusters",
] as const;
type PlaceName = (typeof PLACES)[number];

/** What each place says: a queue's walltime, that of all queues, and a limit of the fleet. */
interface Says {
  readonly queue: boolean;
  readonly shared: boolean;
  readonly fleet: boolean;
}

/** A file that is written line by line, so that the line of everything in it is known. */
const writer = (file: string) => {
  const lines: string[] = [];
  return {
    file,
    lines,
    add(text: string): string {
      lines.push(text);
      return `${file}:${lines.length}`;
    },
  };
};

const FILES = { home: "/h/clusters/hpc.yaml", beside: "/r/clusters.yaml", clusters: "/c.yaml" } as const;

/** The value a place gives: another one each. */
const minutes = (place: PlaceName, shared: boolean): number => 10 + PLACES.indexOf(place) + (shared ? 50 : 0);

const write = (says: Readonly<Record<PlaceName, Says>>) => {
  const places = new Map<string, string>();
  const cluster = (out: ReturnType<typeof writer>, place: PlaceName, indent: string, type: string) => {
    const { queue, shared, fleet } = says[place];
    if (!queue && !shared && !fleet && type === "") return;
    out.add(`${indent}clusters:`);
    out.add(`${indent}  hpc:`);
    if (type !== "") out.add(`${indent}    type: ${type}`);
    if (shared) places.set(`${place} shared`, out.add(`${indent}    walltime: ${minutes(place, true)}m`));
    out.add(`${indent}    queues:`);
    out.add(`${indent}      cpu:`);
    if (!queue && !fleet) out.add(`${indent}        nodes: 1`);
    if (queue) places.set(`${place} queue`, out.add(`${indent}        walltime: ${minutes(place, false)}m`));
    if (fleet) {
      out.add(`${indent}        fleet:`);
      places.set(`${place} fleet`, out.add(`${indent}          max: ${minutes(place, false)}`));
    }
  };
  const project = (name: "slipway" | ".slipway") => {
    const out = writer(`/p/${name}.yaml`);
    cluster(out, name, "", "");
    out.add("stages:");
    out.add("  a:");
    cluster(out, `${name} a`, "    ", "");
    out.add("    stages:");
    out.add("      b:");
    cluster(out, `${name} a.b`, "        ", "");
    out.add("        priority: 1");
    return readProjectFile(`${out.lines.join("\n")}\n`, out.file);
  };
  const declared = (place: keyof typeof FILES) => {
    const out = writer(FILES[place]);
    cluster(out, place, "", place === "home" ? "slurm" : "");
    return readClustersFile(`${out.lines.join("\n")}\n`, out.file);
  };
  const levels = chooseStage([project("slipway"), project(".slipway")], "a.b");
  const layers = [declared("home"), declared("beside"), ...overrideLayers(levels), declared("clusters")];
  return { layers, levels, places };
};

const says = fc.record({ queue: fc.boolean(), shared: fc.boolean(), fleet: fc.boolean() });

describe("rows 002-58, 002-59, 002-60, 002-61: layers of configuration", () => {
  it("of clusters: the strongest that says something wins, with its file and line", () => {
    fc.assert(
      fc.property(
        fc.record(Object.fromEntries(PLACES.map((place) => [place, says])) as Record<PlaceName, typeof says>),
        (all) => {
          const { layers, levels, places } = write(all);
          const strongest = (what: keyof Says) => PLACES.findLast((place) => all[place][what]);
          const queue = clusterNamed(combineClusters(layers), "hpc").queues.get("cpu")!;
          const { values } = effectiveCluster({ layers, keys: BUILT_IN }, levels, "hpc");
          const shown = (key: string) => {
            const { value, file, line } = values.find((row) => row.key === `queues.cpu.${key}`) ?? {};
            return { value, from: file === undefined || file === null ? undefined : `${file}:${line}` };
          };
          // What stands in the queue is nearer than what stands for all queues, whatever the layers.
          const [own, shared] = [strongest("queue"), strongest("shared")];
          const wins = own ?? shared;
          expect(queue.walltime).toBe(wins === undefined ? undefined : minutes(wins, own === undefined) * 60);
          expect(shown("walltime").from).toBe(
            wins === undefined ? undefined : places.get(`${wins} ${own === undefined ? "shared" : "queue"}`),
          );
          const fleet = strongest("fleet");
          expect(queue.fleet.max).toBe(fleet === undefined ? 10 : minutes(fleet, false));
          expect(shown("fleet.max")).toEqual(
            fleet === undefined
              ? { value: 10, from: undefined }
              : { value: minutes(fleet, false), from: places.get(`${fleet} fleet`) },
          );
        },
      ),
      { numRuns: 200 },
    );
  });

  it("of tasks: options, the task, the run's defaults, .slipway.yaml, slipway.yaml; in each file the inner stage first", () => {
    const LEVELS = ["slipway", "slipway a", ".slipway", ".slipway a", "defaults", "task", "options"] as const;
    type LevelName = (typeof LEVELS)[number];
    const at = (level: LevelName): number => LEVELS.indexOf(level) + 1;
    const part = fc.record({ retries: fc.boolean(), env: fc.boolean() });
    const text = (level: LevelName, given: { retries: boolean; env: boolean }, indent: string): string[] => [
      ...(given.retries ? [`${indent}retries: ${at(level)}`] : []),
      ...(given.env ? [`${indent}env: { OMP_NUM_THREADS: ${at(level)} }`] : []),
    ];
    fc.assert(
      fc.property(
        fc.record(Object.fromEntries(LEVELS.map((level) => [level, part])) as Record<LevelName, typeof part>),
        (all) => {
          const project = (name: "slipway" | ".slipway") => {
            const inner = text(`${name} a`, all[`${name} a`], "    ");
            const lines = [...text(name, all[name], ""), "stages:", "  a:", ...inner, "    priority: 3"];
            return { lines, file: readProjectFile(lines.join("\n"), `/p/${name}.yaml`) };
          };
          const [weak, strong] = [project("slipway"), project(".slipway")];
          const settings = settingsOf(chooseStage([weak.file, strong.file], "a"));
          const run = [
            "defaults:",
            ...text("defaults", all.defaults, "  "),
            "  mem: 1M",
            "tasks:",
            "  - run: x",
            ...text("task", all.task, "    "),
          ];
          const given = all.options;
          const document = withOptions(
            readRunFile(run.join("\n"), "run.yaml"),
            optionsFrom({
              ...(given.retries ? { retries: String(at("options")) } : {}),
              ...(given.env ? { env: [`OMP_NUM_THREADS=${at("options")}`] } : {}),
            }),
          );
          const [group] = buildRun(withProject(document, settings), { cwd: "/w", env: {} }).spec.groups;
          const strongest = (key: "retries" | "env") => LEVELS.findLast((level) => all[level][key]);
          expect(group!.priority).toBe(3);
          expect(group!.retries).toBe(strongest("retries") === undefined ? 0 : at(strongest("retries")!));
          const env = strongest("env");
          expect(group!.env?.["OMP_NUM_THREADS"]).toBe(env === undefined ? undefined : String(at(env)));
        },
      ),
      { numRuns: 200 },
    );
  });
});

const PROJECT =
  "cluster: hpc\nqueue: cpu\nmem: 2G\ncpus: 2\nmax-fails: 3\nenv: { OMP_NUM_THREADS: 2, PROJECT_SEED: 7 }\n";
const settings = (...texts: string[]) =>
  settingsOf(chooseStage(texts.map((text, i) => readProjectFile(text, `${i}.yaml`))));
const groups = (document: Parameters<typeof withProject>[0], ...texts: string[]) =>
  buildRun(withProject(document, settings(...texts)), { cwd: "/w", env: {} }).spec.groups;

describe("row 002-60: what slipway.yaml chooses for a run", () => {
  it("goes to tasks that do not say otherwise", () => {
    const document = withProject(runFromCommand(["x"]), settings(PROJECT));
    const { spec } = buildRun(document, { cwd: "/w", env: {} });
    expect(spec.maxFails).toBe(3);
    expect(spec.groups[0]).toMatchObject({
      cluster: "hpc",
      queue: "cpu",
      resources: { cpus: 20_000, mem: 2 * 2 ** 30 },
      env: { OMP_NUM_THREADS: "2", PROJECT_SEED: "7" },
    });
  });

  it("a queue goes with its cluster: who names another cluster gets no queue of the weaker layer", () => {
    expect(groups(runFromCommand(["x"]), PROJECT, "cluster: other\n")[0]).not.toHaveProperty("queue");
    expect(groups(runFromCommand(["x"]), PROJECT, "local: true\n")[0]).toMatchObject({ cluster: "local" });
    expect(groups(runFromCommand(["x"], { cluster: "other" }), PROJECT)[0]).toMatchObject({ cluster: "other" });
    expect(groups(runFromCommand(["x"], { cluster: "other" }), PROJECT)[0]).not.toHaveProperty("queue");
    expect(groups(runFromCommand(["x"], { local: true }), PROJECT)[0]).toMatchObject({ cluster: "local" });
    const [first, second, third] = groups(
      readRunFile("tasks: [{run: x, queue: gpu}, {run: y, local: true}, {run: z}]", "run.yaml"),
      PROJECT,
    );
    expect(first).toMatchObject({ cluster: "hpc", queue: "gpu" });
    expect(second).toMatchObject({ cluster: "local" });
    expect(second).not.toHaveProperty("queue");
    expect(third).toMatchObject({ cluster: "hpc", queue: "cpu" });
  });

  it("amounts of ranks in the run stand for those of the project", () => {
    const [group] = groups(readRunFile("defaults: {ranks: 2, cpus-per-rank: 3}\ntasks: [{run: x}]", "r.yaml"), PROJECT);
    expect(group!.resources["cpus"]).toBe(30_000);
  });

  it("a bad value is told at its own place, whatever the run's file is", () => {
    const document = readRunFile("tasks: [{run: x}]", "run.yaml");
    for (const [text, where] of [
      ["\nmem: lots\n", "0.yaml:2:6"],
      ["retries: -1\n", "0.yaml:1:10"],
      ["stages: {}\nenv: { PROJECT_X: '{itme}' }\n", "0.yaml:2:19"],
    ] as const) {
      expect(() => groups(document, text)).toThrow(
        expect.objectContaining({ facts: expect.objectContaining({ where }) }),
      );
    }
  });
});

describe("row 002-61: .slipway.yaml", () => {
  it("typically selects the queue, and no more", () => {
    const [group] = groups(runFromCommand(["x"]), PROJECT, "queue: gpu\n");
    expect(group).toMatchObject({ cluster: "hpc", queue: "gpu", resources: { cpus: 20_000 } });
  });

  it("is stronger than any stage of slipway.yaml", () => {
    const files = ["stages: { train: { queue: gpu, retries: 2 } }\n", "queue: mine\n"];
    const levels = chooseStage(
      files.map((text, i) => readProjectFile(text, `${i}.yaml`)),
      "train",
    );
    expect([...settingsOf(levels)].map(([key, { value, file }]) => [key, value, file])).toEqual([
      ["queue", "mine", "1.yaml"],
      ["retries", 2, "0.yaml"],
    ]);
  });
});

describe("stages", () => {
  const files = [readProjectFile("stages: { train: { stages: { fine: { mem: 1G } } } }\n", "slipway.yaml")];
  it.each([
    ["train.fin", /none of that name; did you mean 'train.fine'\?/],
    ["fine", /none of that name/],
    ["train.", /none of that name/],
    ["__proto__", /none of that name/],
    ["constructor", /none of that name/],
  ])("%s is refused", (stage, message) => expect(() => chooseStage(files, stage)).toThrow(message));

  it("without a file there is none", () => expect(() => chooseStage([], "a")).toThrow(/there is no slipway.yaml/));

  it.each([
    ["stages: { a.b: {} }", /no dots/],
    ["stages: { '': {} }", /is empty/],
    ["stages: { a: 1 }", /must be a map/],
    [`${"stages: {a: {".repeat(20)}${"}}".repeat(20)}`, /nested more than 16/],
    ["stages: { a: { satges: {} } }", /unknown key 'satges'; did you mean 'stages'/],
  ])("%s is refused", (text, message) => expect(() => readProjectFile(text, "slipway.yaml")).toThrow(message));
});
