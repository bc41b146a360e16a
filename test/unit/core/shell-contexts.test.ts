import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { itemOf } from "../../../src/core/item.ts";
import { quoteFor } from "../../../src/core/shell-quoting.ts";
import { compile, expand } from "../../../src/core/template.ts";

/**
 * Items are data: whatever a text command looks like, the shell that runs it, dash or bash under the name sh, never
 * executes a value of an item. Texts are random mixtures of everything that shells treat specially; values try to break
 * out of each of them. What is refused is not run.
 */

const SHELLS = [
  ["dash", "/bin/dash"],
  ["bash", "/bin/bash"],
] as const;

const MARK = 'echo "$CASE">>"$CANARY"';

const arbValue = fc.oneof(
  fc.constantFrom(
    `$(${MARK})`,
    `\`${MARK}\``,
    `a[$(${MARK})]`,
    `a[\`${MARK}\`]=1`,
    `;${MARK};`,
    `';${MARK};'`,
    `";${MARK};"`,
    `'"';${MARK};'"'`,
    `x))\n${MARK}\n((`,
    `x)\n${MARK}\n(`,
    `}";${MARK};"\${x`,
    `}$(${MARK})`,
    `\\';${MARK};\\'`,
    `\\";${MARK};\\"`,
    `\n${MARK}\n`,
    `;;esac;${MARK};`,
    `]];${MARK};`,
    `]$(${MARK})`,
    `x];${MARK};`,
    `E\n${MARK}`,
    "plain",
    "7",
    "",
  ),
  fc.string({
    unit: fc.constantFrom(
      "'",
      '"',
      "\\",
      "$(",
      "`",
      ")",
      "}",
      "]",
      " ",
      ";",
      "\n",
      "#",
      "&",
      "a[",
      `$(${MARK})`,
      `;${MARK};`,
      MARK,
    ),
    maxLength: 8,
  }),
);

const inside = (quote: string, before: string, behind: string): string =>
  `${quote}${before.replaceAll(quote, "")}{item}${behind.replaceAll(quote, "")}${quote}`;

/** A word with the item somewhere in it. */
const { word } = fc.letrec<{ word: string; text: string }>((tie) => ({
  text: fc.constantFrom("", "", "x", "a b", "it's", '"', "\\'", "$HOME", "$x", "${x}", "}", ")", "#", "1+"),
  word: fc.oneof(
    { depthSize: "small" },
    {
      weight: 20,
      arbitrary: fc.constantFrom("{item}", '"{item}"', "'{item}'", "x{item}y", "-{item}", '"${x}{item}"', "$x{item}"),
    },
    { weight: 6, arbitrary: fc.tuple(tie("text"), tie("text")).map(([a, b]) => inside('"', a, b)) },
    { weight: 6, arbitrary: fc.tuple(tie("text"), tie("text")).map(([a, b]) => inside("'", a, b)) },
    tie("word").map((w) => `$(echo ${w})`),
    tie("word").map((w) => `"$(echo ${w})"`),
    tie("word").map((w) => `\${u:-${w}}`),
    tie("word").map((w) => `"\${u:-${w}}"`),
    tie("word").map((w) => `"\${u+${w}}"`),
    tie("word").map((w) => `\${x#${w}}`),
    tie("word").map((w) => `\${x:${w}}`),
    tie("word").map((w) => `\${a[${w}]}`),
    tie("word").map((w) => `$((${w} + 1))`),
    tie("word").map((w) => `$[${w}]`),
    tie("word").map((w) => `$'${w}'`),
    tie("word").map((w) => `$"${w}"`),
    tie("word").map((w) => `\`echo ${w}\``),
    tie("word").map((w) => `$(case a in a) echo ${w};; esac)`),
    tie("word").map((w) => `"$(case a in (a) echo ${w};; b) :; esac; echo ${w})"`),
    tie("word").map((w) => `$(cat <<E\n${w}\nE\n)`),
    tie("word").map((w) => `<(echo ${w})`),
    tie("word").map((w) => `$(echo a # it's )\necho ${w})`),
    fc.tuple(tie("word"), tie("word")).map(([a, b]) => a + b),
  ),
}));

const SIMPLE: readonly ((w: string) => string)[] = [
  (w) => `: ${w}`,
  (w) => `echo ${w}`,
  (w) => `printf %s ${w}`,
  (w) => `printf %d ${w}`,
  (w) => `printf -v ${w} x`,
  (w) => `x=${w}`,
  (w) => `x=${w} true ${w}`,
  (w) => `a[${w}]=1`,
  (w) => `a=(${w})`,
  (w) => `a=([${w}]=1)`,
  (w) => `let ${w}`,
  (w) => `let "y=${w.replaceAll('"', "")}"`,
  (w) => `eval echo ${w}`,
  (w) => `eval "echo ${w}"`,
  (w) => `command eval ${w}`,
  (w) => `X=1 eval ${w}`,
  (w) => `e'va'l ${w}`,
  (w) => `\\eval ${w}`,
  (w) => `trap ${w} EXIT`,
  (w) => `alias q=${w}`,
  (w) => `declare ${w}`,
  (w) => `declare -i y=${w}`,
  (w) => `export ${w}`,
  (w) => `export X=${w}`,
  (w) => `readonly R=${w}`,
  (w) => `unset ${w}`,
  (w) => `read ${w} </dev/null`,
  (w) => `test -v ${w}`,
  (w) => `[ ${w} -eq 1 ]`,
  (w) => `[ -v ${w} ]`,
  (w) => `[ -f ${w} ]`,
  (w) => `[[ ${w} -eq 1 ]]`,
  (w) => `[[ 1 -lt ${w} ]]`,
  (w) => `[[ -f ${w} && x == ${w} ]]`,
  (w) => `(( ${w} ))`,
  (w) => `((${w}))`,
  (w) => `( : ${w} )`,
  (w) => `{ : ${w}; }`,
  (w) => `! : ${w}`,
  (w) => `if [ ${w} = a ]; then eval ${w}; else : ${w}; fi`,
  (w) => `for i in ${w}; do : "$i" ${w}; done`,
  (w) => `for ((i=0; i<${w}; i++)); do break; done`,
  (w) => `while false; do : ${w}; done; : ${w}`,
  (w) => `case ${w} in ${w}) : ${w};; *) : ${w}; esac`,
  (w) => `f() { : ${w}; }; f ${w}`,
  (w) => `cat <<E\n${w}\nE`,
  (w) => `cat <<E\nit's $(date) ${w} \${x}\nE`,
  (w) => `cat <<E\n$(echo ${w})\nE`,
  (w) => `cat <<E\n\\$(echo ${w})\nE`,
  (w) => `cat <<'E'\n${w}\nE`,
  (w) => `cat <<"E"\n${w}\nE`,
  (w) => `cat <<\\E\n${w}\nE`,
  (w) => `cat <<E''F\n${w}\nEF`,
  (w) => `cat <<-E\n\t${w}\n\tE`,
  (w) => `cat <<A <<'B'\n${w}\nA\n${w}\nB`,
  (w) => `cat <<<${w}`,
  (w) => `: 2>/dev/null </dev/null ${w}`,
  (w) => `# don't ${w}`,
  (w) => `: a#b ${w} # ${w}`,
  (w) => `true && : ${w} | cat & wait`,
];

const DECOYS = [
  "",
  "",
  ': "it\'s"; ',
  ": 'say \"'; ",
  ": \\' \\\"; ",
  "# don't\n",
  ": $'a\\'b'; ",
  ": $'ab' ${x%'}'}; ",
  "x=1; ",
];

const arbText = fc
  .tuple(
    fc.constantFrom(...DECOYS),
    fc.array(fc.tuple(fc.constantFrom(...SIMPLE), word), { minLength: 1, maxLength: 2 }),
  )
  .map(([decoy, commands]) => decoy + commands.map(([make, w]) => make(w)).join("\n"));

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-contexts-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const CONTEXTS = 10_000;

describe("items are data", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const cases: string[] = [];
  for (const [text, value] of fc.sample(fc.tuple(arbText, arbValue), { numRuns: CONTEXTS, seed })) {
    const template = compile(text, { shell: true });
    if ("problem" in template) continue;
    try {
      cases.push(expand(template, { run: 1, task: 1, name: "n", attempt: 1, cwd: "/", item: itemOf(value, false) }));
    } catch (error) {
      expect(error).toBeInstanceOf(RangeError);
    }
  }

  it(`of ${CONTEXTS} random contexts enough are accepted to tell (seed ${seed})`, () => {
    expect(cases.length).toBeGreaterThan(CONTEXTS / 5);
  });

  it.each(SHELLS)(`no item is executed by %s (seed ${seed})`, (name, shell) => {
    if (!existsSync(shell)) throw new Error(`${shell} is not installed: the package ${name} has it`);
    const canary = join(directory, `canary-${name}`);
    writeFileSync(canary, "");
    // each in its own subshell: a syntax error ends only that one
    const script = cases.map((text, i) => `CASE=${i}\n(eval ${quoteFor(text, "word")})`);
    const file = join(directory, `cases-${name}`);
    writeFileSync(file, `exec </dev/null >/dev/null 2>&1\nexport CANARY CASE\n${script.join("\n")}\nexit 0\n`);
    const { status, signal } = spawnSync(shell, [file], {
      argv0: "sh",
      cwd: directory,
      env: { PATH: "/usr/bin:/bin", CANARY: canary },
      timeout: 110_000,
    });
    expect({ status, signal }).toEqual({ status: 0, signal: null });
    const hit = readFileSync(canary, "utf8").split("\n").filter(Boolean).map(Number);
    expect(hit.slice(0, 3).map((i) => cases[i])).toEqual([]);
  });
});
