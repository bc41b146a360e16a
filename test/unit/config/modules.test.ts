import { chmod, mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clusterNamed } from "../../../src/config/clusters-file.ts";
import { effectiveCluster } from "../../../src/config/effective.ts";
import { checkClustersFiles, loadClusters, loadLayers } from "../../../src/config/load-clusters.ts";
import { SlipwayError } from "../../../src/errors.ts";
import type { Provider } from "../../../src/managers/provider.ts";
import { createProvider } from "../../../src/managers/registry.ts";
import { startWith } from "../../../src/starters/starters.ts";

/** Rows 003-17 and 003-23: managers and starters that do not come with Slipway. */

let root: string;
let home: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "slw-modules-")));
  home = join(root, "home");
  await mkdir(home);
});
afterEach(() => rm(root, { recursive: true, force: true }));

const MANAGER = `{
  title: "Toy", programs: ["toysub"], keys: { "toy-kind": { choices: ["a", "b"] }, extras: "words" }, clusterKeys: { toybox: "path" },
  environment: ({ own }) => ({ TOYBOX: own.toybox ?? "" }),
  directives: (ask) => [\`#TOY -n \${ask.nodes} \${ask.own.toyKind ?? ""}\`],
  problem: ({ gpus }) => (gpus === undefined ? undefined : { key: "gpus", detail: "toys have none", remedy: "Leave it out." }),
  starter: "toystart", hosts: "toyhosts", waiting: [[/^zzz$/, "it sleeps", "Wake it."]],
  create: ({ errors, units, run, programs }) => ({
    describe: async () => { if (programs.toysub === undefined) throw errors.unreachable("no toys"); return { version: "1", largest: { cpus: units("cpus", 2) } }; },
    submit: async () => { throw errors.refused("no more toys"); },
    poll: async () => { await run(["/nonexistent/toystat"]); return new Map(); },
    cancel: async () => undefined, list: async () => [],
  }),
}`;
const STARTER = "({ command, nodes }) => ({ start: [`slipway_start toy ${nodes} ${command.join(' ')}`] })";
const GOOD = `export default { contract: 1, managers: { toy: ${MANAGER} }, starters: { toystart: ${STARTER} } };`;

const moduleAt = async (text = GOOD, name = "toy.mjs"): Promise<string> => {
  const path = join(root, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode: 0o644 });
  return path;
};

const CLUSTER = { type: "toy", toybox: "/box", nodes: 2, "toy-kind": "b" };
const write = async (
  modules: unknown,
  cluster: object = CLUSTER,
  path = join(home, "clusters.yaml"),
): Promise<string> => {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify({ modules, clusters: { toys: cluster } }, null, 1));
  return path;
};
const load = async (where: Partial<Parameters<typeof loadClusters>[0]> = {}) =>
  clusterNamed(await loadClusters({ home, ...where }), "toys");
const refused = async (act: Promise<unknown>): Promise<SlipwayError> => {
  const error: unknown = await act.catch((cause: unknown) => cause);
  if (error instanceof SlipwayError) return error;
  throw new Error(`was not refused: ${JSON.stringify(error)}`);
};

describe("a manager from outside", () => {
  const TASK = `{ keys: ["toy"], usage: "none", read: (keys) => keys, backend: () => ({ help: false, resources: {}, keys: {}, notices: [] }),
    directives: (ask) => [\`#TOY \${ask.keys.toy}\`], jobName: (text) => text, mostInName: 50, ranks: "mpiexec", variables: /^TOY_/,
    array: { variable: "TOY_INDEX", first: 0 } }`;
  const withTask = (task: string): string => GOOD.replace("create:", `task: ${task}, create:`);

  it("may take tasks as jobs of their own; one that cannot has no task", async () => {
    await write([await moduleAt(withTask(TASK))]);
    expect((await load()).manager.batch!.task).toMatchObject({ keys: ["toy"], array: { variable: "TOY_INDEX" } });
    await write([await moduleAt(GOOD, "plain.mjs")]);
    expect((await load()).manager.batch!.task).toBeUndefined();
  });

  it.each([
    ["5", "task is not an object"],
    [TASK.replace("jobName:", "nameOf:"), "task.jobName is not a function"],
    [TASK.replace('usage: "none",', ""), "task.usage is missing"],
    [TASK.replace("mostInName: 50", "mostInName: 14"), "task.mostInName is less than 15"],
    [TASK.replace('"mpiexec"', '"magic"'), "task.ranks is neither srun nor mpiexec"],
    [TASK.replace("/^TOY_/", '"TOY"'), "task.variables is not a regular expression"],
    [TASK.replace('"TOY_INDEX"', '"1; rm"'), "task.array.variable is not a variable"],
  ])("a task that is none is refused: %s", async (task, words) => {
    await write([await moduleAt(withTask(task))]);
    expect((await refused(load())).message).toContain(words);
  });

  it("its array's ids are looked at: as many as were asked for, and each an id", async () => {
    const answering = (elements: string): string =>
      GOOD.replace('throw errors.refused("no more toys");', `return { nativeId: "7", elements: ${elements} };`);
    const submit = async (elements: string, name: string): Promise<unknown> => {
      await write([await moduleAt(answering(elements), name)]);
      const job = { name: "x", directory: root, command: [], array: 2 };
      return createProvider(await load())
        .submit(job)
        .catch((error: unknown) => error);
    };
    expect(await submit('["7.1", "7.2"]', "a.mjs")).toEqual({ nativeId: "7", elements: ["7.1", "7.2"] });
    for (const [at, elements] of ['["7.1"]', '["7.1", 2]', '"7.1"', "undefined"].entries())
      expect(await submit(elements, `b${at}.mjs`)).toMatchObject({ name: "CommandError", timedOut: true });
  });

  it("rows 003-17, 003-23: has keys, directives, a starter and a driver as those of Slipway have", async () => {
    await write([await moduleAt()]);
    const cluster = await load();
    const { batch } = cluster.manager;
    const [queue] = cluster.queues.values();
    expect(queue).toMatchObject({ nodes: 2, own: { toyKind: "b" } });
    expect(batch!.environment(cluster)).toEqual({ TOYBOX: "/box" });
    expect(batch!.directives({ ...queue!, name: "n", stdout: "", stderr: "" })).toEqual(["#TOY -n 2 b"]);
    const config = { name: batch!.starter, overrides: [], prefix: [], start: batch!.start! };
    const ask = { command: ["x"], nodes: 2, parts: 1, job: batch!.job, config, directory: "/d" };
    expect(startWith(ask).start).toEqual(["slipway_start toy 2 x"]);
    expect(batch!.job.hosts((name) => name)).toBe("toyhosts");
  });

  it("rejects with errors that Slipway knows", async () => {
    await write([await moduleAt()]);
    const provider = createProvider(await load());
    const job = { name: "n", directory: root, command: [] };
    await expect(provider.describe()).rejects.toMatchObject({ code: "cluster-unreachable" });
    await expect(provider.submit(job)).rejects.toMatchObject({
      code: "cluster-refused",
      facts: { detail: "no more toys" },
    });
    await expect(provider.poll(["1"])).rejects.toMatchObject({ code: "cluster-unreachable" });
    await write([join(root, "toy.mjs")], { ...CLUSTER, bin: "/opt/toys" });
    expect(await createProvider(await load()).describe()).toMatchObject({ largest: { cpus: 20_000 } });
  });

  it("its starter can be named by queues of any manager, its keys by its own only", async () => {
    const modules = [await moduleAt()];
    await write(modules, { type: "slurm", launcher: "toystart", nodes: 2 });
    expect([...(await load()).queues.values()][0]!.launcher).toMatchObject({
      name: "toystart",
      start: expect.any(Function),
    });
    await write(modules, { type: "slurm", "toy-kind": "a" });
    expect((await refused(load())).message).toMatch(/toy-kind: is a key of toy clusters; this one is of type slurm/);
    await write(modules, { ...CLUSTER, qos: "x" });
    expect((await refused(load())).message).toMatch(/qos: is a key of slurm clusters; this one is of type toy/);
    await write(modules, { ...CLUSTER, gpus: 1 });
    expect((await refused(load())).message).toMatch(/clusters\.yaml:\d+:\d+: clusters\.toys\.gpus: toys have none/);
    await write(modules, { ...CLUSTER, "toy-kind": "c" });
    expect((await refused(load())).message).toMatch(/toy-kind: must be one of a, b/);
  });

  it("is loaded where --clusters names the file, and known to the other files", async () => {
    const explicitPath = await write([await moduleAt()], CLUSTER, join(root, "mine.yaml"));
    expect((await load({ explicitPath })).manager.title).toBe("Toy");
    await write([join(root, "toy.mjs")], { type: "local" });
    const foundPath = join(root, "run", "clusters.yaml");
    await mkdir(dirname(foundPath));
    await writeFile(foundPath, JSON.stringify({ clusters: { toys: CLUSTER } }));
    await checkClustersFiles({ home, foundPath });
    expect((await load({ foundPath })).manager.title).toBe("Toy");
  });

  it("row 002-59: is loaded where a file of the home's clusters/ names it, also when a run lies there", async () => {
    const module = await moduleAt();
    const inHome = await write([module], CLUSTER, join(home, "clusters", "clusters.yaml"));
    await writeFile(join(home, "clusters.yaml"), JSON.stringify({ modules: [module], clusters: { more: CLUSTER } }));
    await writeFile(join(home, "clusters", "b.yaml"), JSON.stringify({ clusters: { others: CLUSTER } }));
    const config = await loadClusters({ home });
    for (const name of ["toys", "more", "others"]) expect(clusterNamed(config, name).manager.title).toBe("Toy");
    await checkClustersFiles({ home, foundPath: inHome });
    expect((await load({ foundPath: inHome })).manager.title).toBe("Toy");
  });

  it("rows 002-60, 002-61: a project overrides its queues, and each value is shown with its place", async () => {
    await write([await moduleAt()]);
    const file = join(root, "slipway.yaml");
    await writeFile(file, "clusters:\n  toys: { nodes: 3 }\n");
    const loaded = await loadLayers({ home, project: { files: [file] } });
    const shown = effectiveCluster(loaded, [], "toys").values;
    expect(shown).toContainEqual({ key: "queues.default.nodes", value: 3, file, line: 2 });
    expect(shown).toContainEqual(expect.objectContaining({ key: "queues.default.toy-kind", value: "b" }));
  });
});

describe("the driver of a manager from outside", () => {
  const made = async (methods: string): Promise<Provider> => {
    const name = `driver-${methods.replaceAll(/\W/g, "")}.mjs`.slice(-120);
    const module = await moduleAt(GOOD.replace("cancel: async () => undefined, list: async () => [],", methods), name);
    await write([module]);
    return createProvider(await load());
  };
  const job = { name: "n", directory: "/", command: [] };

  it.each(["undefined", "null", "7", "{ nativeId: 5 }", "{ nativeId: '' }", "{}"])(
    "an answer to submit that makes no sense (%s) may mean that the job was taken",
    async (answer) => {
      const provider = await made(
        `submit: async () => (${answer}), cancel: async () => undefined, list: async () => []`,
      );
      await expect(provider.submit(job)).rejects.toMatchObject({ name: "CommandError", timedOut: true });
    },
  );

  it("what it throws without a word of ours is no answer", async () => {
    const provider = await made(
      "submit: async () => { throw new TypeError('oops'); }, cancel: () => { throw 'text'; }, list: async () => undefined, poll: async () => []",
    );
    await expect(provider.submit(job)).rejects.toMatchObject({ name: "CommandError", timedOut: true });
    for (const act of [() => provider.cancel(["1"]), () => provider.list(""), () => provider.poll(["1"])])
      await expect(act()).rejects.toMatchObject({
        code: "cluster-unreachable",
        message: expect.stringMatching(/its driver/),
      });
  });

  it("states that are none are unknown, and outcomes too", async () => {
    const answers = `["a", undefined], ["b", { state: "weird" }], ["c", { state: "ended", outcome: "eaten", exitCode: "1" }], ["d", { state: "queued", raw: 5, reason: 7 }]`;
    const provider = await made(
      `poll: async () => new Map([${answers}]), cancel: async () => undefined, list: async () => [{ name: 5 }, { name: "x", nativeId: "9", more: 1 }]`,
    );
    const status = await provider.poll(["a", "b", "c", "d", "e"]);
    expect([...status.values()].map(({ state }) => state)).toEqual([
      "unknown",
      "unknown",
      "ended",
      "queued",
      "unknown",
    ]);
    expect(status.get("c")).toEqual({ state: "ended", raw: "", outcome: "unknown" });
    expect(status.get("d")).toEqual({ state: "queued", raw: "" });
    expect(await provider.list("")).toEqual([{ name: "x", nativeId: "9" }]);
  });
});

describe("what is refused names file, line, key and remedy", () => {
  const telling = async (): Promise<{ ran: string; module: string }> => {
    const ran = join(root, "ran");
    const told = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(ran)}, ""); ${GOOD}`;
    return { ran, module: await moduleAt(told) };
  };

  it("modules in a file that lies beside a run, whatever they are", async () => {
    const { ran, module } = await telling();
    const foundPath = await write([module], CLUSTER, join(root, "run", "clusters.yaml"));
    for (const act of [loadClusters({ home, foundPath }), checkClustersFiles({ home, foundPath })]) {
      const error = await refused(act);
      expect(error.message).toMatch(/run\/clusters\.yaml:2:\d+: modules: is not read from a file beside a run/);
      expect(error.hint).toMatch(/--clusters/);
    }
    const explicitPath = await write(undefined, { type: "local" }, join(root, "mine.yaml"));
    await refused(loadClusters({ home, foundPath, explicitPath }));
    await expect(stat(ran)).rejects.toThrow(/ENOENT/);
    expect((await load({ foundPath, explicitPath: foundPath })).manager.title).toBe("Toy");
  });

  it.each(["slipway.yaml", ".slipway.yaml"])("row 002-60: modules in %s, at its top and in a stage", async (name) => {
    const { ran, module } = await telling();
    const file = join(root, name);
    for (const [text, place] of [
      [`modules: [${module}]\n`, "1:1: modules:"],
      [`queue: x\nstages:\n  a:\n    modules: [${module}]\n`, "4:5: stages.a.modules:"],
    ] as const) {
      await writeFile(file, text);
      const error = await refused(loadClusters({ home, project: { files: [file] } }));
      expect(error.message).toContain(`${file}:${place} is not allowed here: anybody may have written this file`);
      expect(error.hint).toMatch(/clusters\.yaml of your home.*--clusters/);
    }
    await expect(stat(ran)).rejects.toThrow(/ENOENT/);
  });

  it.each<[string, (path: string) => Promise<string>, RegExp, RegExp]>([
    ["a path that is not absolute", async () => "toy.mjs", /must be an absolute path/, /Begin it with/],
    ["a file that is not there", async (path) => `${path}x`, /there is no file/, /Correct the path/],
    ["a directory", async (path) => dirname(path), /is not a file/, /module's file/],
    [
      "a file that others can write",
      async (path) => {
        await chmod(path, 0o664);
        return path;
      },
      /is writable by others/,
      /chmod go-w/,
    ],
    [
      "a directory that others can write",
      async (path) => {
        await chmod(dirname(path), 0o777);
        return path;
      },
      /is writable by others, who could put another module in its place/,
      /chmod go-w/,
    ],
    [
      "a way through a link",
      async (path) => {
        await symlink(path, join(root, "link.mjs"));
        return join(root, "link.mjs");
      },
      /symbolic link/,
      /real path: .*\/in\/toy\.mjs/,
    ],
  ])("%s", async (_what, change, detail, remedy) => {
    const path = await change(await moduleAt(GOOD, "in/toy.mjs"));
    await write([path]);
    const error = await refused(load());
    expect(error.message).toMatch(/^.*clusters\.yaml:\d+:\d+: modules\[0\]: /);
    expect(error.message).toMatch(detail);
    expect(error.hint).toMatch(remedy);
  });

  it("a directory like /tmp, with the sticky bit, is as good as one's own", async () => {
    const path = await moduleAt(GOOD, "in/toy.mjs");
    await chmod(dirname(path), 0o1777);
    await write([path]);
    expect((await load()).type).toBe("toy");
  });

  it.each([
    ["no default", "export const x = 1;", /has no default export/],
    ["another contract", "export default { contract: 2 };", /says contract 2; this Slipway knows 1/],
    ["no contract", "export default {};", /says contract nothing/],
    ["what does not load", "export default {", /cannot be loaded/],
    ["what throws", "throw new Error('oops');", /cannot be loaded: oops/],
    [
      "a manager of ours",
      "export default { contract: 1, managers: { slurm: {} } };",
      /there is already a manager slurm/,
    ],
    [
      "a starter of ours",
      "export default { contract: 1, starters: { srun: () => 1 } };",
      /there is already a starter srun/,
    ],
    ["no function", "export default { contract: 1, starters: { x: 1 } };", /starter x is not a function/],
    ["an odd name", "export default { contract: 1, managers: { 'A b': {} } };", /"A b" cannot be the name/],
    ["nothing in it", "export default { contract: 1, managers: { x: {} } };", /manager x: has no title/],
    ["a key of ours", GOOD.replace("extras:", "walltime:"), /there is already a key walltime/],
    ["another's key", GOOD.replace("extras:", "gres:"), /there is already a key gres/],
    ["an unknown kind", GOOD.replace('"words"', '"wrds"'), /key extras: there is no such kind of value/],
    ["no such starter", GOOD.replace('starter: "toystart"', 'starter: "nope"'), /there is no starter nope/],
    ["a key that all have", GOOD.replace("keys:", "understands: ['nodes'], keys:"), /understands names nodes/],
  ])("%s", async (what, text, detail) => {
    // a module is loaded once per process, whatever happens to its file
    await write([await moduleAt(text, `${what.replaceAll(/\W/g, "-")}.mjs`)]);
    const error = await refused(load());
    expect(error.message).toMatch(/clusters\.yaml:\d+:\d+: modules\[0\]: /);
    expect(error.message).toMatch(detail);
    expect(error.hint).not.toBe("");
  });

  it("what is no list of paths", async () => {
    await write("toy.mjs");
    expect((await refused(load())).message).toMatch(/modules: must be a list of paths/);
    await write([7]);
    expect((await refused(load())).message).toMatch(/modules\[0\]: must be an absolute path, not "7"/);
  });
});
