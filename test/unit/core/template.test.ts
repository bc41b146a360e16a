import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { itemOf } from "../../../src/core/item.ts";
import { compile, compileTrusted, expand, type TemplateContext } from "../../../src/core/template.ts";

const context = (item?: string, json = false): TemplateContext => ({
  run: 3,
  task: 17,
  name: "dock",
  attempt: 2,
  cwd: "/data",
  ...(item === undefined ? {} : { item: itemOf(item, json) }),
});

const expanded = (text: string, item = "x", json = false, shell = false): string =>
  expand(compileTrusted(text, { shell }), context(item, json));

describe("placeholders", () => {
  it("all known ones", () => {
    expect(expanded("{run}.{task} {name}#{attempt} {item} {cwd}")).toBe("3.17 dock#2 x /data");
  });

  it.each([
    ["{{item}}", "{item}"],
    ["{{}}", "{}"],
    ['{{"a": {{"b": {item}}}}}', '{"a": {"b": x}}'],
    ["${HOME}/{item}", "${HOME}/x"],
    ["${A:-${B}}", "${A:-${B}}"],
    ["{{ ${A:-${B}} }}", "{ ${A:-${B}} }"],
    ["${A:-{item}}", "${A:-x}"],
    ["awk '{print $1}' {item}", "awk '{print $1}' x"],
    ["awk '{ if (a) { print $1 }}'", "awk '{ if (a) { print $1 }}'"],
    ["awk '{{ if (a) { print $1 }}}'", "awk '{ if (a) { print $1 }}'"],
    ["echo {1..3} {a,b} {} { x; }", "echo {1..3} {a,b} {} { x; }"],
    ["f() {\n  true\n}", "f() {\n  true\n}"],
    ["{", "{"],
    ["}", "}"],
    ["}}", "}}"],
    ["", ""],
    ["{item}{item}", "xx"],
  ])("%j becomes %j", (text, result) => {
    expect(expanded(text)).toBe(result);
    expect(expanded(text, "x", false, true)).toBe(result);
  });

  it("a text without placeholders is the same string every time", () => {
    const template = compileTrusted("echo constant");
    expect(template.constant).toBe("echo constant");
    expect(template.uses.size).toBe(0);
  });

  it.each(["{itm}", "{Item}", "a{foo}b", "{foo.bar}", "{print}"])("%j is an unknown placeholder", (text) => {
    expect(compile(text)).toMatchObject({ problem: "unknown" });
  });

  it.each(["{item[0]}", "{item.}", "{item..x}", "{name.x}", "{run.id}"])("%j is malformed", (text) => {
    expect(compile(text)).toMatchObject({ problem: "malformed" });
  });

  it("fields of JSON items", () => {
    const item = JSON.stringify({ mem: "2G", n: 5, deep: { list: ["a", { b: true }] }, none: null });
    expect(expanded("{item.mem} {item.n} {item.deep.list.1.b} {item.deep.list} {item.none}", item, true)).toBe(
      '2G 5 true ["a",{"b":true}] null',
    );
    expect(expanded("{item}", item, true)).toBe(item);
    expect(expanded("{item}", '"a b"', true)).toBe("a b");
    expect(compileTrusted("{item.a.b} {item.a.b} {item.c}").fields).toEqual([["a", "b"], ["c"]]);
    for (const field of ["nope", "deep.nope", "mem.length", "constructor", "__proto__", "deep.list.length"]) {
      expect(() => expanded(`{item.${field}}`, item, true)).toThrow(/no field/);
    }
  });

  it("never crashes, and escaped text always comes back", () => {
    const text = fc.string({
      unit: fc.constantFrom("{", "}", "$", "item", "run", ".", "a", " ", "'", '"', "\\", "\n", "#", "<<E"),
    });
    fc.assert(
      fc.property(text, fc.boolean(), (text, shell) => {
        const template = compile(text, { shell });
        // a field of an item that has none is refused when it is placed, as it should be
        if ("problem" in template || template.fields.length > 0) return;
        expect(typeof expand(template, context("v"))).toBe("string");
      }),
      { numRuns: 2000 },
    );
    const plain = fc.string({ unit: fc.constantFrom("a", "item", "{{", " ", '"') });
    fc.assert(
      fc.property(plain, (text) => {
        const escaped = `${text} item ${"}}".repeat(text.split("{{").length - 1)}`;
        expect(expanded(escaped)).toBe(escaped.replaceAll("{{", "{").replaceAll("}}", "}"));
      }),
    );
  });
});

const run = (script: string): string => execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" });

describe("values in shell text are data", () => {
  const hostile = [
    "a b",
    "$(touch /nowhere)",
    "`id`",
    "it's",
    'say "hi"',
    "a\\b",
    "*",
    "~",
    "a;b|c&d",
    "",
    "${HOME}",
    "ünï",
    "a\nb",
    "#x",
    "-n",
    "$HOME\\",
    "'\"'",
  ];

  it.each([
    ["unquoted", "printf %s {item}"],
    ["in double quotes", 'printf %s "{item}"'],
    ["in single quotes", "printf %s '{item}'"],
    ["after both", `: "a'b" 'c"d' ; printf %s {item}`],
    ["in a substitution", "printf %s \"$(printf %s {item}; echo .)\" | sed '$s/\\.$//'"],
    ["in quotes in a substitution", 'printf %s "$(printf %s "{item}"; echo .)" | sed \'$s/\\.$//\''],
    ["after a comment with a quote", "# don't\nprintf %s {item}"],
    ["after an escaped quote", ": \\' ; printf %s {item}"],
    ["after a case", "case a in a) printf %s {item};; esac"],
    ["after a here-document", "cat <<E >/dev/null\nit's\nE\nprintf %s {item}"],
    ["in a variable", 'x={item}; printf %s "$x"'],
  ])("%s", (_, command) => {
    for (const value of hostile) expect(run(expanded(command, value, false, true)), value).toBe(value);
  });

  it("in here-documents", () => {
    for (const value of hostile.filter((text) => !text.includes("\n"))) {
      expect(run(expanded('cat <<EOF\nit\'s "{item}"\nEOF\n', value, false, true))).toBe(`it's "${value}"\n`);
      expect(run(expanded("cat <<-'EOF'\n\t{item}'\n\tEOF\n", value, false, true))).toBe(`${value}'\n`);
    }
    expect(() => expanded("cat <<EOF\n{item}\nEOF", "a\nEOF\nid", false, true)).toThrow(/line break/);
    expect(() => expanded("true # {item}", "a\nid", false, true)).toThrow(/line break/);
  });

  it("plain values stay readable, a command that is one placeholder stays a command", () => {
    expect(expanded("./dock --ligand {item}", "ligands/a-1.pdb", false, true)).toBe("./dock --ligand ligands/a-1.pdb");
    expect(expanded("{item}", "echo a | wc", false, true)).toBe("echo a | wc");
    expect(expanded(" {item.c}\n", '{"c":"a | b"}', true, true)).toBe(" a | b\n");
  });

  it("is refused between backquotes, and left alone after a backslash", () => {
    expect(compile("echo `ls {item}`", { shell: true })).toMatchObject({ problem: "malformed" });
    expect(compile("sed 's/\\{item}/y/'", { shell: true })).toMatchObject({ constant: "sed 's/\\{item}/y/'" });
  });

  it.each([
    ["arithmetic", "echo $(( {item} + 1 ))"],
    ["arithmetic", "(( {item} > 1 )) && echo"],
    ["arithmetic", "for ((i = 0; i < {item}; i++)); do :; done"],
    ["arithmetic", "echo $[{item}]"],
    ["arithmetic", "a[{item}]=1"],
    ["arithmetic", "a=([{item}]=1)"],
    ["'let'", "let x={item}"],
    ["'eval'", "eval echo {item}"],
    ["'eval'", "if true; then X=1 command -p e'va'l \"echo {item}\"; fi"],
    ["'eval'", 'eval "$(echo {item})"'],
    ["'trap'", "trap 'rm {item}' EXIT"],
    ["'unset'", "unset {item}"],
    ["'export'", "export {item}"],
    ["'printf -v'", "printf -v {item} x"],
    ["compares numbers", "[[ {item} -eq 1 ]]"],
    ["compares numbers", "[[ $(cat <<E\n{item}\nE\n) -eq 1 ]]"],
    ["$'…'", "printf %s $'{item}'"],
    ["inside ${ … }", 'echo "${x:-"{item}"}"'],
    ["inside ${ … }", "echo ${x:{item}}"],
    ["inside ${ … }", "echo ${a[{item}]}"],
    ["here-document", "cat <<E\n$(echo {item})\nE"],
    ["here-document", "cat <<E\n${x:-{item}}\nE"],
    ["backquotes", "echo `ls {item}`"],
    ["part of the variable name", "ls $dir{item}"],
    ["disagree about what comes before it", ": $'a\\'b'; echo {item}"],
  ])("is refused where no quoting helps: %s in %s", (why, command) => {
    const { detail } = compile(command, { shell: true }) as { detail: string };
    expect(detail).toContain(why);
  });

  it.each([
    'echo "${x:-{item}}"',
    "echo ${x:-{item}}",
    "export X={item}",
    "[[ -f {item} && {item} == *.txt ]]",
    "[ {item} -eq 1 ]",
    "cat <<E\nDear ${USER:-you}, $(date) {item}\nE",
    'x="$(case a in a) echo {item};; esac)"; ls {item}',
    "read x < {item}; echo evaluate {item}; ./eval.sh {item}",
    "a=({item} b)",
    ': "it\'s" # let {item}',
    "ls ${dir}{item} $1{item}",
    "echo $(( {task} % 7 + {attempt} )) `echo {run}`",
  ])("is taken where it is safe: %s", (command) => {
    expect(compile(command, { shell: true })).toHaveProperty("parts");
  });

  it("what an older version took fails when it is expanded, not before", () => {
    const template = compileTrusted("echo $(( {item} ))", { shell: true });
    expect(() => expand(template, context("1"))).toThrow(/arithmetic/);
  });

  it("holds for random values in every kind of quote", () => {
    const value = fc.string({
      unit: fc.constantFrom("'", '"', "\\", "$", "`", "(", ")", " ", "a", "\n", "#", "!", "&", ";", "*", "{", "}"),
    });
    fc.assert(
      fc.property(fc.array(value, { minLength: 5, maxLength: 20 }), (values) => {
        // One shell for many values: a marker line ends each.
        const script = values.flatMap((v) =>
          ["printf '%s\\1' {item}", 'printf "%s\\1" "{item}"', "printf '%s\\1' 'x{item}'"].map((c) =>
            expanded(c, v, false, true),
          ),
        );
        expect(run(script.join("\n")).split("\u0001").slice(0, -1)).toEqual(values.flatMap((v) => [v, v, `x${v}`]));
      }),
      { numRuns: 30 },
    );
  });
});
