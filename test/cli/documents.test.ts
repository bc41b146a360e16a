import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";

/** Documents that people paste from: every command in them is typed here, in a copy of the examples. */

const BUSY_MS = 240_000;

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
  await cp(join(ROOT, "examples"), join(slipway.cwd, "examples"), { recursive: true });
});

afterEach(() => slipway.cleanup());

const blocks = async (document: string, language: string): Promise<string[]> =>
  [
    ...(await readFile(join(ROOT, document), "utf8")).matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms")),
  ].map(([, text]) => text!);

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${join(ROOT, "bin")}:${process.env["PATH"]}`,
  SLIPWAY_HOME: slipway.home,
  TMPDIR: slipway.tmp,
});

/** One shell for all of it, as one terminal; it ends at the first command that fails, which its trace names. */
const type = async (script: string): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)("bash", ["-euo", "pipefail", "-xc", script], {
    cwd: slipway.cwd,
    env: environment(),
    timeout: BUSY_MS,
  }).catch((error: { stderr?: string; stdout?: string }) => {
    throw new Error(`a command of the document failed:\n${error.stderr?.slice(-3000)}\n${error.stdout?.slice(-1000)}`);
  });
  return stdout + stderr;
};

describe("documents, typed", () => {
  it(
    "README.md: the first campaign, and what is typed around it",
    async () => {
      const campaign = (await blocks("README.md", "sh")).filter(
        (text) => !text.includes("npm ci") && !text.includes("export PATH"),
      );
      expect(campaign).toHaveLength(2);
      const [file] = (await blocks("README.md", "yaml")).filter((text) => text.startsWith("name: docking"));
      expect(await readFile(join(ROOT, "examples", "docking.yaml"), "utf8")).toContain(
        file!.slice(file!.indexOf("tasks:")),
      );
      // its runs are counted from 1 in a home of its own
      const said = await type(`${campaign[0]}\nexport SLIPWAY_HOME=${slipway.home}/campaign\n${campaign[1]}`);
      expect(said).toContain("run 2 echo: done, 100 done");
      expect(said).toContain("ligand-008 -56.03\nligand-025 -55.98\nligand-042 -55.92\n");
    },
    BUSY_MS,
  );

  it(
    "docs/cookbook.md: every command does what it says",
    async () => {
      const parts = await blocks("docs/cookbook.md", "sh");
      expect(parts).toHaveLength(7);
      for (const part of parts.slice(1, -1))
        expect([...part.matchAll(/^# /gm)].length, part).toBeGreaterThanOrEqual(10);
      const [pipeline] = await blocks("docs/cookbook.md", "yaml");
      expect(await readFile(join(ROOT, "examples", "cookbook", "pipeline.yaml"), "utf8")).toContain(pipeline);
      const said = await type(parts.join("\n"));
      expect(said).toContain("wc -l");
      const made = join(slipway.cwd, "examples", "cookbook");
      expect(await readFile(join(made, "log.tsv"), "utf8")).toMatch(/^Seq\tHost\tStarttime\tJobRuntime\t/);
      expect(await readFile(join(made, "made", "total"), "utf8")).toMatch(/^\d+\n$/);
      expect(await readFile(join(made, "out", "3.txt"), "utf8")).toMatch(/^3 300 /);
    },
    BUSY_MS,
  );

  it("docs/sdk.md: every program runs", async () => {
    await mkdir(join(slipway.cwd, "node_modules"));
    await symlink(ROOT, join(slipway.cwd, "node_modules", "slipway"));
    expect((await slipway.run(["up"])).status).toBe(0);
    const programs = await blocks("docs/sdk.md", "ts");
    expect(programs).toHaveLength(3);
    for (const [i, program] of programs.entries()) {
      const { code } = await transform(program, { loader: "ts", format: "esm" });
      await writeFile(join(slipway.cwd, `program-${i}.mjs`), code);
    }
    expect(await type("node program-0.mjs")).toMatch(/11 of 11\nall done\n/);
    expect(await type("node program-1.mjs && slipway wait 2")).toContain("run 2");
    expect(await type("node program-2.mjs")).toMatch(/2\.0 DONE 0 "0 0\\n"/);
  });

  it("docs/api.md: curl reaches the server by its socket, and by its port with the key pinned", async (ctx) => {
    if (!existsSync("/usr/bin/curl") || !existsSync("/usr/bin/jq")) ctx.skip("curl and jq are not installed");
    expect((await slipway.run(["up"])).status).toBe(0);
    const [commands] = await blocks("docs/api.md", "sh");
    expect((await type(commands!)).match(/"keyPin"|"pid":/g)).toHaveLength(2);
    const other = commands!.replace("sha256//", "sha256//A");
    await expect(type(other)).rejects.toThrow(/failed/);
  });

  it(
    "docs/api.md: the example of every operation, with curl and with Python, is answered",
    async (ctx) => {
      const missing = ["curl", "jq", "python3"].filter((program) => !existsSync(`/usr/bin/${program}`));
      if (missing.length > 0) return ctx.skip(`${missing.join(", ")} not installed`);
      const page = await readFile(join(ROOT, "docs", "api.md"), "utf8");
      const [, paths = ""] = /^## Paths\n(.*?)^## Shapes/ms.exec(page) ?? [];
      const [prelude = "", ...operations] = paths.split(/^### /m);
      const of = (text: string, language: string): string =>
        new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(text)?.[1] ?? "";
      /** These need a workload manager, or the page that somebody signs in to. */
      const isLeftOut = (name: string): boolean => /\/(launches|session)\b/.test(name);
      const typed = operations.filter((text) => !isLeftOut(text.split("\n")[0]!));
      expect(typed.length).toBeGreaterThan(40);
      for (const text of operations) expect([of(text, "sh"), of(text, "python")], text.slice(0, 60)).not.toContain("");
      // run 1 has ended, and run 2 keeps the server from being idle
      await type("slipway up; slipway run --array 1-3 -- /bin/echo; slipway submit -- sleep 1000");
      const curls = typed.map((text) => `: ${text.split("\n")[0]}\n${of(text, "sh")}`);
      const isRetry = (text: string): boolean => text.includes("/retry");
      await type([of(prelude, "sh"), ...curls.filter((text) => !isRetry(text)), ...curls.filter(isRetry)].join("\n"));
      await type("slipway wait 1");
      const programs = typed.map((text) => of(text, "python"));
      await writeFile(join(slipway.cwd, "examples.py"), [of(prelude, "python"), ...programs].join("\n"));
      await type("python3 examples.py");
      await type("slipway cancel 2; slipway down --now");
    },
    BUSY_MS,
  );
});
