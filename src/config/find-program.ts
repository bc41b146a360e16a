import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";

const isProgram = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
};

/** Where a program lies: in one directory, or the first on the PATH; undefined when it is not there. */
export const findProgram = async (
  name: string,
  directory?: string,
  path = process.env["PATH"] ?? "",
): Promise<string | undefined> => {
  const directories = directory === undefined ? path.split(delimiter).filter((part) => part !== "") : [directory];
  for (const each of directories) if (await isProgram(join(each, name))) return join(each, name);
  return undefined;
};
