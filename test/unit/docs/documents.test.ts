import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { buildRun } from "../../../src/config/build-run.ts";
import { loadRunFile, readRunFile } from "../../../src/config/read-run-file.ts";
import { PILOT_STATES, TASK_STATES } from "../../../src/core/states.ts";
import { ERRORS } from "../../../src/errors.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "examples/README.md",
  ...(readdirSync(join(root, "docs"), { recursive: true }) as string[])
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
].toSorted();

/** Code is not prose: it contains no links. */
const withoutCode = (text: string): string => text.replaceAll(/^```.*?^```$/gms, "").replaceAll(/`[^`\n]*`/g, "");

const anchors = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

describe("documents", () => {
  it.each(documents)("%s: links lead somewhere", (path) => {
    for (const [, target] of withoutCode(read(path)).matchAll(/\]\(([^()\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [file, anchor] = target!.split("#") as [string, string | undefined];
      const other = file === "" ? path : relative(root, join(root, dirname(path), file));
      expect(existsSync(join(root, other)), `${path} links to ${target}`).toBe(true);
      if (anchor !== undefined) expect(anchors(read(other)), `${path} links to ${target}`).toContain(anchor);
    }
  });

  it("README.md: every run file and clusters.yaml in it is one", () => {
    const snippets = [...read("README.md").matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text]) => text!);
    expect(snippets.length).toBeGreaterThan(0);
    for (const text of snippets) {
      if (/^clusters:/m.test(text)) {
        expect(combineClusters([readClustersFile(text, "README.md")]).clusters.size).toBeGreaterThan(1);
        continue;
      }
      const { spec } = buildRun(readRunFile(text, "README.md"), { cwd: "/work", env: {} });
      expect(spec.groups.length).toBeGreaterThan(0);
    }
  });

  it("README.md: names the commands and files that exist", () => {
    const readme = read("README.md");
    expect(readme).toContain("npm ci && bin/slipway run examples/montecarlo.yaml");
    expect(readme).toContain("npm ci && npm test");
    expect(read(".ci/run")).toContain("npm ci && npm test");
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    for (const [, name] of read("CONTRIBUTING.md").matchAll(/npm run ([a-z:-]+)/g))
      expect(scripts).toHaveProperty([name!]);
    const verbs = new Set([...read("src/cli/verbs.ts").matchAll(/verb\([A-Z]+, "([a-z]+)"/g)].map(([, name]) => name));
    for (const [, name] of readme.matchAll(/^bin\/slipway ([a-z]+)/gm)) expect(verbs).toContain(name);
  });

  it("docs/errors.md: lists every error", () => {
    const listed = [...read("docs/errors.md").matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, code]) => code);
    expect(listed).toEqual(Object.keys(ERRORS).toSorted());
  });

  it("docs/glossary.md: knows the words of the states, and every state", () => {
    const glossary = read("docs/glossary.md");
    for (const word of ["run", "group", "task", "attempt", "job", "pilot", "agent", "journal", "epoch", "lease"])
      expect(glossary).toMatch(new RegExp(`^\\| ${word} +\\|`, "m"));
    for (const state of PILOT_STATES) expect(glossary).toContain(`\`${state}\``);
    const shown = [...glossary.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name);
    for (const state of TASK_STATES.filter((name) => !/STAGING|AGENT_(SCHEDULING|EXECUTING_PENDING)/.test(name)))
      expect(shown).toContain(state);
  });

  it("docs/rules.json: sixteen rules, each in files that exist", () => {
    const { rules } = JSON.parse(read("docs/rules.json")) as { rules: { n: number; where: string[] }[] };
    expect(rules.map(({ n }) => n)).toEqual(Array.from({ length: 16 }, (_, i) => i + 1));
    for (const { n, where } of rules)
      for (const path of where) expect(existsSync(join(root, path)), `rule ${n}: ${path}`).toBe(true);
  });

  it("docs/decisions: each is listed, with context, decision and consequences", () => {
    const index = read("docs/decisions/README.md");
    const names = readdirSync(join(root, "docs", "decisions")).filter((name) => /^\d{4}-.*\.md$/.test(name));
    for (const [i, name] of names.toSorted().entries()) {
      expect(name.slice(0, 4)).toBe(String(i + 1).padStart(4, "0"));
      expect(index).toContain(`(${name})`);
      const text = read(join("docs", "decisions", name));
      expect([...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title)).toEqual([
        "Context",
        "Decision",
        "Consequences",
      ]);
      const decided = text.matchAll(/`((?:src|native|test)\/[\w./-]+)`/g);
      for (const [, path] of decided) expect(existsSync(join(root, path!)), `${name}: ${path}`).toBe(true);
    }
  });

  it("examples: every file validates and is described", () => {
    const names = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".yaml"));
    expect(names.length).toBeGreaterThanOrEqual(3);
    for (const name of names) {
      expect(read("examples/README.md")).toContain(`(${name})`);
      // launches are checked by test/unit/launch/plan/launch-spec.test.ts
      if (name.startsWith("launch-")) continue;
      const document = loadRunFile(join(root, "examples", name));
      expect(buildRun(document, { cwd: root, env: {} }).spec.groups.length).toBeGreaterThan(2);
    }
  });
});
