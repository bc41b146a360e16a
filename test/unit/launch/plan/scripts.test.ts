import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { environmentScript } from "../../../../src/launch/plan/environment-script.ts";
import { RUN_TYPES } from "../../../../src/config/launch-keys.ts";
import { fileOf, plan } from "./sample.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "slw-batch-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const NASTY =
  "$HOME `id` $(id) \"double\" 'single' back\\slash !bang *glob ~ # ; & | <> “typographic” ünïcødé\nline\ttab\r\n";

const elaborate = {
  name: "a name",
  slots: 6,
  image: "docker://registry.example/team/image:1.0",
  command: "echo \"$A\" 'b' `c`",
  env: { A: NASTY, APPTAINER_CACHEDIR: "/x y", EMPTY: "" },
  bind_mounts: ["/data:/data:ro", "/with space:/b"],
  startup_hook: "export X=1\n",
  files: [{ path: "a/b.py", content: "print()" }],
  cwd: "/b/it's",
};

describe("the scripts of a launch", () => {
  const shellcheck = existsSync("/usr/bin/shellcheck");

  it.skipIf(!shellcheck)(
    `satisfy shellcheck${shellcheck ? "" : " (skipped: it is not installed)"}`,
    { timeout: 120_000 },
    () => {
      const paths: string[] = [];
      for (const manager of ["slurm", "pbs"] as const) {
        for (const container_run_type of RUN_TYPES) {
          const launches = [
            { ...elaborate, container_run_type },
            { command: ["true"], slots: 0, container_run_type },
          ];
          for (const [n, launch] of launches.entries()) {
            const options = n === 0 ? { streamer: ["/opt/node", "agent's.js"], streamerEnv: { T: "1" } } : {};
            for (const { path, content } of plan(launch, { manager, ...options }).files) {
              if (path.includes("/") || path === "startup-hook.sh") continue;
              paths.push(join(directory, `${manager}-${container_run_type}-${n}-${path}`));
              writeFileSync(paths.at(-1)!, content);
            }
          }
        }
      }
      expect(paths.length).toBeGreaterThan(90);
      const { status, stdout } = spawnSync("shellcheck", paths, { encoding: "utf8" });
      expect(stdout).toBe("");
      expect(status).toBe(0);
    },
  );

  it("are the same for the same launch", () => {
    expect(plan(elaborate)).toEqual(plan(elaborate));
    expect(JSON.stringify(plan(elaborate, { manager: "pbs" }))).toBe(
      JSON.stringify(plan(elaborate, { manager: "pbs" })),
    );
  });

  it("keep what is secret from others", () => {
    const { files } = plan(elaborate, { streamer: ["node"], streamerEnv: { SLIPWAY_TOKEN: "secret" } });
    for (const { path, content, mode } of files) {
      if (content.includes("secret") || path.includes("environment")) expect(mode).toBe(0o600);
    }
    expect(files.filter(({ content }) => content.includes("secret")).map(({ path }) => path)).toEqual(["stream.sh"]);
  });

  it("tell the manager's id first and write the exit status last", () => {
    for (const manager of ["slurm", "pbs"] as const) {
      const lines = fileOf(plan({ command: ["true"] }, { manager }), "job.sh")
        .trimEnd()
        .split("\n");
      expect(lines.findIndex((line) => line.includes("native-id"))).toBeLessThan(
        lines.findIndex((line) => line.includes("/hosts")),
      );
      expect(lines.at(-1)).toMatch(/^finish /);
    }
  });
});

describe("a rank in Podman whose slots are NVIDIA GPUs", () => {
  let at = 0;
  /** Runs the rank on a node whose directories for CDI files and hooks hold these files. */
  const rank = (files: Readonly<Record<string, string>>, env: Readonly<Record<string, string>> = {}) => {
    const job = join(directory, `podman-${(at += 1)}`);
    const made = plan({ image: "docker://a/b:1", container_run_type: "podman", slots: 2 }, { directory: job });
    mkdirSync(join(job, "bin"), { recursive: true });
    for (const name of ["/etc/cdi", "/var/run/cdi", "/etc/containers/oci/hooks.d"])
      mkdirSync(join(job, "node", name), { recursive: true });
    for (const [path, text] of Object.entries(files)) writeFileSync(join(job, "node", path), text);
    writeFileSync(join(job, "bin/podman"), `#!/bin/sh\n[ "$1" != run ] || printf '%s\\n' "$@" >"${job}/ran"\n`, {
      mode: 0o755,
    });
    writeFileSync(join(job, "hosts"), "n1\n");
    writeFileSync(join(job, "slots"), "2\n");
    writeFileSync(join(job, "shared.sh"), "");
    const script = fileOf(made, "rank.sh").replaceAll(
      /(?<=["\s])(\/(?:etc|var\/run|usr\/share)\/(?:cdi|containers)\/)/g,
      `${job}/node$1`,
    );
    writeFileSync(join(job, "rank.sh"), script);
    const { status, stderr } = spawnSync("/bin/bash", [join(job, "rank.sh")], {
      encoding: "utf8",
      env: { PATH: `${join(job, "bin")}:/usr/bin:/bin`, XDG_RUNTIME_DIR: job, ...env },
    });
    return {
      status,
      stderr,
      ran: existsSync(join(job, "ran")) ? readFileSync(join(job, "ran"), "utf8").split("\n") : undefined,
    };
  };
  const CDI = '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": []}';

  it("gets them by a CDI file, whatever its name", () => {
    const found = rank({ "/var/run/cdi/gpus.json": CDI });
    expect(found).toMatchObject({ status: 0, stderr: "" });
    expect(found.ran).toContain("nvidia.com/gpu=all");
  });

  it("gets them by NVIDIA's older hook, which is told which", () => {
    const hook = { "/etc/containers/oci/hooks.d/oci-nvidia-hook.json": "{}" };
    const { ran, ...ended } = rank(hook, { CUDA_VISIBLE_DEVICES: "2,3" });
    expect(ended).toEqual({ status: 0, stderr: "" });
    expect(ran).not.toContain("--device");
    expect(ran).toContain("NVIDIA_VISIBLE_DEVICES");
  });

  it.each([{}, { "/etc/cdi/other.json": CDI.replace("nvidia", "intel") }])(
    "does not start without them, and says what the node lacks (%o)",
    (files) => {
      const { ran, status, stderr } = rank(files);
      expect({ ran, status }).toEqual({ ran: undefined, status: 125 });
      expect(stderr).toMatch(/^slipway: rank 0: podman: .*CDI file.*nvidia-ctk cdi generate/);
    },
  );
});

describe("the environment of a launch", () => {
  const shells = [["/bin/sh"], ["/bin/bash"], ["/usr/bin/busybox", "sh"]].filter(([path]) => existsSync(path!));

  /** What a program started after sourcing the file sees. */
  const seen = (shell: readonly string[], env: Readonly<Record<string, string>>): Record<string, string> => {
    const path = join(directory, "environment.sh");
    writeFileSync(path, environmentScript(env));
    const [program, ...words] = shell;
    const output = execFileSync(program!, [...words, "-c", `. ${path} && exec /usr/bin/env -0`], {
      env: { PATH: "/usr/bin:/bin", SHLVL: "2" },
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 2 ** 26,
    });
    return Object.fromEntries(
      output
        .toString("utf8")
        .split("\0")
        .filter((line) => line !== "")
        .map((line): [string, string] => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
  };

  it.each(shells)("comes through %s exactly", { timeout: 120_000 }, (...shell) => {
    const name = fc.stringMatching(/^V[A-Za-z0-9_]{0,12}$/);
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.string({
        unit: fc.constantFrom("'", '"', "$", "`", "\\", "\n", "\r", " ", "!", "ü", "€", "𝄞", "#", "=", "{", "("),
      }),
    );
    const value = text.map((written) => written.replaceAll("\0", "").replaceAll(/\p{Surrogate}/gu, ""));
    fc.assert(
      fc.property(fc.dictionary(name, value, { maxKeys: 8 }), (env) => {
        const plain = { ...env };
        const got = seen(
          shell.filter((part) => part !== undefined),
          plain,
        );
        for (const [key, expected] of Object.entries(plain)) expect(got[key]).toBe(expected);
      }),
      { numRuns: 25 },
    );
  });

  it.each(shells)("names that mean something to %s reach the command all the same", (...shell) => {
    const env = {
      UID: "5",
      PPID: "x",
      SECONDS: "7",
      OPTIND: "a",
      SHLVL: "40",
      RANDOM: "r",
      _: "u",
      A: NASTY,
      IFS: "x",
    };
    const job = join(directory, `job-${shell.length}-${shell[0]!.replaceAll("/", "-")}`);
    const made = plan({ command: ["/usr/bin/env", "-0"], env }, { directory: job });
    mkdirSync(join(job, "ranks/0/work"), { recursive: true });
    for (const name of ["enter.sh", "environment.sh"]) writeFileSync(join(job, name), fileOf(made, name));
    writeFileSync(join(job, "ranks/0/launch.sh"), "export SLIPWAY_RANK=0\n");
    const [program, ...words] = shell;
    const output = execFileSync(program!, [...words.filter(Boolean), join(job, "enter.sh"), job, "0"], {
      env: { PATH: "/usr/bin:/bin" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    expect(output.toString("utf8").split("\0")).toEqual(
      expect.arrayContaining([...Object.entries(env).map(([name, value]) => `${name}=${value}`), "SLIPWAY_RANK=0"]),
    );
  });

  it("carries 100 KB", () => {
    const value = `${NASTY}${"x'$".repeat(33_000)}end`;
    expect(seen(shells[0]!, { BIG: value, NASTY })).toMatchObject({ BIG: value, NASTY });
  });
});
