import type { RunDocument } from "../../client/index.ts";
import type { WorkerCommand } from "../head.ts";

/** Braces of a value are no placeholders. */
const literal = (text: string): string => text.replaceAll("{", "{{").replaceAll("}", "}}");

/** A run of one task. */
export const taskDocument = (
  name: string,
  { command, variables }: WorkerCommand,
  { cpus, environment }: { readonly cpus: number; readonly environment: Readonly<Record<string, string>> },
  retries = 0,
): RunDocument => ({
  name,
  cwd: process.cwd(),
  environment: { ...environment },
  tasks: [
    {
      name,
      run: command.map(literal),
      retries,
      ...(retries === 0 ? {} : { "retry-delay": 1 }),
      cpus,
      env: Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, literal(value)])),
    },
  ],
});
