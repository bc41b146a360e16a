import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildRun } from "../../../src/config/build-run.ts";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { BUILT_IN_FORMAT, LimitsInput, PageInput } from "../../../src/config/clusters-schema.ts";
import { FleetInput } from "../../../src/config/fleet-keys.ts";
import { chooseStage, overrideLayers, readProjectFile } from "../../../src/config/project-file.ts";
import {
  CLUSTER_OVERRIDES,
  ENV_NAMES,
  ENV_PREFIX,
  LEVEL_KEYS,
  QUEUE_OVERRIDES,
} from "../../../src/config/project-keys.ts";
import { settingsOf, withProject } from "../../../src/config/project-run.ts";
import { runFromCommand } from "../../../src/config/run-from-command.ts";
import { MINIMAL, NOT_EXPORTED } from "../../../src/config/environment.ts";
import { STARTER_KEYS } from "../../../src/config/starter-keys.ts";
import { STARTERS } from "../../../src/starters/starters.ts";
import { readRunFile } from "../../../src/config/read-run-file.ts";
import { SIMULATION_KEYS } from "../../../src/managers/simulated/keys.ts";
import { EachInput, RUN_KEYS, TASK_KEYS } from "../../../src/config/run-schema.ts";

const read = (name: string): string => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8");
const runFile = read("run-file.md");
const clustersFile = read("clusters-file.md");

const snippets = (text: string): [string, string][] =>
  [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].map((match, i) => [`snippet ${i + 1}`, match[1]!]);

describe("docs/run-file.md", () => {
  it.each(snippets(runFile))("%s is a run", (name, text) => {
    const { spec } = buildRun(readRunFile(text, name), { cwd: "/work", env: {} });
    expect(spec.groups.length).toBeGreaterThan(0);
  });

  it.each([...RUN_KEYS, ...TASK_KEYS, ...Object.keys(EachInput.shape)])("tells about %s", (key) => {
    expect(runFile).toMatch(new RegExp(`[\`"]${key}[\`":]`));
  });

  it.each([...NOT_EXPORTED.prefixes, ...NOT_EXPORTED.names, ...MINIMAL])("lists %s", (name) => {
    expect(runFile).toContain(`\`${name}\``);
  });
});

describe("docs/clusters-file.md", () => {
  it.each(snippets(clustersFile))("%s is a clusters.yaml", (name, text) => {
    expect(combineClusters([readClustersFile(text, name)]).clusters.size).toBeGreaterThan(0);
  });

  const guide = snippets(read("clusters.md"));
  it.each(guide)("docs/clusters.md: %s is a clusters.yaml", (name, text) => {
    expect(guide.length).toBeGreaterThan(3);
    expect(combineClusters([readClustersFile(text, name)]).clusters.size).toBeGreaterThan(1);
  });

  const { keysAt, QueueInput, ClusterInput, ClustersInput } = BUILT_IN_FORMAT;
  const known = [
    ...[ClustersInput, LimitsInput, PageInput, FleetInput].flatMap(({ shape }) => Object.keys(shape)),
    ...keysAt(["clusters", "x"]),
    ...keysAt(["clusters", "x", "queues", "y"]),
    ...Object.keys(STARTER_KEYS),
    ...Object.keys(STARTERS),
    ...Object.keys(SIMULATION_KEYS),
  ];
  it.each([...new Set(known)].filter((key) => !/\d$/.test(key)))("tells about %s", (key) =>
    expect(clustersFile).toContain(`\`${key}\``),
  );

  it("every key in the first column of a table exists", () => {
    const everything = new Set([...known, ...Object.keys(QueueInput.shape), ...Object.keys(ClusterInput.shape)]);
    const told = [...clustersFile.matchAll(/^\| ([^|]*) \|/gm)]
      .flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)])
      .map(([, key]) => key!);
    expect(told.length).toBeGreaterThan(50);
    expect(told.filter((key) => !everything.has(key))).toEqual([]);
  });
});

describe("docs/layers.md", () => {
  const layers = read("layers.md");
  const named = new Map(
    [...layers.matchAll(/^```yaml\n# (\S+)\n(.*?)^```$/gms)].map((match) => [match[1]!, match[2]!] as const),
  );
  const keys = [...LEVEL_KEYS, ...CLUSTER_OVERRIDES, ...QUEUE_OVERRIDES, ...ENV_NAMES, ENV_PREFIX, "fleet"];

  it.each([...new Set(keys)])("tells about %s", (key) => expect(layers).toContain(`\`${key}\``));

  it("its example is what it says", () => {
    const files = ["slipway.yaml", ".slipway.yaml"].map((name) => readProjectFile(named.get(name)!, name));
    const levels = chooseStage(files, "train.fine");
    const home = readClustersFile(named.get("~/.slipway/clusters/hpc.yaml")!, "hpc.yaml");
    const cpu = combineClusters([home, ...overrideLayers(levels)])
      .clusters.get("hpc")!
      .queues.get("cpu")!;
    expect(cpu).toMatchObject({
      account: "physics",
      walltime: 7200,
      fleet: { max: 4 },
      prologue: ["module load python"],
    });
    const run = withProject(runFromCommand(["./train"]), settingsOf(levels));
    expect(buildRun(run, { cwd: "/work", env: {} }).spec.groups[0]).toMatchObject({
      cluster: "hpc",
      queue: "short",
      resources: { cpus: 20_000, gpus: 10_000, mem: 64 * 2 ** 30 },
    });
  });
});
