import { programsOf } from "./preflight.ts";
import { bindsTmp, findProgram, word, type ContainerAsk, type ContainerRuntime } from "./runtime.ts";

/**
 * Apptainer and Singularity. Both inherit the environment of the job. From Apptainer 1.1 and Singularity 3.10 on, what an
 * environment holds is not evaluated by a shell if `--no-eval` says so; older ones do not know the option.
 */

const VERSION = /(apptainer|singularity)(?:-ce|-pro)?(?: version)? v?(\d+)\.(\d+)/i;

/** Whether it has `--no-eval`; undefined when the text is not a version of it. */
export const hasNoEval = (version: string | undefined): boolean | undefined => {
  const [, product, major, minor] = VERSION.exec(version ?? "") ?? [];
  if (product === undefined) return undefined;
  const [first, second] = product.toLowerCase() === "apptainer" ? [1, 1] : [3, 10];
  return Number(major) > first || (Number(major) === first && Number(minor) >= second);
};

const noEval = (version: string | undefined): string[] => {
  const known = hasNoEval(version);
  if (known !== undefined) return known ? ["run+=(--no-eval)"] : [];
  // not installed where the job was planned: the node is asked
  return ['if "$program" exec --help 2>/dev/null | grep -q -e --no-eval; then', "  run+=(--no-eval)", "fi"];
};

const GPU_OPTIONS = { cuda: ["run+=(--nv)"], rocm: ["run+=(--rocm)"], cpu: [] } as const;

const scriptOf =
  (runType: "apptainer" | "singularity"): ContainerRuntime =>
  (ask: ContainerAsk) => ({
    lines: [
      ...findProgram(runType, programsOf(runType)),
      "seen=$job",
      'run=("$program" exec)',
      ...noEval(ask.version),
      ...GPU_OPTIONS[ask.slotType],
      'run+=(--bind "$job:$seen")',
      ...(bindsTmp(ask) ? [] : ['run+=(--bind "$own/tmp:/tmp")']),
      ...ask.binds.map(
        ({ source, target, readOnly }) => `run+=(--bind ${word(`${source}:${target}${readOnly ? ":ro" : ""}`)})`,
      ),
      `run+=(--pwd / ${word(ask.image)})`,
    ],
    stop: [],
    remove: [],
    notes: [],
  });

export const apptainer = scriptOf("apptainer");
export const singularity = scriptOf("singularity");
