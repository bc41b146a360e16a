import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PilotAsk } from "../../../../src/managers/manager.ts";
import type { SlurmQueue } from "../../../../src/managers/slurm/keys.ts";
import { slurmDirectives } from "../../../../src/managers/slurm/directives.ts";

const MIB = 1024 * 1024;
const ask = (more: Partial<PilotAsk<SlurmQueue>> = {}): PilotAsk<SlurmQueue> => ({
  name: "job",
  stdout: "/d/out",
  stderr: "/d/err",
  nodes: 1,
  options: [],
  skipOptions: [],
  own: {},
  ...more,
});
const options = (more: Partial<PilotAsk<SlurmQueue>> = {}): string[] =>
  slurmDirectives(ask(more)).map((line) => line.replace(/^#SBATCH /, ""));

describe("slurm directives", () => {
  it("says everything a pilot can ask for", () => {
    expect(
      options({
        nodes: 2,
        cores: 8,
        memory: 10 * MIB + 1,
        tmp: 5 * MIB,
        gpus: 4,
        walltime: 3601,
        partition: "gpu",
        account: "proj",
        qos: "high",
        constraint: "a100&ib",
        reservation: "tuesday",
        exclusive: true,
        options: ["--mail-type=END"],
      }),
    ).toEqual([
      "--output=/d/out",
      "--error=/d/err",
      "--job-name=job",
      "--nodes=2",
      "--ntasks-per-node=1",
      "--cpus-per-task=8",
      "--mem=11M",
      "--tmp=5M",
      "--gres=gpu:4",
      "--time=61",
      "--partition=gpu",
      "--account=proj",
      "--qos=high",
      "--constraint='a100&ib'",
      "--reservation=tuesday",
      "--exclusive",
      "--no-requeue",
      "--mail-type=END",
    ]);
  });

  it("asks for nothing that was not asked for", () => {
    expect(options({ memory: 0, gpus: 0 })).toEqual([
      "--output=/d/out",
      "--error=/d/err",
      "--job-name=job",
      "--nodes=1",
      "--ntasks-per-node=1",
      "--no-requeue",
    ]);
  });

  it("leaves out directives that contain a word to skip", () => {
    expect(options({ walltime: 60, partition: "p", skipOptions: ["--time", "requeue", ""] }).join(" ")).not.toMatch(
      /time|requeue/,
    );
    expect(options({ partition: "p", skipOptions: ["--time"] })).toContain("--partition=p");
  });

  it("makes a heterogeneous job of several parts, each with its own words before the queue's", () => {
    const lines = slurmDirectives(
      ask({
        gpus: 2,
        partition: "p",
        qos: "q",
        own: {
          parts: [
            { features: "fast", nodes: "n[1-2]", excludes: "n3", licence: "foo:2" },
            { partition: "big", gres: "gpu:h100:1,shard:2", qos: "low", reserv: "r" },
          ],
        },
      }),
    );
    const between = lines.indexOf("#SBATCH hetjob");
    const [first, second] = [lines.slice(0, between), lines.slice(between + 1)];
    expect(first).toEqual(
      expect.arrayContaining([
        "#SBATCH --output=/d/out",
        "#SBATCH --gres=gpu:2",
        "#SBATCH --partition=p",
        "#SBATCH --qos=q",
        "#SBATCH --constraint=fast",
        "#SBATCH --nodelist='n[1-2]'",
        "#SBATCH --exclude=n3",
        "#SBATCH --licenses=foo:2",
      ]),
    );
    expect(second).toEqual(
      expect.arrayContaining([
        "#SBATCH --gres=gpu:h100:1,shard:2",
        "#SBATCH --partition=big",
        "#SBATCH --qos=low",
        "#SBATCH --reservation=r",
        "#SBATCH --nodes=1",
        "#SBATCH --no-requeue",
      ]),
    );
    expect(second.join("\n")).not.toContain("--output");
  });

  it("adds what a part asks for to the GPUs of the queue", () => {
    expect(options({ gpus: 1, own: { parts: [{ gres: "craynetwork:1" }] } })).toContain("--gres=gpu:1,craynetwork:1");
  });

  it("doubles the percent signs of file names", () => {
    expect(options({ stdout: "/d/100%j" })).toContain("--output=/d/100%%j");
  });

  it("refuses a line break, wherever it stands", () => {
    for (const bad of [{ partition: "a\nb" }, { options: ["--x\n#SBATCH --y"] }, { name: "a\rb" }, { stdout: "/a\n" }])
      expect(() => slurmDirectives(ask(bad))).toThrowError(expect.objectContaining({ code: "bad-value" }));
  });

  it("quotes any value so that it is one word again", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (name) => {
        // oxlint-disable-next-line no-control-regex
        fc.pre(!/[\n\r\0]/.test(name));
        const line = options({ name }).find((text) => text.startsWith("--job-name="))!;
        expect(unquote(line)).toBe(`--job-name=${name}`);
      }),
    );
  });
});

/** As sbatch reads a word of a directive. */
const unquote = (text: string): string => {
  let word = "";
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (quote === "" && char === "\\") word += text[++at] ?? "";
    else if (quote !== "" && char === quote) quote = "";
    else if (quote === "" && (char === "'" || char === '"')) quote = char;
    else if (quote === "" && (char === "#" || /\s/.test(char))) return `${word} CUT at ${at}`;
    else word += char;
  }
  return word;
};
