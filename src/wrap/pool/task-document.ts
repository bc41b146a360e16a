import type { RunDocument } from "../../client/index.ts";
import type { WorkerCommand } from "../head.ts";

/** Each node of a pilot has one of it: a worker that takes it has the node. */
export const NODE_RESOURCE = "slipway-worker";

/** Braces of a value are no placeholders. */
const literal = (text: string): string => text.replaceAll("{", "{{").replaceAll("}", "}}");

/** A run of one task. */
export const taskDocument = (
  name: string,
  { command, variables }: WorkerCommand,
  { cpus, environment }: { readonly cpus: number; readonly environment: Readonly<Record<string, string>> },
  { takesNode, retries = 0 }: { readonly takesNode: boolean; readonly retries?: number },
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
      cpus: takesNode ? cpus : 0,
      ...(takesNode ? { resources: { [NODE_RESOURCE]: 1 } } : {}),
      env: Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, literal(value)])),
    },
  ],
});
