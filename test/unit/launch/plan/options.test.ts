import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildLaunch, readLaunchFile } from "../../../../src/launch/plan/launch-spec.ts";
import { CONTROLLED, SHORT, WITH_VALUE, WITHOUT_VALUE } from "../../../../src/managers/slurm/sbatch-table.ts";
import type { OptionRefusal } from "../../../../src/managers/launch-dialect.ts";
import { readSbatchArgs, sbatchOption } from "../../../../src/managers/slurm/sbatch-options.ts";
import { plan, refused, type SampleOptions } from "./sample.ts";

const slurmArgs = (args: readonly string[], options: SampleOptions = {}, launch: Record<string, unknown> = {}) =>
  plan({ ...launch, slurm: { sbatch_args: args } }, options).directives;
const pbsArgs = (args: readonly string[], launch: Record<string, unknown> = {}, options: SampleOptions = {}) =>
  plan({ ...launch, pbs: { pbsbatch_args: args } }, { ...options, manager: "pbs" });

/** Reads, and throws if something was refused. */
const read = (args: readonly string[]) => {
  const refusals: OptionRefusal[] = [];
  const options = readSbatchArgs(args, (refusal) => void refusals.push(refusal));
  return { options, refusals };
};

/** The same word as `#SBATCH` lines may write it: quoted and escaped anywhere. */
const disguised = (word: string): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom("plain", "plain", "escaped", "single", "double"), {
      minLength: word.length,
      maxLength: word.length,
    })
    .map((ways) =>
      [...word]
        .map((char, i) => {
          if (ways[i] === "escaped" || char === "\\") return `\\${char}`;
          if (ways[i] === "single" && char !== "'") return `'${char}'`;
          return ways[i] === "double" && char !== '"' ? `"${char}"` : char;
        })
        .join(""),
    );

const LONG = Object.keys(CONTROLLED);
const LETTERS = Object.keys(SHORT);
const CONTROLLED_LETTERS = LETTERS.filter((letter) => SHORT[letter]! in CONTROLLED);
const FLAG_LETTERS = LETTERS.filter((letter) => WITHOUT_VALUE.has(SHORT[letter]!) && !(SHORT[letter]! in CONTROLLED));

const spellings = fc.oneof(
  // long names, complete or abbreviated, with the value beside or behind =
  fc
    .record({ name: fc.constantFrom(...LONG), cut: fc.nat({ max: 30 }), value: fc.constantFrom("=4", " 4", "") })
    .map(({ name, cut, value }) => `--${name.slice(0, Math.max(1, name.length - cut))}${value}`)
    .filter((text) => {
      const name = /^--([^= ]*)/.exec(text)![1]!;
      // a complete name of another option is that option
      return name in CONTROLLED || (!WITH_VALUE.has(name) && !WITHOUT_VALUE.has(name));
    }),
  // letters, alone or behind flags
  fc
    .record({
      flags: fc.array(fc.constantFrom(...FLAG_LETTERS), { maxLength: 3 }),
      letter: fc.constantFrom(...CONTROLLED_LETTERS),
      value: fc.constantFrom("4", " 4", "=4", ""),
    })
    .map(({ flags, letter, value }) => `-${flags.join("")}${letter}${value}`),
);

describe("users' options of sbatch", () => {
  it.each([
    ["-G4", "-G"],
    ["-G 4", "-G"],
    ["--gpus 4", "--gpus"],
    ["--gpus=4", "--gpus"],
    ["--gpu=4", "--gpu"],
    ["-HG4", "-G"],
    ["--comment=x -G4", "-G"],
    ["--comment=x --ntasks-per-node=2", "--ntasks-per-node"],
    ["--tasks-per-node=2", "--tasks-per-node"],
    ["-N 2", "-N"],
    ["--no-requeue", "--no-requeue"],
    ["--requeue", "--requeue"],
    ["-pgpu", "-p"],
    ["--chdir=/", "--chdir"],
    ["-o x", "-o"],
    ["-e x", "-e"],
    ["--gres=gpu:2", "--gres"],
    ["--gres=nic:1,gpu", "--gres"],
    ["--gres gres/gpu:a100:1", "--gres"],
    ["--gre=GPU=1", "--gre"],
    ["--wckey=x", "--wckey"],
    ["-J x", "-J"],
  ])("%s is not configurable", (arg, option) => {
    const error = refused(() => slurmArgs([arg]));
    expect(error.code).toBe("option-refused");
    expect(error.facts).toMatchObject({ manager: "slurm", option });
    expect(error.message).toContain(`slurm option ${option} is not configurable`);
    expect(error.hint).not.toBe("");
  });

  it("names the place in the file", () => {
    const text = 'command: x\nslurm:\n  sbatch_args:\n    - "--mem=1G"\n    - "-G 4"\n';
    const error = refused(() => buildLaunch(readLaunchFile(text, "job.yaml")));
    expect(error.message).toContain("job.yaml:5:7");
    expect(error.message).toContain("slurm option -G is not configurable");
  });

  it("no spelling of a controlled option passes, alone, among others, or over several entries", () => {
    fc.assert(
      fc.property(
        spellings.chain((text) =>
          fc.record({
            before: fc.constantFrom([], ["--mem=1G"], ["-H", "--nice"], ["--comment", "x y".replace(" ", "_")]),
            words: fc.tuple(...text.split(" ").map(disguised)),
            after: fc.constantFrom([], ["--exclusive"], ["-C big"]),
            split: fc.boolean(),
          }),
        ),
        ({ before, words, after, split }) => {
          const own = split ? words : [words.join(" ")];
          const { refusals } = read([...before, ...own, ...after]);
          expect(refusals.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it("whatever is written, nothing controlled comes out, and what comes out is read back as the same", () => {
    const word = fc.oneof(
      fc.constantFrom(...LONG, ...WITH_VALUE, ...WITHOUT_VALUE).map((name) => `--${name}`),
      fc.constantFrom(...LETTERS).map((letter) => `-${letter}`),
      fc.string({ unit: fc.constantFrom(..."-=GNpn4 'x\"\\#:,") }),
      fc.string({ maxLength: 8 }),
    );
    fc.assert(
      fc.property(fc.array(fc.array(word, { maxLength: 4 }).map((words) => words.join(" "))), (args) => {
        const { options } = read(args);
        for (const { name } of options) expect(Object.hasOwn(CONTROLLED, name)).toBe(false);
        const again = read(options.map(sbatchOption));
        expect(again.refusals).toEqual([]);
        expect(again.options.map(({ name, value }) => [name, value])).toEqual(
          options.map(({ name, value }) => [name, value]),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("others are appended, each in one unmistakable spelling", () => {
    expect(
      slurmArgs(["-C 'a&b'", "--mem 4G --exclusive", '--comment="it\'s -G 4"', "-A", "proj", "--future=1"]).slice(-6),
    ).toEqual([
      String.raw`#SBATCH --constraint=a\&b`,
      "#SBATCH --mem=4G",
      "#SBATCH --exclusive",
      String.raw`#SBATCH --comment=it\'s\ -G\ 4`,
      "#SBATCH --account=proj",
      "#SBATCH --future=1",
    ]);
    expect(slurmArgs(["--mem=1G # -G4 is said here"]).at(-1)).toBe("#SBATCH --mem=1G");
  });

  it.each([["--"], ["hetjob"], [":"], ["--mem"], ["-Z"], ["'open"], ["4"]])("%s is no option", (arg) => {
    expect(refused(() => slurmArgs([arg])).code).toBe("bad-value");
  });

  it("--gres without GPUs joins the launcher's own", () => {
    const gres = (cluster: readonly string[]) =>
      slurmArgs(["--gres=nic:2"], { cluster }, { slots: 2 }).filter((line) => line.includes("--gres"));
    expect(gres([])).toEqual(["#SBATCH --gres=nic:2"]);
    expect(gres(["tres_supported: false"])).toEqual(["#SBATCH --gres=gpu:1,nic:2"]);
  });

  it("--cpus-per-task is the launcher's where slots are CPUs, --time where walltime is given", () => {
    expect(slurmArgs(["-c 4"], {}, { slots: 1 })).toContain("#SBATCH --cpus-per-task=4");
    expect(refused(() => slurmArgs(["-c 4"], {}, { slots: 1, slot_type: "cpu" })).code).toBe("option-refused");
    expect(slurmArgs(["-t 10"])).toContain("#SBATCH --time=10");
    expect(refused(() => slurmArgs(["-t 10"], {}, { walltime: 60 })).code).toBe("option-refused");
  });
});

describe("users' options of qsub", () => {
  it.each("-c -C -e -G -h -I -j -J -k -o -q -r -R -S -u -v -V -W -X -z -N -P".split(" "))(
    "%s is not configurable",
    (option) => {
      for (const arg of [
        option,
        `${option}x`,
        `${option} x`,
        `-l mem=1gb ${option} x`,
        `-f${option.slice(1)}`,
        `'${option}' x`,
      ]) {
        const error = refused(() => pbsArgs([arg]));
        expect(error.code).toBe("option-refused");
        expect(error.message).toContain(`pbs option ${option} is not configurable`);
      }
    },
  );

  it.each([["--version"], ["--"], ["-l mem=1gb -- x"]])("%s is not configurable", (arg) => {
    expect(refused(() => pbsArgs([arg])).code).toBe("option-refused");
  });

  it.each([["-l"], ["-l mem"], ["-l mem=a b"], ["x"], ["-l 'mem=1 gb'"], [String.raw`-l me\m=1`], ["-A 'x"]])(
    "%s is refused",
    (arg) => expect(refused(() => pbsArgs([arg])).code).toBe("bad-value"),
  );

  it("a select keeps its other resources; counts are the launcher's", () => {
    const select = (args: readonly string[], launch: Record<string, unknown> = {}) => {
      const made = pbsArgs(args, { slots: 4, ...launch });
      return { lines: made.directives.filter((line) => line.includes("-l ")), notes: made.notes.join("\n") };
    };
    const kept = select(["-l select=9:ncpus=4:mem=10gb:ngpus=7:model=a", "-l place=scatter"]);
    expect(kept.lines).toEqual(["#PBS -l select=4:ngpus=1:ncpus=4:mem=10gb:model=a", "#PBS -l place=scatter"]);
    expect(kept.notes).toMatch(/9 chunks/);
    expect(kept.notes).toMatch(/ngpus=7/);
    expect(select(["-l select=2:ncpus=4:ngpus=1+3:mem=1gb"], { slot_type: "cpu", pbs: undefined }).lines).toHaveLength(
      1,
    );
    const cpu = plan(
      { slots: 4, slot_type: "cpu", pbs: { slots_per_node: 2, pbsbatch_args: ["-lselect=ncpus=64:ngpus=1"] } },
      { manager: "pbs" },
    );
    expect(cpu.directives).toContain("#PBS -l select=2:ncpus=2:ngpus=1");
    expect(select(["-l mem=1gb,walltime=1:00:00 -l software=x"]).lines).toEqual([
      "#PBS -l select=4:ngpus=1:mem=1gb",
      "#PBS -l walltime=1:00:00",
      "#PBS -l software=x",
    ]);
  });

  it("others are passed on", () => {
    expect(pbsArgs(["-A grant -p 5", "-m abe", "-M a@b.c", "-A 'two words'"]).directives.slice(-5)).toEqual([
      "#PBS -A grant",
      "#PBS -p 5",
      "#PBS -m abe",
      "#PBS -M a@b.c",
      '#PBS -A "two words"',
    ]);
  });
});
