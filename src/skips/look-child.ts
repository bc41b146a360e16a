import { createInterface } from "node:readline";
import { lookFiles, type LookTask } from "./look-files.ts";

/** The other end of looker.ts: a line of tasks in, a line of looks out, until nobody asks any more. */
export const lookChild = async (): Promise<number> => {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity }))
    process.stdout.write(`${JSON.stringify(await lookFiles(JSON.parse(line) as LookTask[]))}\n`);
  return 0;
};
