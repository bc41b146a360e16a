import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { BUILT_IN_FORMAT } from "../../../src/config/clusters-schema.ts";
import { chooseStage, overrideLayers, readProjectFile } from "../../../src/config/project-file.ts";
import { QUEUE_OVERRIDES, queueKey, TASK_SETTINGS } from "../../../src/config/project-keys.ts";
import { TASK_KEYS } from "../../../src/config/run-schema.ts";

/** What a stranger's slipway.yaml must not reach: rows 002-60 and 002-61. */

const read = (text: string) => readProjectFile(text, "slipway.yaml");

const { QueueInput, ClusterInput } = BUILT_IN_FORMAT;
const ALLOWED: readonly string[] = [...QUEUE_OVERRIDES, "fleet"];
const ofQueues = Object.keys(QueueInput.shape).filter((key) => !ALLOWED.includes(queueKey(key)));
const ofClusters = Object.keys(ClusterInput.shape).filter(
  (key) => !ALLOWED.includes(queueKey(key)) && !["queues", "grace", "pin"].includes(key),
);

describe("rows 002-60, 002-61: parameters, never commands or modules", () => {
  it("what leads to code is among what is refused", () => {
    const dangerous = ["prologue", "epilogue", "launcher", "shebang", "node", "options", "skip-options", "environment"];
    const places = ["scratch", "log-directory", "template"];
    expect(ofQueues).toEqual(expect.arrayContaining([...dangerous, ...places, "skip_options", "gres", "property"]));
    expect(ofClusters).toEqual(
      expect.arrayContaining([
        ...dangerous,
        "type",
        "bin",
        "config",
        "root",
        "executor",
        "sudo_authorized",
        "image_root",
      ]),
    );
  });

  it.each(ofQueues)("a queue's %s is refused: file, line, key and remedy", (key) => {
    const text = `clusters:\n  hpc:\n    queues:\n      cpu:\n        ${key}: x\n`;
    expect(() => read(text)).toThrow(
      expect.objectContaining({
        code: "bad-value",
        facts: expect.objectContaining({
          where: "slipway.yaml:5:9",
          key: `clusters.hpc.queues.cpu.${key}`,
          detail: expect.stringContaining("anybody may have written"),
          remedy: expect.stringContaining("clusters.yaml"),
        }),
      }),
    );
  });

  it.each(ofClusters)("a cluster's %s is refused, in a stage too", (key) => {
    expect(() => read(`clusters: { hpc: { ${key}: x } }`)).toThrow(/anybody may have written/);
    expect(() => read(`stages: { a: { stages: { b: { clusters: { hpc: { ${key}: x } } } } } }`)).toThrow(
      /slipway\.yaml:1:\d+: stages\.a\.stages\.b\.clusters\.hpc\..*anybody may have written/,
    );
  });

  const ofTasks = TASK_KEYS.filter((key) => !(TASK_SETTINGS as readonly string[]).includes(key));
  it.each([...ofTasks, "tasks", "defaults", "export", "default", "limits", "keep-history", "prologue"])(
    "%s is refused at the top",
    (key) => expect(() => read(`x-: 1\n${key}: x\n`)).toThrow(/slipway\.yaml:2:1: .*anybody may have written/),
  );

  it.each(
    "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT BASH_ENV ENV NODE_OPTIONS PATH PYTHONPATH PYTHONSTARTUP PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS GIT_SSH_COMMAND IFS SLURM_CONF OMP_TOOL_LIBRARIES OPENBLAS PROMPT_COMMAND HOME SLIPWAY_HOME omp_num_threads projectX".split(
      " ",
    ),
  )("the variable %s is refused", (name) =>
    expect(() => read(`env:\n  ${name}: x\n`)).toThrow(
      expect.objectContaining({
        facts: expect.objectContaining({ where: expect.stringMatching(/^slipway\.yaml:2:/), key: `env.${name}` }),
        hint: expect.stringContaining("--env"),
      }),
    ),
  );

  it("no merge key, alias or quoting brings in what is refused", () => {
    for (const text of [
      "queue: &k { prologue: evil }\nclusters: { hpc: { queues: { cpu: { <<: *k } } } }\n",
      "clusters: { hpc: { queues: { cpu: &a { nodes: 1, <<: { launcher: ssh } }, gpu: *a } } }\n",
      "env: { <<: { LD_PRELOAD: x } }\n",
      '"env": { "\\x4cD_PRELOAD": x }\n',
      "clusters: { hpc: { queues: { cpu: { log_directory: /etc } } } }\n",
    ])
      expect(() => read(text)).toThrow(/anybody may have written|must be text/);
  });

  it("text for a manager is one plain word", () => {
    const keys = ["partition", "queue", "account", "project", "qos", "constraint", "features", "reservation"];
    for (const key of keys) {
      for (const text of ["a b", "-x", "$(id)", "`id`", "a;b", "a\\nb", "'a", "a#b", "../x", "/x", "a\\tb", "é", ""])
        expect(() => read(`clusters: { hpc: { queues: { cpu: { ${key}: "${text}" } } } }`)).toThrow(/one word/);
      for (const text of ["physics", "a,b", "gpu&ib", "(a|b)", "[rack1*1]", "p@cluster", "2026"])
        expect(() => read(`clusters: { hpc: { queues: { cpu: { ${key}: "${text}" } } } }`)).not.toThrow();
    }
  });

  it("whatever a project's file says, only what may be overridden changes", () => {
    const declared = readClustersFile(
      "clusters: { hpc: { type: slurm, prologue: [safe], queues: { cpu: { launcher: srun, options: [--x] } } } }",
      "clusters.yaml",
    );
    const key = fc.constantFrom(...Object.keys(QueueInput.shape));
    const value = fc.constantFrom("x", "1", "2h", "true", "[a]", "{ a: b }", "/x", "#!/bin/evil");
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 3 }), (keys) => {
        const queue = Object.entries(keys).map(([name, text]) => `${name}: ${text}`);
        try {
          const file = read(`clusters: { hpc: { queues: { cpu: {\n${queue.join(",\n")}\n} } } }`);
          const config = combineClusters([declared, ...overrideLayers(chooseStage([file]))]);
          const { prologue, epilogue, launcher, options, environment, shebang, node, scratch } = config.clusters
            .get("hpc")!
            .queues.get("cpu")!;
          expect({ prologue, launcher, options, environment, epilogue, shebang, node, scratch }).toEqual({
            prologue: ["safe"],
            launcher: { name: "srun", overrides: [], prefix: [] },
            options: ["--x"],
            environment: {},
            epilogue: [],
          });
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(bad-value|unknown-key|bad-file)$/) });
        }
      }),
      { numRuns: 400 },
    );
  });
});

describe("row 002-60: overrides", () => {
  const declared = readClustersFile(
    "clusters: { hpc: { type: slurm, queues: { cpu: { walltime: 1h, account: old } } }, plain: { type: slurm } }",
    "clusters.yaml",
  );
  const combine = (text: string) => combineClusters([declared, ...overrideLayers(chooseStage([read(text)]))]);

  it("change a queue's parameters, and leave the rest", () => {
    const config = combine("clusters: { hpc: { queues: { cpu: { account: physics, fleet: { max: 2 } } } } }");
    expect(config.clusters.get("hpc")!.queues.get("cpu")).toMatchObject({
      walltime: 3600,
      account: "physics",
      fleet: { max: 2 },
    });
    expect(
      combine("clusters: { plain: { walltime: 2h, queues: { default: { nodes: 2 } } } }").clusters.get("plain")!.queues,
    ).toEqual(new Map([["default", expect.objectContaining({ walltime: 7200, nodes: 2 })]]));
  });

  it("a queue that is not declared is a mistake; a cluster that is not is another machine's", () => {
    expect(() => combine("clusters: { hpc: { queues: { cpus: { nodes: 2 } } } }")).toThrow(
      /slipway\.yaml:1:\d+: .*has no queue 'cpus'; did you mean 'cpu'/,
    );
    expect([...combine("clusters: { elsewhere: { nodes: 2 } }").clusters.keys()]).toEqual(["local", "hpc", "plain"]);
  });

  it("hold also for a cluster that only --clusters declares", () => {
    const layers = overrideLayers(chooseStage([read("clusters: { far: { walltime: 2h, account: a } }")]));
    const far = readClustersFile("clusters: { far: { type: slurm, walltime: 1h } }", "far.yaml");
    expect(
      combineClusters([...layers, far])
        .clusters.get("far")!
        .queues.get("default"),
    ).toMatchObject({
      walltime: 3600,
      account: "a",
    });
  });
});
