import { access, constants, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { SlipwayError } from "../../errors.ts";
import { findProgram } from "../../find-program.ts";

export interface FoundPython {
  /** Absolute; links are kept, since a virtual environment is one. */
  readonly path: string;
  readonly warning?: string;
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    async () => (await stat(path)).isFile(),
    () => false,
  );

/** The interpreter that --python names, else `python` of the PATH as in the jobs, else python3. */
export const findPython = async (given?: string): Promise<FoundPython> => {
  if (given !== undefined) {
    const path = given.includes("/") ? resolve(given) : await findProgram(given);
    if (path !== undefined && (await isExecutable(path))) return { path };
    throw new SlipwayError("wrap-failed", {
      detail: `--python ${given}: there is no such program`,
      remedy: "Name the Python that has Dask, for example --python venv/bin/python.",
    });
  }
  const python = await findProgram("python");
  if (python !== undefined) return { path: python };
  const python3 = await findProgram("python3");
  if (python3 === undefined)
    throw new SlipwayError("wrap-failed", {
      detail: "there is no python and no python3 on the PATH",
      remedy: "Name the Python that has Dask with --python.",
    });
  return {
    path: python3,
    warning: `there is no \`python\` here, which jobs are started with; if nodes have none either, use --python ${python3}`,
  };
};
