import { randomUUID } from "node:crypto";
import { realpath, stat } from "node:fs/promises";
import { isAbsolute, sep } from "node:path";
import type { Service } from "../../api/service.ts";
import { buildRun } from "../../config/build-run.ts";
import { type ItemStream, itemStreams } from "../../config/item-files.ts";
import { requestBody } from "../../config/request-body.ts";
import { readRunFile } from "../../config/read-run-file.ts";
import { reasonOf } from "../../config/file-text.ts";
import type { ItemsInput } from "../../config/task-items.ts";
import { SlipwayError } from "../../errors.ts";
import type { ServiceContext } from "./context.ts";

/**
 * A run file's text, submitted by whoever has no files here: a browser. The directory and the environment are this
 * machine's; files with items are read here, and only below the directory.
 */

const notThere = (what: string, path: string, error: unknown): SlipwayError =>
  new SlipwayError("no-such-file", { where: what, path, detail: reasonOf(error) }, error);

const directoryOf = async (cwd: string): Promise<string> => {
  if (!isAbsolute(cwd)) throw new SlipwayError("bad-request", { detail: "cwd must be a path that begins with /" });
  try {
    const real = await realpath(cwd);
    if (!(await stat(real)).isDirectory()) throw Object.assign(new Error("not a directory"), { code: "ENOTDIR" });
    return real;
  } catch (error) {
    throw notThere("cwd", cwd, error);
  }
};

/** Links are followed first: what counts is where a file is. */
const checkBelow = async (directory: string, inputs: ReadonlyMap<number, ItemsInput>): Promise<void> => {
  for (const input of inputs.values()) {
    if (input.kind !== "lines" && input.kind !== "json") continue;
    const { where, key } = input.place;
    const refuse = (detail: string): SlipwayError =>
      new SlipwayError("bad-value", { where, key, detail, remedy: "Name a file below the run's directory." });
    if (input.path === "-") throw refuse("has no standard input here");
    const real = await realpath(input.path).catch((error: unknown) => {
      throw notThere(where, input.path, error);
    });
    if (!real.startsWith(directory === sep ? sep : directory + sep))
      throw refuse(`${input.path} is not below ${directory}`);
    // whoever opens a pipe waits for the other side
    if (!(await stat(real)).isFile()) throw refuse(`${input.path} is not a regular file`);
  }
};

async function* linesOf(document: object, streams: readonly ItemStream[]): AsyncGenerator<unknown> {
  yield document;
  for (const { group, batches } of streams)
    for await (const items of batches()) if (items.length > 0) yield { group, items };
  yield { end: true };
}

export const createSubmitText = (
  { clusters }: Pick<ServiceContext, "clusters">,
  submit: Service["submit"],
  env: Readonly<NodeJS.ProcessEnv> = process.env,
): Pick<Service, "submitText"> => ({
  submitText: async ({ text, file, cwd }, uuid = randomUUID()) => {
    const document = readRunFile(text, file);
    const { spec, items } = buildRun(document, { cwd, env, limit: clusters.limits.tasksPerRun });
    await checkBelow(await directoryOf(cwd), items);
    return submit(linesOf(requestBody(document, spec, uuid), await itemStreams(spec.groups, items)));
  },
});
