import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadClusters } from "../../../src/config/load-clusters.ts";
import { findProject } from "../../../src/config/find-project.ts";
import { loadProject } from "../../../src/config/load-project.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-project-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const put = (path: string, text = ""): string => {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
};
const make = (path: string): string => {
  mkdirSync(join(root, path), { recursive: true });
  return join(root, path);
};
const uid = process.getuid!();
const found = (cwd: string, home: string | undefined = undefined) =>
  findProject(join(root, cwd), { home, uid }).files.map((file) => file.slice(root.length + 1));

describe("rows 002-60, 002-61: where slipway.yaml and .slipway.yaml are looked for", () => {
  it("from the working directory up to the git root, the nearest of each, and not above", () => {
    put("slipway.yaml");
    put(".slipway.yaml");
    make("repo/.git");
    make("repo/a/b/c");
    expect(found("repo/a/b/c")).toEqual([]);
    put("repo/slipway.yaml");
    expect(found("repo/a/b/c")).toEqual(["repo/slipway.yaml"]);
    put("repo/a/.slipway.yaml");
    put("repo/a/b/slipway.yaml");
    expect(found("repo/a/b/c")).toEqual(["repo/a/b/slipway.yaml", "repo/a/.slipway.yaml"]);
    expect(found("repo")).toEqual(["repo/slipway.yaml"]);
  });

  it("a worktree's .git is a file", () => {
    put("tree/.git", "gitdir: /elsewhere\n");
    put("tree/slipway.yaml");
    make("tree/x");
    expect(found("tree/x")).toEqual(["tree/slipway.yaml"]);
  });

  it("outside of a repository, and above the user's own directory, only in the working directory", () => {
    put("me/slipway.yaml");
    make("me/x");
    expect(found("me/x", join(root, "me"))).toEqual([]);
    expect(found("me", join(root, "me"))).toEqual(["me/slipway.yaml"]);
    make(".git");
    expect(found("me/x", join(root, "me"))).toEqual([]);
    expect(found("me/x", join(root, "other"))).toEqual(["me/slipway.yaml"]);
  });

  it("a repository of another user above reaches nothing below it, and that is said", (ctx) => {
    if (uid !== 0) return ctx.skip("only root can give files away");
    put("slipway.yaml");
    make("x");
    chownSync(make(".git"), 12_345, 12_345);
    expect(findProject(join(root, "x"), { home: undefined, uid })).toEqual({
      files: [],
      warnings: [expect.stringMatching(/\.git belongs to another user \(12345\)/)],
    });
    chownSync(put("x/slipway.yaml"), 12_345, 12_345);
    expect(findProject(join(root, "x"), { home: undefined, uid }).warnings).toContainEqual(
      expect.stringMatching(/x\/slipway\.yaml belongs to another user/),
    );
    chmodSync(join(root, "x"), 0o1777);
    expect(findProject(join(root, "x"), { home: undefined, uid })).toEqual({
      files: [],
      warnings: [expect.anything(), expect.stringMatching(/x\/slipway\.yaml is not read: it is another user's/)],
    });
  });
});

describe("what is found is read with care", () => {
  const load =
    (...files: string[]) =>
    () =>
      loadProject({ files });
  it.each([
    ["a directory", () => make("slipway.yaml"), /it is not a file/],
    ["a pipe", () => (execFileSync("mkfifo", [join(root, "p")]), join(root, "p")), /it is not a file/],
    ["a device", () => (symlinkSync("/dev/zero", join(root, "z")), join(root, "z")), /it is not a file/],
    ["a link to nothing", () => (symlinkSync("/nowhere", join(root, "n")), join(root, "n")), /there is no such file/],
    ["not UTF-8", () => (writeFileSync(join(root, "u"), Buffer.from([255, 254])), join(root, "u")), /not UTF-8/],
    ["writable for all", () => (chmodSync(put("w"), 0o666), join(root, "w")), /everybody can write to it; `chmod o-w/],
    ["too large", () => (truncateSync(put("l"), 65 * 2 ** 20), join(root, "l")), /l.*(64|too large)/],
    ["a list", () => put("s", "- a\n"), /must be a map/],
    ["no YAML", () => put("y", "a: [\n"), /not valid YAML/],
  ] as const)("%s is refused", (_what, file, message) => expect(load(file())).toThrow(message));

  it("empty files say nothing, and a link to a file is one", () => {
    put("real.yaml", "queue: x\n");
    symlinkSync(join(root, "real.yaml"), join(root, "slipway.yaml"));
    expect(load(join(root, "slipway.yaml"), put("e"))().levels.map(({ input }) => input)).toEqual([{ queue: "x" }, {}]);
  });

  it("one that its owner cannot read is an error, not an absence", (ctx) => {
    if (uid === 0) return ctx.skip("root reads everything");
    chmodSync(put("slipway.yaml"), 0);
    expect(load(join(root, "slipway.yaml"))).toThrow(/permission denied/);
  });
});

describe("row 002-59: the home's clusters/*.yaml", () => {
  it("rows 002-58, 002-59: declare clusters as clusters.yaml does", async () => {
    put("clusters.yaml", "default: b\nclusters: { a: { type: slurm } }\n");
    put("clusters/b.yaml", "clusters: { b: { type: pbs } }\n");
    put("clusters/c.yml", "clusters: { c: { type: local } }\n");
    put("clusters/.hidden.yaml", "nonsense");
    put("clusters/b.yaml~", "nonsense");
    put("clusters/notes.txt", "nonsense");
    const config = await loadClusters({ home: root });
    expect([...config.clusters.keys()]).toEqual(["local", "a", "b", "c"]);
    expect(config.default).toBe("b");
  });

  it.each([
    ["clusters.yaml", "clusters/a.yaml"],
    ["clusters/a.yaml", "clusters/b.yaml"],
  ])("a cluster in %s and %s is an error that names both files and lines", async (one, two) => {
    put(one, "clusters:\n  a: { type: slurm }\n");
    put(two, "# later\nclusters:\n  b: { type: pbs }\n  a: { walltime: 1h }\n");
    await expect(loadClusters({ home: root })).rejects.toThrow(
      `${root}/${two}:4:3: clusters.a: the cluster 'a' is also in ${root}/${one}:2:3`,
    );
  });

  it("so is a setting of the server", async () => {
    put("clusters/a.yaml", "default: local\nlimits: { losses: 1 }\n");
    put("clusters/b.yaml", "limits: { losses: 2 }\n");
    await expect(loadClusters({ home: root })).rejects.toThrow(
      /b\.yaml:1:\d+: .*losses: limits.losses is also in .*a\.yaml:2/,
    );
  });

  it("stronger files still override it, and the file of --clusters may be one of them", async () => {
    put("clusters/a.yaml", "clusters: { a: { type: slurm, walltime: 1h, account: x } }\n");
    const explicitPath = put("mine.yaml", "clusters: { a: { walltime: 2h } }\n");
    const read = async (path: string) =>
      (await loadClusters({ home: root, explicitPath: path })).clusters.get("a")!.queues.get("default");
    expect(await read(explicitPath)).toMatchObject({ walltime: 7200, account: "x" });
    expect(await read(join(root, "clusters/a.yaml"))).toMatchObject({ walltime: 3600 });
  });

  it("beside the run, slipway.yaml, .slipway.yaml, --clusters: each over the one before", async () => {
    put("h/clusters.yaml", "clusters: { a: { type: slurm, walltime: 1m, nodes: 1, cores: 1, tmp: 1M, account: h } }\n");
    const foundPath = put("r/clusters.yaml", "clusters: { a: { walltime: 2m, nodes: 2, cores: 2, tmp: 2M } }\n");
    const files = [
      put("slipway.yaml", "clusters: { a: { walltime: 3m, nodes: 3, cores: 3 } }\n"),
      put(".slipway.yaml", "clusters: { a: { walltime: 4m, nodes: 4 } }\n"),
    ];
    const explicitPath = put("c.yaml", "clusters: { a: { walltime: 5m } }\n");
    const config = await loadClusters({ home: join(root, "h"), foundPath, explicitPath, project: { files } });
    expect(config.clusters.get("a")!.queues.get("default")).toMatchObject({
      walltime: 300,
      nodes: 4,
      cores: 3,
      tmp: 2 * 2 ** 20,
      account: "h",
    });
  });
});
