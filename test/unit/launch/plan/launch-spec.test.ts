import { readFileSync, readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { LaunchInput } from "../../../../src/launch/plan/launch-schema.ts";
import {
  buildLaunch,
  readLaunchBody,
  readLaunchFile,
  withFileContents,
} from "../../../../src/launch/plan/launch-spec.ts";
import { plan, refused } from "./sample.ts";

const build = (text: string) => buildLaunch(readLaunchFile(text, "job.yaml"));

describe("a launch file", () => {
  it("gives every key its value, and the rest its default", () => {
    const spec = build(`
name: 007
type: exp
cluster: hpc
resource_pool: gpu
slots: 8
slot_type: rocm
slurm: { sbatch_args: [--mem=0], slots_per_node: 4, gpu_type: mi250 }
pbs: { pbsbatch_args: ["-l mem=1gb"], slots_per_node: 2 }
user: alice
project: p
workspace: w
labels: [a, 1]
image: docker://busybox:1
container_run_type: podman
command: [echo, 0.10, true]
env: { A: 1.0, B: "", C: }
bind_mounts: ["/a:/b:ro", { host_path: /c/, container_path: /d }, /e]
cwd: /b/
files: [{ path: ./x/y.sh, content: "echo hi", executable: true }]
startup_hook: "export X=1"
walltime: 1h30m
stream_logs: false
`);
    expect(spec).toEqual({
      name: "007",
      type: "exp",
      cluster: "hpc",
      resourcePool: "gpu",
      slots: 8,
      slotType: "rocm",
      slurm: { args: ["--mem=0"], slotsPerNode: 4, gpuType: "mi250" },
      pbs: { args: ["-l mem=1gb"], slotsPerNode: 2 },
      user: "alice",
      project: "p",
      workspace: "w",
      labels: ["a", "1"],
      image: "docker://busybox:1",
      runType: "podman",
      command: ["echo", "0.10", "true"],
      env: { A: "1.0", B: "" },
      inherit: ["C"],
      binds: [
        { source: "/a", target: "/b", readOnly: true },
        { source: "/c", target: "/d", readOnly: false },
        { source: "/e", target: "/e", readOnly: false },
      ],
      cwd: "/b",
      files: [{ path: "x/y.sh", content: "echo hi", encoding: "utf8", executable: true }],
      startupHook: "export X=1",
      walltime: 5400,
      streamLogs: false,
    });
    expect(build("command: hostname")).toEqual({
      name: "job",
      type: "cmd",
      slots: 1,
      slurm: { args: [] },
      pbs: { args: [] },
      labels: [],
      command: ["/bin/sh", "-c", "hostname"],
      env: {},
      inherit: [],
      binds: [],
      files: [],
      streamLogs: true,
    });
    expect(build("command: x\nimage: none").image).toBeUndefined();
  });

  it("takes slots_per_trial for slots, from a file and from a request, but not both", () => {
    expect(build("command: x\nslots_per_trial: 4").slots).toBe(4);
    expect(build("command: x\nslots_per_trial: 0").slots).toBe(0);
    expect(buildLaunch(readLaunchBody({ command: ["x"], slots_per_trial: 4 })).slots).toBe(4);
    expect(plan({ slots_per_trial: 8 })).toEqual(plan({ slots: 8 }));
    for (const [text, where] of [
      ["slots: 4\nslots_per_trial: 4", "job.yaml:3:18"],
      ["slots_per_trial: -1", "job.yaml:2:18"],
      ["slots_per_trial: many", "job.yaml:2:18"],
    ] as const) {
      const error = refused(() => build(`command: x\n${text}`));
      expect(error).toMatchObject({ code: "bad-value", facts: { where, key: "slots_per_trial" } });
    }
  });

  it("takes variables as a list, where NAME= and NAME inherit", () => {
    expect(build("command: x\nenv: [A=1, B=, C, D==x, 'E=a=b']")).toMatchObject({
      env: { A: "1", D: "=x", E: "a=b" },
      inherit: ["B", "C"],
    });
  });

  it("takes a variable without a value from the job, however YAML spells that", () => {
    expect(build("command: x\nenv: { A: , B: null, C: ~, D: 'null', E: '' }")).toMatchObject({
      env: { D: "null", E: "" },
      inherit: ["A", "B", "C"],
    });
  });

  it("comes through JSON unchanged, as file and as request", () => {
    const text = "command: [a, b]\nslots: 2\nenv: { A: x, B: }\nfiles: [{ path: f, content: t }]";
    const { value } = readLaunchFile(text, "job.yaml");
    expect(buildLaunch(readLaunchBody(JSON.parse(JSON.stringify(value))))).toEqual(build(text));
  });

  it("carries the submitter's files as bytes, a directory as its files", () => {
    const document = readLaunchFile(
      "command: x\nfiles: [{ path: model, from: ./m }, { path: a, content: t }]",
      "job.yaml",
    );
    const seen: string[] = [];
    const inlined = withFileContents(document, (from) => {
      seen.push(from);
      return [
        { name: "one.py", bytes: new Uint8Array([0, 255]), executable: false },
        { name: "bin/two", bytes: new Uint8Array(), executable: true },
      ];
    });
    expect(seen).toEqual(["./m"]);
    expect(buildLaunch(inlined).files).toEqual([
      { path: "model/one.py", content: "AP8=", encoding: "base64", executable: false },
      { path: "model/bin/two", content: "", encoding: "base64", executable: true },
      { path: "a", content: "t", encoding: "utf8", executable: false },
    ]);
  });

  it.each([
    ["command: x\nslotz: 1", "unknown-key", "job.yaml:2:1", "slots"],
    ["command: x\nqueue: a", "unknown-key", "job.yaml:2:1", "resource_pool"],
    ["command: x\nslots_per_node: 2", "unknown-key", "job.yaml:2:1", "`slurm` or `pbs`"],
    ["command: x\nslurm:\n  gpu_typ: a", "unknown-key", "job.yaml:3:3", "gpu_type"],
    ["slots: 1", "bad-value", "job.yaml:1:1", "command"],
    ["command: x\nslots: -1", "bad-value", "job.yaml:2:8", "between 0"],
    ["command: x\nslots: 1.5", "bad-value", "job.yaml:2:8", "whole number"],
    ["command: x\ntype: a-b", "bad-value", "job.yaml:2:7", "short word"],
    ["command: x\nuser: -x", "bad-value", "job.yaml:2:7", "user"],
    ["command: ''", "bad-value", "job.yaml:1:10", "empty"],
    ["command: x\nimage: --x", "bad-value", "job.yaml:2:8", "not a valid image"],
    ["command: x\nenv: { 'A B': 1 }", "bad-value", "job.yaml:2:15", "not a valid variable name"],
    ["command: x\nenv:\n  - A=1\n  - 1A=1", "bad-value", "job.yaml:4:5", "not a valid variable name"],
    ['command: x\nslurm: { sbatch_args: ["--a\\n--gpus=9"] }', "bad-value", "job.yaml:2:24", "line break"],
    ["command: x\nbind_mounts: ['a:/b']", "bad-value", "job.yaml:2:15", "absolute"],
    ["command: x\nbind_mounts: ['/a:/b:rx']", "bad-value", "job.yaml:2:15", "pair"],
    ["command: x\nfiles: [{ path: ../x, content: a }]", "bad-value", "job.yaml:2:17", "inside"],
    ["command: x\nfiles: [{ path: x }]", "bad-value", "job.yaml:2:9", "exactly one"],
    ["command: x\nfiles: [{ path: x, content: a }, { path: ./x, content: a }]", "bad-value", "job.yaml:2:42", "twice"],
    [
      "command: x\nfiles: [{ path: a, content: x }, { path: a/b, content: y }]",
      "bad-value",
      "job.yaml:2:42",
      "be inside a, which is staged as a file",
    ],
    [
      "command: x\nfiles: [{ path: ./a/b/c, content: y }, { path: a/b, content: x }]",
      "bad-value",
      "job.yaml:2:17",
      "be inside a/b, which is staged as a file",
    ],
    [`command: x\nfiles: [{ path: a/${"é".repeat(150)}, content: x }]`, "bad-value", "job.yaml:2:17", "255 bytes"],
    ["command: x\nwalltime: 0", "bad-value", "job.yaml:2:11", "more than 0"],
    ["command: x\nuuid: 8ab56a42-7c63-4e5c-a263-2d3f9a3b8f1d", "bad-value", "job.yaml:2:7", "requests"],
    ["- a", "bad-file", "job.yaml:1:1", "list"],
  ])("%j is refused: %s at %s", (text, code, where, words) => {
    const error = refused(() => build(text));
    expect(error.code).toBe(code);
    expect(error.facts["where"]).toBe(where);
    expect(error.message).toContain(words);
    expect(error.hint).not.toBe("");
  });

  it("files of which one would lie in another are the request's mistake", () => {
    const files = ["a", "a/b"].map((path) => ({ path, content: "" }));
    const error = refused(() => buildLaunch(readLaunchBody({ command: "x", files })));
    expect(error.facts["where"]).toBe("files[1].path");
    expect(error.row.http).toBe(400);
  });

  it("a request cannot make the server read files", () => {
    const error = refused(() => readLaunchBody({ command: "x", files: [{ path: "a", from: "/etc/shadow" }] }));
    expect(error.facts["where"]).toBe("files[0].from");
  });

  it("bounds what reaches a program's environment", () => {
    const value = "x".repeat(100_000);
    expect(build(`command: x\nenv: { A: ${value} }`).env["A"]).toBe(value);
    const many = Array.from({ length: 11 }, (_, i) => `A${i}: ${value}`).join(", ");
    expect(refused(() => build(`command: x\nenv: { ${many} }`)).message).toContain("at most");
    expect(refused(() => build(`command: x\nenv: { A: ${"x".repeat(131_000)} }`)).code).toBe("bad-value");
  });
});

describe("examples/", () => {
  const examples = new URL("../../../../examples/", import.meta.url);
  const names = readdirSync(examples).filter((name) => /^launch-.*\.yaml$/.test(name));

  it.each(names)("%s is a launch that both managers would get", (name) => {
    const document = withFileContents(readLaunchFile(readFileSync(new URL(name, examples), "utf8"), name), (from) => [
      { name: "", bytes: readFileSync(new URL(from, examples)), executable: true },
    ]);
    for (const manager of ["slurm", "pbs"] as const) {
      const { directives, notes } = plan(document.value, { manager });
      expect(directives.length).toBeGreaterThan(5);
      expect(notes.filter((note) => !note.includes("no prepared image") && !note.includes("at least"))).toEqual([]);
    }
  });

  it("are all there", () => expect(names).toHaveLength(3));
});

describe("docs/launch.md", () => {
  const guide = readFileSync(new URL("../../../../docs/launch.md", import.meta.url), "utf8");

  it.each([...guide.matchAll(/^```yaml\n(.*?)^```$/gms)].map((match, i) => [`snippet ${i + 1}`, match[1]!]))(
    "%s is a launch",
    (_name, text) => expect(build(text).command.length).toBeGreaterThan(0),
  );

  it.each(Object.keys(LaunchInput.shape).filter((key) => key !== "uuid"))("tells about %s", (key) =>
    expect(guide).toContain(`\`${key}\``),
  );
});
